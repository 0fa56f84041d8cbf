"""Rank after the edit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.rank_after import RankAfter, rank_after


def test_it_is_the_rank_of_the_explained_item() -> None:
    np.testing.assert_array_equal(rank_after(np.array([[1], [14]])), [1.0, 14.0])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_equals_the_definition_and_without_an_answer_the_old_place(
    draw_explicit, data: st.DataObject
) -> None:
    case, edits = draw_explicit(data, "item")
    values = RankAfter().compute(case.explicit(edits))["Rank after"]
    for value, (user, [item]), edit in zip(values, case.units(), edits, strict=True):
        assert value == case.rank(user, case.after(user, edit), item)
        if not edit:
            assert value == case.top(user).index(item) + 1
