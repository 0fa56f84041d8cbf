"""PN-S."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.pn_s import PnS, pn_s


def test_one_of_two_items_leaves_the_top_2() -> None:
    assert pn_s(np.array([[1, 3]]), k=2) == pytest.approx([0.5])


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_it_equals_the_formula(draw_explicit, level: str, data: st.DataObject) -> None:
    case, edits = draw_explicit(data, level)
    values = PnS().compute(case.explicit(edits))[f"PN-S@{case.k}"]
    for value, (user, items), edit in zip(values, case.units(), edits, strict=True):
        expected = np.mean([case.rank(user, case.after(user, edit), item) > case.k for item in items])
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", ["item", "list"])
def test_no_answer_displaces_nothing(awkward, level: str) -> None:
    case = awkward(level)
    values = PnS().compute(case.explicit([{} for _ in case.units()]))[f"PN-S@{case.k}"]
    np.testing.assert_array_equal(values, 0.0)
