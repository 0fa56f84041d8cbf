"""What the tests of whole runs have in common: a study of the shop, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from cfbench_core.run_directory import Run, RunCell

SAMPLES = Path(__file__).parents[1] / "samples"


def study(path: Path, **changes: Any) -> dict[str, Any]:
    """Every interaction but each user's last two is known; 33 users are explained."""
    return {
        "suite": "recsys",
        "data": {"name": "file", "path": str(path)},
        "split": {"kind": "leave-one-out"},
        "recommenders": [{"import": "my_lab:CoOccurrence", "label": "co"}],
        "explainers": [{"import": "my_lab:ByIndex"}],
        "protocol": {"k": [3], "level": ["item"], "format": ["implicit"], "users": 100},
        "executor": "inline",
        "chunk": 10,
        **changes,
    }


def by_explainer(done: Run) -> dict[str, RunCell]:
    return {str(cell.labels["explainer"]): cell for cell in done.cells()}


def values(scores: pd.DataFrame, **selected: Any) -> dict[str, float]:
    """Unit -> value, for one metric of one cell."""
    for name, value in selected.items():
        scores = scores[scores[name] == value]
    assert scores["unit"].is_unique and len(scores)
    return dict(zip(scores["unit"], scores["value"], strict=True))
