"""What an explainer learns from other users is learned once for all protocol points of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from safetensors.numpy import load_file

from cfbench_core import run
from cfbench_core.store import Store

LEARNER = """
import numpy as np


class Learner:
    def __init__(self, config=None):
        pass

    def prepare(self, context):
        learned = np.flatnonzero(np.diff(context.training.tocsr().indptr))
        return {"users": learned, "items": np.asarray(context.training.sum(axis=0)).ravel()}

    def importances(self, targets, context):
        return context.state["items"][targets.history].astype(float)
"""


@pytest.fixture(autouse=True)
def own_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a_learner.py").write_text(LEARNER, encoding="utf-8")


def study(**protocol: Any) -> dict[str, Any]:
    return {
        "suite": "recsys",
        "data": [{"name": "synthetic", "users": 40, "items": 25, "interactions": 300}],
        "recommenders": ["ease", "popularity"],
        "explainers": [{"import": "a_learner:Learner", "label": "learner"}],
        "protocol": {"users": 7, "format": "implicit", "k": [2, 4], "level": ["item", "list"], **protocol},
        "metrics": ["pos-p"],
        "executor": "inline",
    }


def trainings() -> list[list[int]]:
    """The users of each training in the cache."""
    folders = [entry.path for entry in Store().entries() if entry.kind == "explainer"]
    return [load_file(folder / "state.safetensors")["users"].tolist() for folder in folders]


def test_a_model_has_one_training_for_all_protocol_points(tmp_path: Path) -> None:
    done = run(study(), out=tmp_path / "run")
    assert done.summary["cell"].nunique() == 2 * 2 * 2  # models, levels, k
    assert len(trainings()) == 2


def test_a_study_of_one_point_learns_and_answers_the_same(tmp_path: Path) -> None:
    whole = run(study(), out=tmp_path / "whole").scores
    for level, k in (("item", 2), ("list", 4)):
        alone = run(study(level=level, k=k), out=tmp_path / f"{level}-{k}", fresh=True).scores
        rows = whole[(whole["level"] == level) & (whole["k"] == k)].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone, rows, check_dtype=False)
        assert len(trainings()) == 2  # written anew


def test_nothing_is_learned_from_a_user_without_a_unit(tmp_path: Path) -> None:
    """User u0 interacted with nearly all items, so there is no list of five to explain, but they are among the users."""
    rows = [("u0", f"i{item}") for item in range(8)]
    rows += [(f"u{user}", f"i{(user + step) % 8}") for user in range(1, 20) for step in range(3)]
    pd.DataFrame(rows, columns=["user", "item"]).to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "users.csv").write_text("user\nu0\nu1\n", encoding="utf-8")
    users = {"users_file": str(tmp_path / "users.csv"), "users": 100, "k": 5, "level": "list"}
    data = [{"name": "file", "path": str(tmp_path / "log.csv")}]
    done = run({**study(**users), "data": data}, out=tmp_path / "run")
    assert done.scores["user"].unique().tolist() == ["u1"]
    assert trainings() == [list(range(2, 20))] * 2
