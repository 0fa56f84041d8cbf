"""Runs of the toy suite, with a cache of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy_runs import SAMPLES


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(SAMPLES)
