"""POS-P."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.pos_p import Config, PosP, pos_p


def test_an_item_that_leaves_the_top_2_after_the_second_of_four_steps_scores_a_quarter() -> None:
    ranks = np.array([[[1], [3], [5], [9]]])  # one unit, four steps, one item
    assert pos_p(ranks, k=2) == pytest.approx([0.25])


def test_a_list_scores_the_mean_of_its_items() -> None:
    ranks = np.array([[[1, 2], [3, 1]]])  # one unit, two steps, two items
    assert pos_p(ranks, k=2) == pytest.approx([0.75])


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), steps=st.sampled_from([1, 2, 3, 10]))
def test_it_equals_the_formula(draw_implicit, level: str, data: st.DataObject, steps: int) -> None:
    case, importances = draw_implicit(data, level)
    metric = PosP(Config(steps=steps))
    [(name, values)] = metric.compute(case.implicit(importances)).items()
    assert [column.name for column in metric.columns({"k": case.k, "level": level})] == [name]
    for value, (user, items), of_unit in zip(values, case.units(), importances, strict=True):
        order, removed, hits = case.order(user, of_unit), set(), 0
        for chunk in np.array_split(np.array(order), steps):
            removed |= set(chunk.tolist())
            hits += sum(case.rank(user, case.histories[user] - removed, item) <= case.k for item in items)
        assert value == pytest.approx(hits / (steps * len(items)), abs=1e-12)


@pytest.mark.parametrize("level", ["item", "list"])
def test_equally_important_interactions_are_removed_by_ascending_index(awkward, level: str) -> None:
    case = awkward(level)
    equal = [dict.fromkeys(case.histories[user], 1.0) for user, _ in case.units()]
    falling = [{item: -float(item) for item in case.histories[user]} for user, _ in case.units()]
    metric = PosP(Config())
    name = f"POS-P@{case.k}"
    np.testing.assert_array_equal(
        metric.compute(case.implicit(equal))[name], metric.compute(case.implicit(falling))[name]
    )


def test_another_number_of_steps_has_a_name_of_its_own() -> None:
    assert PosP(Config(steps=20)).columns({"k": 5, "level": "item"})[0].name == "POS-P@5 (T=20)"
