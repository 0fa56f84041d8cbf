"""Names made of several parts are different where the parts are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.ids import join_ids

PARTS = st.lists(st.text(alphabet="ab/\\", max_size=4), min_size=1, max_size=3)


def test_plain_parts_have_slashes_between_and_slashes_inside_are_escaped() -> None:
    assert join_ids("alice", "book", 3) == "alice/book/3"
    assert join_ids("a/b", "c") == r"a\/b/c"
    assert join_ids("a", "b/c") == r"a/b\/c"


@given(PARTS, PARTS)
def test_different_parts_have_different_names(first: list[str], second: list[str]) -> None:
    assert (join_ids(*first) == join_ids(*second)) == (first == second)
