"""Explanations and scores where the memory of a device does not suffice for a batch: the same, in smaller ones."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.devices.batches import DeviceMemoryError
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_recsys.edits import Edits
from cfbench_recsys.recommenders.lightgcn import Config, LightGCN
from cfbench_recsys.scoring import BLOCK, counted, score_blocks
from cfbench_recsys.steps.explaining import _joined_answers, _joined_importances, in_batches
from cfbench_recsys.targets import Answer, Context, Targets
from cfbench_recsys.testing import world
from cfbench_recsys.testing.explainers import listed_targets
from cfbench_recsys.testing.models import LinearModel

GRAPH = world.split().profiles
METHODS = {"leave-one-out": {}, "lime-rs": {"samples": 20}, "shap": {"samples": 20}}
SEARCHES = {"greedy": {}, "prince": {}, "accent": {}}


class Limited:
    """A recommender on a device that has memory for ``most`` rows at a time; counts its queries."""

    def __init__(self, model: Any, most: int) -> None:
        self.model, self.most = model, most

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def score_profiles(self, profiles: Any) -> Any:
        if profiles.shape[0] > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return self.model.score_profiles(profiles)


def linear() -> LinearModel:
    return LinearModel.planted(GRAPH)


def scored(model: Any, users: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = np.full((len(users), GRAPH.shape[1]), np.nan)
    for rows, scores in score_blocks(model, Edits.nothing(users), GRAPH):
        assert np.isnan(found[rows]).all()  # each once
        found[rows] = scores
    return found


@settings(max_examples=10)
@given(most=st.integers(1, 80), count=st.integers(0, 90))
def test_scores_do_not_depend_on_what_fits(most: int, count: int) -> None:
    users = np.arange(count)
    model, limited = counted(linear()), counted(Limited(linear(), most))
    np.testing.assert_allclose(scored(limited, users), scored(model, users), rtol=1e-12, atol=1e-12)
    assert limited.queries == model.queries == count  # what failed is not counted


def test_graphs_are_scored_in_parts_as_well() -> None:
    model = LightGCN(Config(dimensions=4, epochs=1))
    model.fit(world.split(), world.streams, lambda done, total: None)
    expected = scored(model, np.arange(90))
    whole, sizes = model.score_edits, []

    def limited(edits: Edits) -> Any:
        sizes.append(len(edits))
        if len(edits) > 20:
            raise torch.OutOfMemoryError
        return whole(edits)

    model.score_edits = limited  # type: ignore[method-assign]
    np.testing.assert_allclose(scored(model, np.arange(90)), expected, rtol=1e-12, atol=1e-12)
    assert sizes == [BLOCK, 32, *[16] * 8]


def test_a_single_row_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(DeviceMemoryError, match="does not suffice for a batch of one"):
        scored(Limited(linear(), 0), np.arange(3))


def explainer(name: str, options: dict[str, Any]) -> Any:
    (spec,) = (one.spec for one in installed().components("explainer", "recsys") if one.spec.name == name)
    return resolve(spec.target)(resolve(spec.config)(**options) if spec.config else None)


@functools.cache
def units() -> tuple[Targets, Context]:
    model = linear()
    training = world.training_part(GRAPH)
    context = Context(model, GRAPH, training, functools.partial(world.streams, "explain"))
    return listed_targets(model, GRAPH, np.arange(2, 9), "item", "user-vector", None), context


@pytest.mark.parametrize("most", [1, 3, 8])
@pytest.mark.parametrize("name", METHODS)
def test_importances_are_those_of_one_batch(name: str, most: int) -> None:
    targets, context = units()
    method = explainer(name, METHODS[name])

    def answer(some: Targets) -> Any:
        if len(some) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return method.importances(some, context)

    parts = in_batches(context.model, targets, answer)
    assert max(len(part) for part, _ in parts) <= most
    joined, whole = _joined_importances(parts, targets), method.importances(targets, context)
    assert joined.shape == whole.shape
    assert np.isneginf(joined[targets.padding]).any() or most > 1
    inside = ~targets.padding
    np.testing.assert_allclose(joined[inside], whole[inside], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("name", SEARCHES)
def test_edits_and_details_are_those_of_one_batch(name: str, most: int) -> None:
    targets, context = units()
    method = explainer(name, SEARCHES[name])

    def answer(some: Targets) -> Answer:
        if len(some) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return Answer.of(method.counterfactuals(some, context))

    whole = Answer.of(method.counterfactuals(targets, context))
    joined = _joined_answers(in_batches(context.model, targets, answer))
    for field in ("users", "rows", "edge_users", "edge_items", "ops"):
        np.testing.assert_array_equal(getattr(joined.edits, field), getattr(whole.edits, field))
    assert joined.details.keys() == whole.details.keys()
    for key, values in whole.details.items():
        np.testing.assert_allclose(joined.details[key], values)


def test_a_detail_that_a_part_lacks_is_missing_there() -> None:
    parts = [
        (range(2), Answer(Edits.nothing(np.array([4, 5])), {"gap": np.array([0.5, 0.25])})),
        (range(2, 3), Answer(Edits.nothing(np.array([6])))),
    ]
    joined = _joined_answers(parts)
    assert joined.edits.users.tolist() == [4, 5, 6]
    np.testing.assert_array_equal(joined.details["gap"], [0.5, 0.25, np.nan])


def test_on_the_cpu_there_is_one_batch() -> None:
    targets, context = units()
    ((part, seen),) = in_batches(context.model, targets, lambda some: some)
    assert part == range(len(targets))
    assert seen is targets
