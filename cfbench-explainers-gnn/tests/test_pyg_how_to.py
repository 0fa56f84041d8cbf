"""The page docs/how-to/explain-a-pyg-model.md: its files are written and its commands executed as printed."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "explain-a-pyg-model.md"


@pytest.mark.slow
def test_the_commands_of_the_page_work_as_printed(tmp_path: Path) -> None:
    blocks = re.findall(
        r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CFBENCH_CACHE_DIR": str(tmp_path / "cache"),
    }
    executed = 0
    for language, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        if language == "sh":
            done = subprocess.run(
                ["bash", "-ec", text],
                cwd=tmp_path,
                env=variables,
                capture_output=True,
                text=True,
                timeout=600,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            executed += 1
    assert executed == 3
    with (tmp_path / "runs" / "pyg" / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(row["explainer"], row["metric"]): float(row["mean"] or "nan") for row in rows if row["mean"]}
    for explainer in ("GNNExplainer", "PGExplainer"):
        assert found[explainer, "PN-S@5"] > 0
        assert found[explainer, "time"] > 0
