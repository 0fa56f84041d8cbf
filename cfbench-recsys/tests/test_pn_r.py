"""PN-R."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.pn_r import PnR, pn_r


def test_losing_the_first_place_weighs_more_than_losing_the_second() -> None:
    first, second = 1 / np.log2(2), 1 / np.log2(3)
    values = pn_r(np.array([[7, 2], [1, 7]]), k=2)
    assert values == pytest.approx([first / (first + second), second / (first + second)])


def test_items_that_change_places_change_nothing_and_a_list_that_is_gone_scores_one() -> None:
    np.testing.assert_array_equal(pn_r(np.array([[1, 2, 3], [3, 1, 2], [4, 5, 6]]), k=3), [0.0, 0.0, 1.0])


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_it_equals_the_formula(draw_explicit, data: st.DataObject) -> None:
    case, edits = draw_explicit(data, "list")
    values = PnR().compute(case.explicit(edits))[f"PN-R@{case.k}"]
    for value, (user, items), edit in zip(values, case.units(), edits, strict=True):
        ranks = [case.rank(user, case.after(user, edit), item) for item in items]
        retained = sum(1 / np.log2(rank + 1) for rank in ranks if rank <= case.k)
        whole = sum(1 / np.log2(place + 1) for place in range(1, len(items) + 1))
        assert value == pytest.approx(1 - retained / whole, abs=1e-12)
