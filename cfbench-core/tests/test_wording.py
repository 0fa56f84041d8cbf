"""Numbers and names as they stand in a sentence."""

from __future__ import annotations

from cfbench_core.wording import count_of, join_words


def test_names_are_joined() -> None:
    assert [join_words(names) for names in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert join_words(["a", "b"], "or") == "a or b"


def test_numbers_are_counted() -> None:
    assert [count_of(1, "more pair"), count_of(1200, "pair"), count_of(0, "pair")] == [
        "1 more pair",
        "1,200 pairs",
        "0 pairs",
    ]
    assert [count_of(2, noun) for noun in ("analysis", "query")] == ["2 analyses", "2 queries"]
