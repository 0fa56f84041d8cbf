"""With the suite of recommenders and this distribution alone, the command lists and runs its explainers.

Alone it is where ``nox`` runs the tests: in an environment with what the distribution declares.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def cfbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a newcomer has it: without data, and with an empty cache."""
    variables = {**os.environ, "CFBENCH_CACHE_DIR": str(folder / "cache"), "NO_COLOR": "1", "COLUMNS": "160"}
    variables.pop("CFBENCH_DATA_DIR", None)
    program = [sys.executable, "-m", "cfbench_core", *arguments]
    return subprocess.run(program, cwd=folder, env=variables, capture_output=True, text=True, timeout=600)


def test_it_lists_and_runs(tmp_path: Path) -> None:
    assert "cf-gnnexplainer" in cfbench(tmp_path, "list", "explainers").stdout
    done = cfbench(tmp_path, "run", "--output", "runs/default", "--set", "protocol.users=20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Example:" in done.stdout and "report.html" in done.stdout
    assert (tmp_path / "runs/default/report.html").stat().st_size > 10_000
