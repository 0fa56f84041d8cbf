"""Run directories written by hand, so that what an analysis makes of them is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cfbench_core.run_directory import Run

DIRECTIONS = {
    "POS-P": "lower",
    "POS-P curve": "lower",
    "POS": "lower",
    "CDCG": "lower",
    "DEL": "lower",
    "#Perturb given success": "lower",
}
NEITHER = ("#Additions", "#Perturb", "Empty-profile POS-P")
LABELS = ("dataset", "model", "explainer", "level", "format", "scope", "edit", "k")
Values = Sequence[float | None]
Write = Callable[..., Run]


def direction(metric: str) -> str:
    name = metric.partition("@")[0].partition("[")[0].removeprefix("curve-")
    return "" if name in NEITHER else DIRECTIONS.get(name, "higher")


def cell(explainer: str, metrics: Mapping[str, Values], **given: Any) -> dict[str, Any]:
    """A cell of a run. The units are u0/1, u0/2, u1/1, ... (item level: k for each user) or u0, u1, ... (list level).

    ``given``: other labels than the usual; ``role``, ``status``, ``seconds`` (of each unit), ``stages``, ``details``,
    ``answers`` (for each unit the removed items of its user, or (user, item, op) of any edit).
    """
    usual = {
        "dataset": "shop",
        "model": "mf",
        "explainer": explainer,
        "level": "item",
        "format": "implicit",
        "scope": "user-vector",
        "edit": "remove",
        "k": 2,
    }
    other = {"role": "", "status": "ok", "seconds": None, "stages": {}, "details": {}, "answers": []}
    return {**usual, **other, **given, "metrics": metrics}


def _units(of: Mapping[str, Any]) -> pd.DataFrame:
    number = len(next(iter(of["metrics"].values())))
    if of["level"] == "list":
        return pd.DataFrame(
            {"unit": [f"u{n}" for n in range(number)], "user": [f"u{n}" for n in range(number)]}
        )
    users, ranks = zip(*((n // of["k"], n % of["k"] + 1) for n in range(number)), strict=True)
    return pd.DataFrame(
        {
            "unit": [f"u{user}/i{rank}" for user, rank in zip(users, ranks, strict=True)],
            "user": [f"u{user}" for user in users],
            "rank": [float(rank) for rank in ranks],
        }
    )


def _written(
    directory: Path, cells: Sequence[Mapping[str, Any]], without: Sequence[str], outcomes: Any
) -> Run:
    directory.mkdir(parents=True)
    labels = [label for label in LABELS if label not in without]
    plan, scores, costs, details = [], [], [], []
    answers: list[dict[str, Any]] = []
    for of in cells:
        own = {label: of[label] for label in labels}
        name = "/".join(str(value) for value in own.values())
        plan.append(
            {
                "cell": name,
                **own,
                "role": of["role"],
                "status": of["status"],
                "reason": "",
                "metrics": [
                    {"name": metric, "direction": direction(metric), "range": None, "question": ""}
                    for metric in of["metrics"]
                ],
                "stages": of["stages"],
            }
        )
        units = _units(of).assign(cell=name)
        for metric, values in of["metrics"].items():
            scores.append(units.assign(metric=metric, value=[*values], status="ok"))
        seconds = of["seconds"] or [0.001 * (1 + n) for n in range(len(units))]
        costs.append(units[["cell", "unit"]].assign(elapsed_seconds=seconds))
        for reported, values in of["details"].items():
            details.append(units[["cell", "unit"]].assign(name=reported, value=values))
        for unit, user, edits in zip(units["unit"], units["user"], of["answers"], strict=False):
            for edit in edits:
                edge_user, item, op = (user, edit, "remove") if isinstance(edit, str) else edit
                edge = {"edge_user": edge_user, "edge_item": item, "op": op}
                answers.append({"cell": name, "unit": unit, **edge})
    by = [name for name in ("dataset", "model", "level", "k", "format", "edit", "scope") if name in labels]
    layout = {"by": by, "row": "explainer", "cluster": "user"}
    (directory / "plan.json").write_text(json.dumps({"suite": "recsys", "layout": layout, "cells": plan}))
    pd.concat(scores).astype({"value": float}).to_parquet(directory / "scores.parquet")
    pd.concat(costs).to_parquet(directory / "costs.parquet")
    if details:
        pd.concat(details).to_parquet(directory / "details.parquet")
    if answers:
        pd.DataFrame(answers).to_parquet(directory / "explanations.parquet")
    models = {(of["dataset"], of["model"]) for of in cells}
    lines = [f"{dataset},{model},HR@10,0.25,200,0.19,0.31" for dataset, model in sorted(models)]
    (directory / "quality.csv").write_text(
        "\n".join(["dataset,model,metric,value,n,ci_low,ci_high", *lines]) + "\n"
    )
    (directory / "outcomes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in outcomes))
    return Run(directory)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(cell(...), cell(...), name="run", without=("edit",), outcomes=[...])``: a finished run of these cells."""

    def write(
        *cells: Mapping[str, Any], name: str = "run", without: Sequence[str] = (), outcomes: Any = ()
    ) -> Run:
        return _written(tmp_path / name, cells, without, outcomes)

    return write


@pytest.fixture(scope="session")
def make_cell() -> Callable[..., dict[str, Any]]:
    """:func:`cell`, for tests: files of tests cannot import each other."""
    return cell
