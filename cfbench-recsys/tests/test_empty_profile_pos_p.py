"""Empty-profile POS-P and Full removal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.empty_profile_pos_p import (
    Config,
    EmptyProfilePosP,
    empty_profile_pos_p,
    full_removal,
)


def test_two_of_three_items_are_in_the_list_of_the_empty_profile() -> None:
    assert empty_profile_pos_p(np.array([[1, 9, 3]]), k=3) == pytest.approx([2 / 3])


def test_a_user_with_two_interactions_has_nothing_left_at_three_of_four_steps() -> None:
    assert full_removal(np.array([[1, 2, 2, 2]]), np.array([2])) == pytest.approx([0.75])


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), steps=st.sampled_from([1, 3, 10]))
def test_it_equals_the_formula(draw_implicit, level: str, data: st.DataObject, steps: int) -> None:
    case, importances = draw_implicit(data, level)
    values_on_empty, full = EmptyProfilePosP(Config(steps=steps)).compute(case.implicit(importances)).values()
    for b, (user, items) in enumerate(case.units()):
        on_empty = [case.rank(user, set(), item) <= case.k for item in items]
        assert values_on_empty[b] == pytest.approx(np.mean(on_empty), abs=1e-12)
        left, spent = list(case.histories[user]), 0
        for chunk in np.array_split(np.array(left), steps):
            left = left[len(chunk) :]
            spent += not left
        assert full[b] == pytest.approx(spent / steps, abs=1e-12)
