"""``cfbench reproduce`` lists every table and figure that the papers have captions for."""

from __future__ import annotations

import pytest

from cfbench_core.registry import installed
from cfbench_core.replications import find_replication, loaded_replication

ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv")
CAPTIONS = {
    "cfexprec": {*(f"table-{n}" for n in range(1, 7)), *(f"figure-{n}" for n in range(1, 7))},
    "refined-fidelity": {"figure-1-left", "figure-1-right"},
    "beyond-top-1": {"table-1", "figure-1"},
    "cf-tabular": {
        *(f"table-{n}" for n in (1, 2, 3, 4, 5, 6, "a1", "a2")),
        *(f"figure-{n}" for n in range(1, 10)),
    },
    "statement-factuality": {*(f"table-{n}" for n in ROMAN), "figure-1", "figure-2"},
}
"""Counted in the papers."""


@pytest.mark.parametrize("paper", CAPTIONS)
def test_every_caption_is_listed_with_studies_or_a_reason(paper: str) -> None:
    (component,) = (found for found in installed().components("replication") if found.spec.name == paper)
    items = {item.name: item for item in loaded_replication(component).items}
    assert {name for name in items if name != "claims"} == CAPTIONS[paper]
    assert all(item.studies or item.reason for item in items.values())
    assert all(item.stored or not item.studies or "small version" in item.reason for item in items.values())


def test_figures_of_amazon_alone_lack_no_other_data() -> None:
    """By their captions figures 1, 2, 5 and 6 of CFExpRec are "on the Amazon dataset"; tables 2 to 5 are of three."""
    replication = find_replication("cfexprec")[1]
    without = {item.name for item in replication.items if "Yahoo" in item.reason}
    assert without == {"table-2", "table-3", "table-4", "table-5", "figure-3"}
    (four,) = (item for item in replication.items if item.name == "figure-4")
    assert four.reason.endswith("its caption names no data set")
