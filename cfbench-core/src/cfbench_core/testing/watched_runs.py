"""Runs in which all code counts as another distribution's: none of it may be taken for code that harms others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import cfbench_core
from cfbench_core import expansion
from cfbench_core.isolation.domains import domain as usual
from cfbench_core.stages import Stage
from cfbench_core.testing.checks import require


def everything(stage: Stage) -> str:
    """The domain of every stage; in place of ``isolation.domains.domain``."""
    return "everything"


def check_watched_run(configuration: Mapping[str, Any], folder: Path) -> None:
    """Runs a configuration as usual, and with every task watched as code of another distribution is.

    Raises:
        AssertionError: if a cell fails, or the scores differ.
    """
    document = {**configuration, "executor": "inline"}
    tables = []
    for name in ("usual", "watched"):
        domain = everything if name == "watched" else usual
        with (
            mock.patch.dict(os.environ, CFBENCH_CACHE_DIR=str(folder / name / "cache")),
            mock.patch.object(expansion, "domain", domain),
        ):
            run = cfbench_core.run(document, out=folder / name / "run")
        failed = [cell.reason for cell in run.cells() if cell.status not in ("ok", "skipped")]
        require(not failed, f"{name}: {failed}")
        scores = run.scores[run.scores["metric"] != "time"]
        tables.append(scores.sort_values(list(scores.columns)).reset_index(drop=True))
    require(tables[0].equals(tables[1]), "the scores of a watched run differ")
