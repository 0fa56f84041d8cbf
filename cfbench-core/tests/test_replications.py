"""Names of the tables and figures of a paper."""

from __future__ import annotations

import pytest

from cfbench_core.errors import UserError
from cfbench_core.replications import PublishedItem, Replication, with_digits


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *zip(
            [
                f"table-{n}"
                for n in ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xiv")
            ],
            [f"table-{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14)],
            strict=True,
        ),
        ("table-3", "table-3"),
        ("table-a1", "table-a1"),
        ("claims", "claims"),
    ],
)
def test_roman_numbers(name: str, expected: str) -> None:
    assert with_digits(name) == expected


def test_a_table_with_a_roman_number_is_found_by_digits() -> None:
    names = ("table-i", "table-ii", "figure-2")
    items = tuple(PublishedItem(name=name, caption="", reason="nothing is measured") for name in names)
    paper = Replication(title="A paper", paper="key", items=items, studies=(), analysis="")
    assert [item.name for item in paper.named(["table-2", "table-ii", "figure-2"])] == [
        "table-ii",
        "figure-2",
    ]
    with pytest.raises(UserError, match="no table or figure 'table-3' in A paper"):
        paper.named(["table-3"])
