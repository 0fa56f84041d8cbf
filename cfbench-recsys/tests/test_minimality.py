"""Minimality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.minimality import Minimality, minimality


def test_a_success_is_minimal_or_not_and_a_failure_neither() -> None:
    values = minimality(np.array([False, True, False]), np.array([True, True, False]))
    np.testing.assert_array_equal(values, [1.0, 0.0, np.nan])


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_it_tries_to_take_back_every_single_edit(draw_explicit, level: str, data: st.DataObject) -> None:
    case, edits = draw_explicit(data, level)
    values = Minimality().compute(case.explicit(edits))[f"Minimality@{case.k}"]
    for value, (user, items), edit in zip(values, case.units(), edits, strict=True):
        displaced = case.displaced(user, items, case.after(user, edit))
        if not displaced:
            assert np.isnan(value)
            continue
        smaller = [{item: op for item, op in edit.items() if item != left_out} for left_out in edit]
        needed = all(case.displaced(user, items, case.after(user, less)) < displaced for less in smaller)
        assert value == needed


def test_the_needless_edit_is_found_even_if_it_is_the_last_of_many(awkward) -> None:
    """Item 13 is the target and only the first interaction supports it; all others can be taken back."""
    case = awkward("item")
    case.histories, case.k = [set(range(12))], 1
    case.weights = [[0] * 14 for _ in range(14)]
    case.weights[0][13], case.bias = 2, [0] * 12 + [1, 0]
    assert case.units() == [(0, [13])]
    one, all_of_it = {0: -1}, dict.fromkeys(range(12), -1)
    assert Minimality().compute(case.explicit([one]))["Minimality@1"][0] == 1.0
    assert Minimality().compute(case.explicit([all_of_it]))["Minimality@1"][0] == 0.0
