"""A run directory, made up but realistic: what the tests of everything that reads one have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.reports.tables import Table
from cfbench_core.run_directory import Run

METRICS = [
    ("POS-P@5", "lower", (0.0, 1.0), "How long does the item stay when its supporters go first?"),
    ("NEG-P@5", "higher", (0.0, 1.0), "How long does the item stay when its supporters go last?"),
    ("gini", "", (0.0, 1.0), "How unevenly is importance spread?"),
]
MODELS = {"mf": {"HR@10": 0.49, "NDCG@10": 0.31}, "lightgcn": {"HR@10": 0.5, "NDCG@10": 0.32}}
EXPLAINERS = {  # POS-P, NEG-P, gini, seconds, role
    "lime-rs": (0.221, 0.612, 0.41, 0.0010, ""),
    "shap": (0.223, 0.615, 0.47, 0.0095, ""),
    "cosine": (0.310, 0.520, 0.28, 0.0002, ""),
    "slow & careful_1": (0.240, 0.600, 0.55, 1.4, ""),
    "exact-contribution": (0.205, 0.630, 0.44, 0.0001, "certified"),
    "random": (0.402, 0.405, 0.33, 0.00005, "baseline"),
}
ITEMS, CHUNK = 5, 20


def write_run(directory: Path, seed: int = 0, users: int = 60, shift: float = 0.0) -> Path:
    """2 models x 6 explainers x 2 levels: 24 cells, of which one is partial, one timed out, one failed, two
    are skipped.

    At item level a user has five units, which are alike. ``shift`` is added to every score.
    """
    generator = np.random.default_rng(seed)
    effects = generator.normal(0, 0.12, size=users)
    cells: list[dict[str, Any]] = []
    scores: list[pd.DataFrame] = []
    costs: list[pd.DataFrame] = []
    for model in MODELS:
        for level in ("item", "list"):
            for explainer, (*means, seconds, role) in EXPLAINERS.items():
                cell = _cell(model, explainer, level, role)
                cells.append(cell)
                if cell["status"] == "skipped":
                    continue
                units = _units(users, level)
                user = units["user"].str[1:].astype(int).to_numpy()
                done = (cell["status"] == "ok") | ((cell["status"] == "partial") & (user < CHUNK))
                about = {name: cell[name] for name in ("cell", "dataset", "model", "explainer", "level", "k")}
                for (metric, *_), mean in zip(METRICS, means, strict=True):
                    values = mean + shift + effects[user] + generator.normal(0, 0.04, len(units))
                    scores.append(
                        units.assign(
                            **about,
                            suite="shop",
                            metric=metric,
                            value=np.where(done, values.clip(0, 1).round(6), np.nan),
                            status=np.where(
                                done, "ok", "timeout" if cell["status"] == "partial" else cell["status"]
                            ),
                        )
                    )
                spent = seconds * generator.lognormal(0, 0.3, len(units))
                costs.append(units[["unit"]].assign(cell=cell["cell"], elapsed_seconds=spent)[done])
    directory.mkdir(parents=True, exist_ok=True)
    layout = {
        "by": ["dataset", "model", "level", "k"],
        "row": "explainer",
        "cluster": "user",
        "label_formats": {"level": "{} level", "k": "top {}"},
    }
    (directory / "plan.json").write_text(json.dumps({"suite": "shop", "layout": layout, "cells": cells}))
    (directory / "config.yaml").write_text(f"suite: shop\nseed: {seed}\nprotocol:\n  k:\n  - 5\n")
    packages = {"cfbench-core": "0.1.0", "numpy": "2.4.6"}
    (directory / "environment.json").write_text(json.dumps({"packages": packages, "cores": 2, "seed": seed}))
    pd.concat(scores).to_parquet(directory / "scores.parquet", index=False)
    pd.concat(costs).to_parquet(directory / "costs.parquet", index=False)
    explanations = pd.concat(costs)[["cell", "unit"]].assign(edge_item="python3-numpy", op="remove")
    explanations.to_parquet(directory / "explanations.parquet", index=False)
    quality = [
        f"toy-shop,{model},{metric},{value},502,{value - 0.04:.2f},{value + 0.04:.2f}"
        for model, q in MODELS.items()
        for metric, value in q.items()
    ]
    (directory / "quality.csv").write_text(
        "\n".join(["dataset,model,metric,value,n,ci_low,ci_high", *quality]) + "\n"
    )
    return directory


def small_run(
    directory: Path,
    values: dict[str, list[float]],
    direction: str = "higher",
    roles: dict[str, str] | None = None,
) -> Run:
    """One table: an explainer for each key, its scores for units u0, u1, ..."""
    roles = roles or {}
    directory.mkdir()
    metric = {"name": "hit", "direction": direction, "range": [0, 1], "question": "Does it <hit> & hold?"}
    cells = [
        {"cell": f"d/m/{name}", "dataset": "d", "model": "m", "explainer": name, "role": roles.get(name, ""),
         "status": "ok", "reason": "", "metrics": [metric], "stages": {}}
        for name in values
    ]  # fmt: skip
    layout = {"by": ["dataset", "model"], "row": "explainer"}
    (directory / "plan.json").write_text(json.dumps({"suite": "toy", "layout": layout, "cells": cells}))
    rows = [
        {"cell": f"d/m/{name}", "metric": "hit", "unit": f"u{n}", "value": value, "status": "ok"}
        for name, scores in values.items()
        for n, value in enumerate(scores)
    ]
    frame = pd.DataFrame(rows)
    frame.to_parquet(directory / "scores.parquet")
    for name in ("costs", "explanations"):
        frame[["cell", "unit"]].head(0).assign(elapsed_seconds=1.0).to_parquet(directory / f"{name}.parquet")
    (directory / "quality.csv").write_text("dataset,model,metric,value,n,ci_low,ci_high\n")
    (directory / "config.yaml").write_text("suite: toy\n")
    (directory / "environment.json").write_text("{}")
    return Run(directory)


def emphasis(table: Table, place: int = 0) -> dict[str, str]:
    return {row.name: row.entries[place].emphasis for row in table.rows}


def _cell(model: str, explainer: str, level: str, role: str) -> dict[str, Any]:
    labels = {"dataset": "toy-shop", "model": model, "explainer": explainer, "level": level, "k": 5}
    status, reason = _outcome(model, explainer, level)
    metrics = [
        dict(zip(("name", "direction", "range", "question"), metric, strict=True)) for metric in METRICS
    ]
    return {
        "cell": "/".join(map(str, labels.values())),
        **labels,
        "role": role,
        "status": status,
        "reason": reason,
        "metrics": [] if status == "skipped" else metrics,
        "stages": {},
    }


def _outcome(model: str, explainer: str, level: str) -> tuple[str, str]:
    if model == "lightgcn" and explainer == "exact-contribution":
        return "skipped", "needs access weights, which lightgcn does not offer"
    return {
        ("mf", "slow & careful_1", "item"): ("partial", "2 of 3 chunks: ended after 30 s"),
        ("lightgcn", "slow & careful_1", "item"): ("timeout", "ended after 30 s"),
        ("lightgcn", "cosine", "list"): (
            "failed",
            "ValueError: <cosine> of an empty profile, 100% wrong_type",
        ),
    }.get((model, explainer, level), ("ok", ""))


def _units(users: int, level: str) -> pd.DataFrame:
    if level == "list":
        return pd.DataFrame(
            {"unit": [f"u{u}" for u in range(users)], "user": [f"u{u}" for u in range(users)]}
        )
    pairs = [(u, rank) for u in range(users) for rank in range(1, ITEMS + 1)]
    return pd.DataFrame([{"unit": f"u{u}/{rank}", "user": f"u{u}", "rank": rank} for u, rank in pairs])
