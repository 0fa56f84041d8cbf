"""A study of a CSV file with relations between columns, run with the certified explainers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cfbench_core import api

pytest.importorskip("ortools", reason="tree-optimum needs cfbench-tabular[trees]")
pytest.importorskip("z3", reason="mace needs cfbench-tabular[mace]")

ROWS = 160


def contracts(folder: Path) -> Path:
    """Contracts with a beginning, an end, and a total of two amounts; long and dear ones are refused."""
    draw = np.random.default_rng(5)
    begin = pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 400, ROWS), unit="D")
    days, fee, rent = draw.integers(0, 300, ROWS), draw.integers(1, 40, ROWS), draw.integers(5, 90, ROWS)
    table = pd.DataFrame(
        {
            "begin": begin.strftime("%Y-%m-%d"),
            "end": (begin + pd.to_timedelta(days, unit="D")).strftime("%Y-%m-%d"),
            "fee": fee,
            "rent": rent,
            "total": fee + rent,
            "decision": np.where(days / 300 + (fee + rent) / 130 > 1, "refused", "granted"),
        }
    )
    path = folder / "contracts.csv"
    table.to_csv(path, index=False)
    return path


def run(folder: Path, option: str | None, **columns: object) -> pd.DataFrame:
    """The rows of the counterfactuals, with explainer and unit."""
    path = contracts(folder)
    document = {
        "suite": "tabular",
        "data": [
            {
                "name": "csv",
                "file": str(path),
                "constraints": [
                    {"column": "end", "relation": "at_least", "of": ["begin"]},
                    {"column": "total", "relation": "sum", "of": ["fee", "rent"]},
                ],
                **columns,
            }
        ],
        "classifiers": ["logistic-regression", {"name": "gradient-boosting", "trees": 10}],
        "explainers": ["optimum", "mace", "tree-optimum", "nice"],
        "protocol": {"factuals": 4, **({"constraints": option} if option else {})},
        "metrics": ["validity", "feasibility", "l2"],
        "executor": "inline",
    }
    found = api.run(document, out=folder / "run")
    table = pd.read_csv(path)
    rows = []
    for (_, explainer, unit), part in found.explanations.groupby(["cell", "explainer", "unit"]):
        row = table.loc[int(unit)].to_dict() | dict(zip(part["column"], part["value"], strict=True))
        rows.append({"explainer": explainer, "unit": unit, "before": table.loc[int(unit)].to_dict(), **row})
    result = pd.DataFrame(rows)
    for name in ("fee", "rent", "total"):
        result[name] = result[name].astype(float)
    result["satisfied"] = (result["end"] >= result["begin"]) & (
        result["total"] == result["fee"] + result["rent"]
    )
    return result


def test_by_default_certified_counterfactuals_satisfy_the_relations(tmp_path: Path) -> None:
    found = run(tmp_path, None, immutable=["begin"])
    assert set(found["explainer"]) == {"optimum", "mace", "tree-optimum", "nice"}
    assert found["satisfied"].all()
    assert all(row["before"]["begin"] == row["begin"] for _, row in found.iterrows())


@pytest.mark.slow
def test_with_check_they_are_left_to_the_metrics(tmp_path: Path) -> None:
    found = run(tmp_path, "check")
    assert not found.query("explainer in ['optimum', 'mace', 'tree-optimum']")["satisfied"].all()
