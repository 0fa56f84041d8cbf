"""A run of each suite: computed, or those of the folder ``CFBENCH_VIEW_RUNS``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITES = ("recsys", "tabular", "text")
SETTINGS = {
    "recsys": (
        "protocol.users=20",
        "recommenders=[ease]",
        "explainers=[lime-rs, cosine, greedy, smallest, random]",
    ),
    "tabular": ("data=[iris]", "explainers=[nice, dice-random, growing-spheres, random]"),
    "text": (),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    given = os.environ.get("CFBENCH_VIEW_RUNS")
    folder = Path(given) if given else tmp_path_factory.mktemp("runs")
    for suite in SUITES if not given else ():
        changes = [part for change in SETTINGS[suite] for part in ("--set", change)]
        command = [sys.executable, "-m", "cfbench_core", "run", "--suite", suite, "--offline", "-q", *changes]
        subprocess.run([*command, "--output", str(folder / suite)], check=True, timeout=900)
    return [folder / suite for suite in SUITES]
