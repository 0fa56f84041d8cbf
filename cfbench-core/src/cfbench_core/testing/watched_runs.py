"""Runs in which all code counts as another distribution's: none of it may be taken for code that harms others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import cfbench_core
import cfbench_core.runner
from cfbench_core.testing.checks import require


def check_watched_run(configuration: Mapping[str, Any], folder: Path) -> None:
    """Runs a configuration as usual, and with every task watched as code of another distribution is.

    Raises:
        AssertionError: if a cell fails, or the scores differ.
    """
    document = {**configuration, "executor": "inline"}
    tables = []
    for name in ("usual", "watched"):
        domain = (lambda stage: "everything") if name == "watched" else cfbench_core.runner.domain
        with (
            mock.patch.dict(os.environ, CFBENCH_CACHE_DIR=str(folder / name / "cache")),
            mock.patch.object(cfbench_core.runner, "domain", domain),
        ):
            run = cfbench_core.run(document, out=folder / name / "run")
        failed = [cell.reason for cell in run.cells() if cell.status not in ("ok", "skipped")]
        require(not failed, f"{name}: {failed}")
        scores = run.scores[run.scores["metric"] != "time"]
        tables.append(scores.sort_values(list(scores.columns)).reset_index(drop=True))
    require(tables[0].equals(tables[1]), "the scores of a watched run differ")
