"""The minutes that ``cfbench reproduce --list`` declares are those that the stored results measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cfbench_core.registry import installed
from cfbench_core.replications import SCALES, Replication, loaded_replication

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAPERS = {found.spec.name: found for found in installed().components("replication")}
WHOLE_RUNS = {"beyond-top-1", "statement-factuality"}
"""Papers whose stored result is one run of all studies, at the scale small."""


def declared(replication: Replication, scale: str) -> dict[str, float]:
    return {study.name: study.minutes[scale] for study in replication.studies if scale in study.minutes}


@pytest.mark.parametrize("paper", sorted(WHOLE_RUNS))
def test_the_declared_minutes_add_up_to_those_of_the_stored_run(paper: str) -> None:
    origin = json.loads((RESULTS / f"replication-{paper}.json").read_text(encoding="utf-8"))
    minutes = declared(loaded_replication(PAPERS[paper]), "small")
    # "minutes": without other work, see the note in the file
    measured = origin.get("minutes", origin["elapsed_seconds"] / 60)
    assert sum(minutes.values()) == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize("paper", sorted({*PAPERS} - WHOLE_RUNS))
def test_the_declared_minutes_are_those_of_each_stored_study(paper: str) -> None:
    found = 0
    for path in RESULTS.glob(f"replication-{paper}*.json"):
        measured = json.loads(path.read_text(encoding="utf-8")).get("minutes_by_study", {})
        for scale, studies in measured.items():
            assert scale in SCALES
            for study, minutes in studies.items():
                found += 1
                assert declared(loaded_replication(PAPERS[paper]), scale)[study] == pytest.approx(
                    minutes, rel=0.03
                ), study
    assert found > 0
