"""Histories of 1, 2 and 800 interactions, lists of one item, and an item that always stays: for every explainer."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.specs import resolve
from cfbench_explainers_native.plugin import cfbench_explainers
from cfbench_recsys.answers import count_displaced, smallest_prefix, verify
from cfbench_recsys.recommenders.mf import MF
from cfbench_recsys.recommenders.mf import Config as MFConfig
from cfbench_recsys.targets import Answer, Targets

ITEMS = 820
LENGTHS = (1, 2, 800)
SPECS = {
    spec.name: spec for spec in cfbench_explainers() if "user-vector" in spec.provides["scope"]
}  # GREASE explains graphs: see test_grease.py


@pytest.fixture(scope="module")
def setting(make_world: Any) -> Any:
    """A two-tower MF with random weights; item 0, in no history, is held first by its bias alone."""
    draw = np.random.default_rng(3)
    model = MF(MFConfig())
    weights = {
        "profile.weight": draw.normal(scale=0.1, size=(8, ITEMS)),
        "profile.bias": np.append(np.zeros(7), 1.0),
        "item.weight": draw.normal(size=(8, ITEMS)),
        "item.bias": np.zeros(8),
    }
    weights["profile.weight"][7] = 0.0  # the last dimension is a constant,
    weights["item.weight"][7] = 0.0
    weights["item.weight"][7, 0] = 1e4  # which holds item 0
    histories = [np.arange(1, 1 + length) for length in LENGTHS]
    training = [draw.choice(np.arange(1, ITEMS), 60, replace=False) for _ in range(40)]
    found = make_world(model, histories, ITEMS, training)
    model.load_state({name: array.astype(np.float32) for name, array in weights.items()}, found.profiles)
    return found


def explainer_of(name: str, setting: Any) -> tuple[Any, Any]:
    """As few epochs as it takes to have something learned, and a search that does not retain many sets."""
    spec = SPECS[name]
    config = resolve(spec.config)
    options = {"lxr": {"epochs": 1}, "beam": {"width": 2, "pool": 8}}
    explainer = resolve(spec.target)(config(**options.get(name, {})))
    context = setting.context
    if hasattr(explainer, "prepare"):
        # Training users are rows of the graph, too.
        both = sparse.vstack([setting.profiles, setting.training], format="csr")
        empty = sparse.csr_matrix(setting.profiles.shape)
        training = sparse.vstack([empty, setting.training], format="csr")
        learning = dataclasses.replace(context, interactions=both, training=training)
        context = dataclasses.replace(context, state=explainer.prepare(learning))
    return explainer, context


def edits_of(explainer: Any, targets: Targets, context: Any) -> Any:
    if hasattr(explainer, "counterfactuals"):
        edits = Answer.of(explainer.counterfactuals(targets, context)).edits
    else:
        importances = explainer.importances(targets, context)
        assert importances.shape == targets.history.shape
        assert np.isfinite(importances[~targets.padding]).all()
        edits = smallest_prefix(context.model, targets, importances, context.interactions)
    return verify(context.model, targets, edits, context.interactions)


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("name", SPECS)
def test_answers_name_interactions_of_the_user_and_work(name: str, k: int, setting: Any) -> None:
    explainer, context = explainer_of(name, setting)
    last = setting.lists(k)[:, -1]
    edits = edits_of(explainer, setting.targets(range(len(LENGTHS)), last, k), context)
    for unit, length in enumerate(LENGTHS):
        own = edits.edge_items[(edits.rows == unit) & (edits.ops == -1)]
        assert np.isin(own, np.arange(1, 1 + length)).all() and len(set(own)) == len(own)
    answered = np.flatnonzero(edits.counts() > 0)
    targets = setting.targets(range(len(LENGTHS)), last, k)
    gone = count_displaced(context.model, targets, edits, np.arange(len(targets)), context.interactions)
    assert (gone[answered] > 0).all()


@pytest.mark.parametrize("name", SPECS)
def test_an_item_that_stays_whatever_is_removed_is_answered_by_none(name: str, setting: Any) -> None:
    assert (setting.lists(1) == 0).all()
    explainer, context = explainer_of(name, setting)
    if SPECS[name].provides["edit"] == frozenset({"add"}):
        pytest.skip("it adds interactions, too")
    edits = edits_of(explainer, setting.targets(range(len(LENGTHS)), [0, 0, 0], 1), context)
    assert edits.counts().tolist() == [0, 0, 0]
