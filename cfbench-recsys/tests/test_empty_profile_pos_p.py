"""Empty-profile POS-P and Full removal."""

from __future__ import annotations

from dataclasses import replace

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
from cfbench_recsys.metrics.neg_p import NegP
from cfbench_recsys.metrics.pos_p import Config as PosPConfig
from cfbench_recsys.metrics.pos_p import PosP


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


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), steps=st.sampled_from([1, 3, 10]))
def test_with_full_removal_it_is_a_lower_limit(
    draw_implicit, level: str, data: st.DataObject, steps: int
) -> None:
    case, importances = draw_implicit(data, level)
    observed = case.implicit(importances)
    on_empty, full = EmptyProfilePosP(Config(steps=steps)).compute(observed).values()
    for metric in (PosP, NegP):
        (reached,) = metric(PosPConfig(steps=steps)).compute(observed).values()
        assert (reached >= on_empty * full - 1e-12).all()


def test_alone_it_is_no_lower_limit(awkward) -> None:
    """Item 2 leads by its bias, and against item 3, for which item 1 speaks, by item 0. Without item 0 it is second."""
    weights = [[0, 0, 3, 0], [0, 0, 0, 2], [0] * 4, [0] * 4]
    case = replace(awkward("item"), weights=weights, bias=[0, 0, 1, 0], histories=[{0, 1}], k=1)
    observed = case.implicit([{0: 2.0, 1: 1.0}])
    (pos_p,) = PosP(PosPConfig(steps=2)).compute(observed).values()
    on_empty, full = EmptyProfilePosP(Config(steps=2)).compute(observed).values()
    assert (pos_p[0], on_empty[0], full[0]) == (0.5, 1.0, 0.5)
