"""The page "What holds, what does not" lists every stored claim with the verdicts of the stored tables."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_hooks"))

from result_tables.replications import verdicts_on_claims  # noqa: E402
from result_tables.states import state_of  # noqa: E402

PAGE = (ROOT / "docs/replications/index.md").read_text("utf-8")
STORED = sorted((ROOT / "docs/results").glob("replication-*.csv"))
LISTED = re.findall(r'\{\{ verdicts_on_claims\("([\w-]+)"\) \}\}', PAGE)
VERDICTS = (
    *("confirmed", "confirmed in part", "refuted", "refuted in part"),
    *("undecided", "not reproducible", "not comparable"),
)


def claims(name: str) -> list[dict[str, str]]:
    """The rows of a stored table that are claims."""
    with (ROOT / f"docs/results/{name}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row.get("item") in ("claims", "table 6")]


def test_every_stored_replication_with_claims_of_its_own_is_listed() -> None:
    """The table of the methods as published repeats the claims of CF-tabular."""
    with_claims = {path.stem for path in STORED if claims(path.stem)}
    assert with_claims - {*LISTED} <= {"replication-cf-tabular-as-published"}


@pytest.mark.parametrize("name", LISTED)
def test_a_line_for_each_claim_has_its_stored_verdicts(name: str) -> None:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in verdicts_on_claims(name).splitlines()
    ]
    heads, rows = lines[0], lines[2:]
    ours = [place for place, head in enumerate(heads) if head not in ("claim", "by its numbers")]
    found = [row[place].partition(" (")[0] for row in rows for place in ours]
    stored = [row["verdict"] for row in claims(name)]
    assert sorted(found) == sorted(stored) and set(found) <= set(VERDICTS)
    assert len({row[0] for row in rows}) == len(rows) == len(stored) // len(ours)


def test_what_the_page_takes_from_cf_tabular_is_in_its_tables() -> None:
    """The sentence on failures of tabular algorithms has the coverage of CF-tabular, of ours, and of those as published."""
    improved, published = (
        {
            row["explainer"]: row
            for row in coverage(name)
            if row["model"] in ("study-network", "study-network-explainers-as-published")
        }
        for name in ("replication-cf-tabular", "replication-cf-tabular-as-published")
    )
    assert len(improved) == len(published) == 10
    theirs = sorted(float(row["authors"]) for row in improved.values())
    as_published = sorted(float(row["ours"]) for row in published.values())
    sentence = " ".join(
        PAGE.partition("**Failures of tabular algorithms")[2].partition("- **That")[0].split()
    )
    assert f"{theirs[0]:.0%} to {theirs[-1]:.0%} of its 3,925 factuals" in sentence
    assert f"five of the ten find one for {as_published[5]:.0%} or more of 100 factuals" in sentence
    assert f"the others for {as_published[0]:.0%} to {as_published[4]:.0%}" in sentence
    cadex = f"{float(published['cadex']['ours']):.0%}, and for {float(improved['cadex']['authors']):.0%} in"
    assert f"(CADEX for {cadex} CF-tabular)" in sentence
    ours = {name: float(row["ours"]) for name, row in improved.items()}
    assert sum(share >= 0.99 for share in ours.values()) == 9
    assert f"at least 99% of 3,325 factuals, SEDC for {ours['sedc']:.0%}" in sentence
    assert {row["factuals"] for row in improved.values()} == {"3325.0"}
    assert {row["factuals"] for row in published.values()} == {"100.0"}


def coverage(name: str) -> list[dict[str, str]]:
    """The shares of all factuals with a valid counterfactual (figure 6)."""
    with (ROOT / f"docs/results/{name}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if (row["item"], row["group"]) == ("figure 6", "total")]


def test_the_state_of_each_paper_is_that_of_the_index() -> None:
    index = json.loads((ROOT / "docs/results/index.json").read_text("utf-8"))
    states = {result["name"]: result for result in index["results"]}
    shown = re.findall(r'\{\{ state_of\("([\w-]+)"\) \}\}', PAGE)
    assert shown == LISTED
    for name in shown:
        text = state_of(name)
        assert text.partition(":")[0] == states[name]["state"]
        changed = [one["component"].rpartition("/")[2] for one in states[name]["outdated"]]
        assert [part.split()[0] for part in text.partition(": ")[2].split(", ") if part] == changed
