"""The suite's own components leave what they receive as it was, and the library functions that others use."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.isolation.functions import Functions
from cfbench_core.isolation.global_state import restored
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


def test_the_default_type_of_torch_is_a_setting_that_is_restored() -> None:
    import torch

    functions, storage = Functions(), torch.Storage
    functions.note()
    with restored():
        torch.set_default_dtype(torch.float16)
        assert functions.replaced() == []
    assert torch.get_default_dtype() == torch.float32 and torch.Storage is storage
