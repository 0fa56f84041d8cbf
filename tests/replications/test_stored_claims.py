"""The claims of stored results are decided by the rules that the packages declare today."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cfbench_recsys.analysis import published_consistency_claims
from cfbench_recsys.analysis.published_claims import rule

ROOT = Path(__file__).parents[2]
DECLARED = {
    "replication-cfexprec": "cfexprec_claims.csv",
    "replication-refined-fidelity": "refined_fidelity_claims.csv",
    "replication-beyond-top-1": "beyond_top_1_claims.csv",
}
RULES = {"replication-beyond-top-1": published_consistency_claims.rule}
"""How a claim's rule is written; the others as CFExpRec's."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", DECLARED)
def test_stored_claims_have_the_declared_rules_and_sentences(name: str) -> None:
    declared = rows(ROOT / "cfbench-recsys/src/cfbench_recsys/published" / DECLARED[name])
    today = {claim["claim"]: (RULES.get(name, rule)(claim), claim["sentence"]) for claim in declared}
    stored = [row for row in rows(ROOT / f"docs/results/{name}.csv") if row["item"] == "claims"]
    assert {row["claim"] for row in stored} == set(today)
    differing = {row["claim"] for row in stored if (row["rule"], row["sentence"]) != today[row["claim"]]}
    assert not differing, "store the result anew"


@pytest.mark.parametrize(("metric", "sign"), [("DEL-all", -1), ("INS-all", 1)])
def test_stored_means_change_with_every_interaction(metric: str, sign: int) -> None:
    """The rules "share-falling" and "share-rising" of Refined fidelity on the means of both variants: all steps, not 95%."""
    means: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows(ROOT / "docs/results/replication-refined-fidelity.csv"):
        base, _, length = row["metric"].partition("@")
        if (row["item"], row["model"], base) == ("figure-1-right", "mf", metric):
            means.setdefault((row["explainer"], row["variant"]), {})[int(length)] = float(row["ours"])
    assert len(means) == 10
    for of_lengths in means.values():
        assert sorted(of_lengths) == [1, 2, 3, 4, 5]
        assert all(sign * (of_lengths[n + 1] - of_lengths[n]) > 0 for n in range(1, 5))
