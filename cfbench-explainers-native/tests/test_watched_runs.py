"""The suite's own components leave what they receive as it was, and the library functions that others use."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.testing.watched_runs import check_watched_run

STUDY = {
    "suite": "recsys",
    "data": [{"name": "synthetic", "users": 60, "items": 40, "interactions": 600}],
    "explainers": [
        "accent",
        "cosine",
        "lime-rs",
        "shap",
        "prince",
        "grease",
        "smallest",
        "leave-one-out",
        "random",
    ],
    "protocol": {"k": [3], "users": 5},
}


@pytest.mark.parametrize("recommender", ["vae", "lightgcn"])
def test_no_component_of_the_project_counts_as_harmful(recommender: str, tmp_path: Path) -> None:
    check_watched_run({**STUDY, "recommenders": [recommender]}, tmp_path)
