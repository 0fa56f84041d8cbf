"""Run directories written by hand, so that what an analysis makes of them is known; and one real run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cfbench_core
from cfbench_core.run_directory import Run

LOWER = ("L2", "MADD", "MD")
NUMERICAL = {"numeric_columns": 4, "categorical_columns": 0, "encoded_columns": 4, "training_rows": 90}
CATEGORICAL = {"numeric_columns": 0, "categorical_columns": 3, "encoded_columns": 9, "one_hot_columns": 9}
Write = Callable[..., Run]


def cell(explainer: str, metrics: Mapping[str, Sequence[float | None]], **given: Any) -> dict[str, Any]:
    """A cell whose units are u0, u1, ...; ``given``: dataset, model, role, status, seconds, details."""
    usual = {"dataset": "flowers", "model": "net", "role": "", "status": "ok", "seconds": None, "details": {}}
    return {**usual, **given, "explainer": explainer, "metrics": metrics}


@pytest.fixture(scope="session")
def make_cell() -> Callable[..., dict[str, Any]]:
    return cell


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(cell(...), ..., data={...}, models={...})``: a finished run; summaries by label."""

    def write(
        *cells: Mapping[str, Any],
        name: str = "run",
        data: Mapping[str, Any] | None = None,
        models: Mapping[str, Any] | None = None,
    ) -> Run:
        directory = tmp_path / name
        directory.mkdir()
        plan, scores, costs, details = [], [], [], []
        for of in cells:
            labels = {label: of[label] for label in ("dataset", "model", "explainer")}
            key = "/".join(labels.values())
            columns = [
                {"name": m, "direction": "lower" if m in LOWER else "higher", "range": None, "question": ""}
                for m in of["metrics"]
            ]
            ended = {"role": of["role"], "status": of["status"], "reason": ""}
            plan.append({"cell": key, **labels, **ended, "metrics": columns, "stages": {}})
            size = len(next(iter(of["metrics"].values())))
            units = pd.DataFrame({"cell": key, "unit": [f"u{n}" for n in range(size)]})
            if of["status"] != "ok":
                continue
            known = units.assign(**labels, status="ok")
            scores += [known.assign(metric=m, value=[*v]) for m, v in of["metrics"].items()]
            costs.append(units.assign(elapsed_seconds=of["seconds"] or [0.001] * size))
            details += [units.assign(name=n, value=v) for n, v in of["details"].items()]
        document = {
            "suite": "tabular",
            "layout": {"by": ["dataset", "model"], "row": "explainer"},
            "cells": plan,
            "summaries": {"data": data or {"flowers": NUMERICAL}, "model": models or {}},
        }
        (directory / "plan.json").write_text(json.dumps(document))
        pd.concat(scores).astype({"value": float}).to_parquet(directory / "scores.parquet")
        pd.concat(costs).to_parquet(directory / "costs.parquet")
        if details:
            pd.concat(details).to_parquet(directory / "details.parquet")
        return Run(directory)

    return write


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two numerical data sets and a categorical one, queried twice."""
    study = {
        "suite": "tabular",
        "data": ["iris", "wine", "balance-scale"],
        "classifiers": ["mlp"],
        "explainers": ["nearest-enemy", "sedc", {"name": "growing-spheres", "samples": 100}],
        "protocol": {"factuals": 10, "repeats": True},
        "executor": "inline",
    }
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        return cfbench_core.run(study, out=folder / "run")
