"""The suite's own components leave what they receive as it was, and the library functions that others use."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.testing.watched_runs import check_watched_run

STUDY = {
    "suite": "text",
    "data": ["toy-reviews"],
    "extractor": "rules",
    "generators": ["item-review", "reference", "most-frequent", "shuffled-reference"],
    "judges": ["overlap"],
}


@pytest.mark.slow
def test_no_component_of_the_project_counts_as_harmful(tmp_path: Path) -> None:
    check_watched_run(STUDY, tmp_path)
