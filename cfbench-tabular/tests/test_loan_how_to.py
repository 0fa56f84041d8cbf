"""The page docs/how-to/explain-a-rejected-loan.md: its files are written and its commands executed as printed."""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas
import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "explain-a-rejected-loan.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.]+)"| (\w+))?\n(.*?)^```', re.MULTILINE | re.DOTALL)


def executed(command: str, folder: Path) -> str:
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CFBENCH_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=variables, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shown(cell: str) -> str:
    """A cell as explanations show it: 1.234,50 is 1234.50 and 31.12.2024 is 2024-12-31."""
    if re.fullmatch(r"\d\d\.\d\d\.\d{4}", cell):
        return "-".join(reversed(cell.split(".")))
    return cell.replace(".", "").replace(",", ".") if "," in cell else cell


@pytest.mark.slow
def test_the_commands_of_the_page_work_as_printed(tmp_path: Path) -> None:
    outputs, page = {}, PAGE.read_text("utf-8")
    for language, title, library, text in BLOCK.findall(page):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        if language == "sh" and (not library or importlib.util.find_spec(library) is not None):
            outputs[text] = executed(text, tmp_path)
    assert len(outputs) >= 2
    drafted, written = (
        yaml.safe_load((tmp_path / f"{name}.yaml").read_text("utf-8"))["data"][0]
        for name in ("drafted", "loan")
    )
    for key in ("separator", "encoding", "decimal", "thousands", "date_format", "class_column", "missing"):
        assert written[key] == drafted[key], key
    assert "-" in drafted["missing_marks"]
    assert drafted["columns"]["number"] == drafted["columns"]["remark"] == "drop"
    assert drafted["columns"]["applied"] == "date"
    printed = next(text for command, text in outputs.items() if "explain runs/pipeline" in command)
    sentences = " ".join(printed.split())  # lines are as long as the terminal is wide
    assert re.search(
        r"row \d+ of loans counts as (accepted|rejected) for pipeline; with .* instead of", sentences
    )
    with (tmp_path / "loans.csv").open(encoding="windows-1252", newline="") as file:
        applications = list(csv.DictReader(file, delimiter=";"))
    for run in ("pipeline", "several"):
        for change in pandas.read_parquet(tmp_path / "runs" / run / "explanations.parquet").itertuples():
            assert shown(applications[change.row][change.column]) == change.original
    examples = re.findall(
        r"row (\d+) of loans counts as [^;]*; with income \S+ EUR instead of ([\d.]+) EUR", page
    )
    assert examples
    for row, before in examples:
        assert shown(applications[int(row)]["income"]) == before
    dropped = [row for row, one in enumerate(applications) if one["income"] == "-"]
    (named,) = {int(row) for row in re.findall(r"--unit (\d+)` says so", page)}
    assert named in dropped
    several = next(text for command, text in outputs.items() if "explain runs/several" in command)
    assert re.search(r"instead of [\d.]+ EUR.*, or with .* it would count as", " ".join(several.split()))
    filled = pandas.read_parquet(tmp_path / "runs" / "filled" / "scores.parquet")["imputed"].dropna()
    assert len(filled) and filled.str.fullmatch(r'\{"income": "\d+\.\d\d"\}').all()
    for run in ("pipeline", "xgboost"):
        if not (tmp_path / "runs" / run).is_dir():
            continue
        with (tmp_path / "runs" / run / "summary.csv").open(encoding="utf-8", newline="") as file:
            found = {(row["explainer"], row["metric"]): row["mean"] for row in csv.DictReader(file)}
        assert float(found["nice", "feasible"]) == 1.0
        assert run == "pipeline" or float(found["tree-optimum", "L2"]) <= float(found["nice", "L2"])
