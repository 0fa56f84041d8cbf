"""POS-P curve: one interaction removed at a time."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.metrics.curve_neg_p import CurveNegP
from cfbench_recsys.metrics.curve_pos_p import Config, CurvePosP, share_of_curve
from cfbench_recsys.metrics.pos_p import Config as Steps
from cfbench_recsys.metrics.pos_p import PosP
from cfbench_recsys.observations import ImplicitObservations
from cfbench_recsys.targets import Targets


def test_each_curve_is_averaged_over_its_own_steps() -> None:
    ranks = np.array([[1], [2], [3], [9], [4]])  # four removals of the first unit, one of the second
    values = share_of_curve(ranks, np.array([0, 0, 0, 0, 1]), np.array([4, 1]), t=2)
    np.testing.assert_array_equal(values, [0.5, 0.0])


def test_the_untouched_profile_is_no_step_and_the_empty_one_is(awkward) -> None:
    """The user with one interaction: the only step removes it."""
    case = awkward("item")
    case.histories, case.weights, case.bias = [{0}], [[0] * 4 for _ in range(4)], [0, 0, 1, 0]
    case.weights[0][1], case.k = 3, 1
    assert case.units() == [(0, [1])]
    for t, expected in ((1, 0.0), (2, 1.0)):  # without its only supporter item 1 stands behind item 2
        values = CurvePosP(Config(t=(t,))).compute(case.implicit([{0: 1.0}]))
        assert values == {f"POS-P curve@{t}": pytest.approx([expected])}


def test_without_a_step_there_is_no_value() -> None:
    values = share_of_curve(np.array([[1]]), np.array([0]), np.array([1, 0]), t=1)
    np.testing.assert_array_equal(values, [1.0, np.nan])


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_it_equals_the_formula_with_a_list_of_any_length(draw_implicit, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, "item")
    metric = CurvePosP(Config(t=(1, 2, 5)))
    results = metric.compute(case.implicit(importances))
    assert list(results) == [column.name for column in metric.columns({"k": case.k, "level": "item"})]
    for t in (1, 2, 5):
        for b, ((user, [item]), of_unit) in enumerate(zip(case.units(), importances, strict=True)):
            profile, hits = set(case.histories[user]), 0
            for gone in case.order(user, of_unit):
                profile = profile - {gone}
                hits += case.rank(user, profile, item) <= t
            expected = hits / len(case.histories[user])
            assert results[f"POS-P curve@{t}"][b] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_with_as_many_chunks_as_interactions_pos_p_is_the_same(draw_implicit, data: st.DataObject) -> None:
    """An identity: T = n chunks of one interaction, and a threshold of K."""
    case, importances = draw_implicit(data, "item")
    seen = case.implicit(importances)
    curve = CurvePosP(Config(t=(case.k,))).compute(seen)[f"POS-P curve@{case.k}"]
    for b, (user, _) in enumerate(case.units()):
        steps = len(case.histories[user])
        [in_chunks] = PosP(Steps(steps=steps)).compute(seen).values()
        assert curve[b] == pytest.approx(in_chunks[b], abs=1e-12)


def test_hundreds_of_interactions_cost_two_profiles_each_and_little_memory() -> None:
    """As on ML-1M: 3,000 items, histories up to 800; one long history must not widen the others' arrays."""
    rng = np.random.default_rng(0)
    lengths = np.concatenate([[800, 400], rng.integers(20, 160, 38)])
    histories = [np.sort(rng.choice(3000, length, replace=False)) for length in lengths]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    interactions = sparse.csr_matrix(
        (np.ones(starts[-1]), np.concatenate(histories), starts), shape=(40, 3000)
    )
    left, right = rng.normal(size=(3000, 8)), rng.normal(size=(8, 3000))
    scored = 0

    class Model:
        def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
            nonlocal scored
            scored += profiles.shape[0]
            return (profiles @ left) @ right

    items = [np.setdiff1d(np.arange(3000), history)[:1] for history in histories]
    targets = Targets.of(interactions, np.arange(40), np.array(items), 5, "item", "user-vector")
    seen = ImplicitObservations(Model(), targets, rng.normal(size=targets.history.shape), interactions)
    metrics = [CurvePosP(Config()), CurveNegP(Config())]
    tracemalloc.start()
    started = time.process_time()
    results = compute_metrics(metrics, seen)
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(results) == 6
    assert scored <= 2 * lengths.sum() - len(lengths) + 2 * 64  # the empty profile is shared; blocks fill up
    assert (
        peak < 40e6
    )  # a block of 64 x 3,000 scores is 1.5 MB; padded to 800, 40 curves were 0.5 GB of profiles
    assert seconds < 30
    compute_metrics(metrics, seen)
    assert scored <= 2 * lengths.sum() - len(lengths) + 2 * 64  # nothing is scored twice
