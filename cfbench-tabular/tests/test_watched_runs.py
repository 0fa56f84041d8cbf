"""The suite's own components leave what they receive as it was, and the library functions that others use."""

from __future__ import annotations

from pathlib import Path

from cfbench_core.testing.watched_runs import check_watched_run

STUDY = {
    "suite": "tabular",
    "data": ["iris"],
    "classifiers": ["mlp", "random-forest"],
    "explainers": [
        "nice",
        "dice",
        "cadex",
        "alibic-nograd",
        "growing-spheres",
        "lore",
        "sedc",
        "synas",
        "random",
    ],
    "protocol": {"factuals": 4},
}


def test_no_component_of_the_project_counts_as_harmful(tmp_path: Path) -> None:
    check_watched_run(STUDY, tmp_path)
