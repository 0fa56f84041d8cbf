"""NEG-P curve: one interaction removed at a time, the least important first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.curve_neg_p import Config, CurveNegP
from cfbench_recsys.metrics.curve_pos_p import CurvePosP


def test_an_item_with_one_supporter_stays_until_that_one_goes_last(awkward) -> None:
    case = awkward("item")
    case.histories, case.weights, case.bias = [{0, 1, 2}], [[0] * 5 for _ in range(5)], [0, 0, 0, 0, 1]
    case.weights[1][3], case.k = 5, 1
    assert case.units() == [(0, [3])]
    values = CurveNegP(Config(t=(1,))).compute(case.implicit([{0: 0.1, 1: 9.0, 2: 0.2}]))
    assert values == {"NEG-P curve@1": pytest.approx([2 / 3])}


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_it_equals_the_formula_with_a_list_of_any_length(draw_implicit, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, "item")
    metric = CurveNegP(Config(t=(1, 2, 5)))
    results = metric.compute(case.implicit(importances))
    assert list(results) == [column.name for column in metric.columns({"k": case.k, "level": "item"})]
    for t in (1, 2, 5):
        for b, ((user, [item]), of_unit) in enumerate(zip(case.units(), importances, strict=True)):
            profile, hits = set(case.histories[user]), 0
            for gone in reversed(case.order(user, of_unit)):
                profile = profile - {gone}
                hits += case.rank(user, profile, item) <= t
            expected = hits / len(case.histories[user])
            assert results[f"NEG-P curve@{t}"][b] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_it_is_the_pos_p_curve_of_the_order_reversed(draw_implicit, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, "item")
    reversed_order = [
        {item: float(place) for place, item in enumerate(case.order(user, of_unit))}
        for (user, _), of_unit in zip(case.units(), importances, strict=True)
    ]
    neg = CurveNegP(Config(t=(2,))).compute(case.implicit(importances))["NEG-P curve@2"]
    pos = CurvePosP(Config(t=(2,))).compute(case.implicit(reversed_order))["POS-P curve@2"]
    np.testing.assert_array_equal(neg, pos)
