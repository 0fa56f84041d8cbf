"""NEG-P."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.neg_p import Config, NegP, neg_p
from cfbench_recsys.metrics.pos_p import PosP


def test_an_item_that_leaves_the_top_2_after_the_third_of_four_steps_scores_three_quarters() -> None:
    assert neg_p(np.array([[[1], [2], [1], [3]]]), k=2) == pytest.approx([0.75])


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), steps=st.sampled_from([1, 2, 3, 10]))
def test_it_equals_the_formula(draw_implicit, level: str, data: st.DataObject, steps: int) -> None:
    case, importances = draw_implicit(data, level)
    [values] = NegP(Config(steps=steps)).compute(case.implicit(importances)).values()
    for value, (user, items), of_unit in zip(values, case.units(), importances, strict=True):
        order, removed, hits = case.order(user, of_unit)[::-1], set(), 0
        for chunk in np.array_split(np.array(order), steps):
            removed |= set(chunk.tolist())
            hits += sum(case.rank(user, case.histories[user] - removed, item) <= case.k for item in items)
        assert value == pytest.approx(hits / (steps * len(items)), abs=1e-12)


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_neg_p_of_an_order_is_pos_p_of_the_order_reversed(
    draw_implicit, level: str, data: st.DataObject
) -> None:
    case, importances = draw_implicit(data, level)
    reversed_order = [
        {item: float(place) for place, item in enumerate(case.order(user, of_unit))}
        for (user, _), of_unit in zip(case.units(), importances, strict=True)
    ]
    neg = NegP(Config()).compute(case.implicit(importances))[f"NEG-P@{case.k}"]
    pos = PosP(Config()).compute(case.implicit(reversed_order))[f"POS-P@{case.k}"]
    np.testing.assert_array_equal(neg, pos)
