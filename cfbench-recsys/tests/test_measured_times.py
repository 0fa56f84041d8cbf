"""The time of an explanation is that of the explainer's call: no libraries are loaded and no data are read in it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from cfbench_core import run
from cfbench_recsys.steps import chunks

SECONDS = 1.0
"""What loading the library, reading the data or computing takes in these tests."""
LATE = """
import time

import numpy as np


class Late:
    def __init__(self, config=None):
        pass

    def importances(self, targets, context):
        import a_slow_library

        if "computed" not in context.cache:
            time.sleep(context.cache.setdefault("computed", a_slow_library.SECONDS * a_slow_library.once))
        return np.asarray(context.training.sum(axis=0)).ravel()[targets.history].astype(float)
"""


@pytest.fixture(autouse=True)
def own_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def seconds_of_chunks(tmp_path: Path, explainer: str, once: int) -> list[float]:
    """The time of each of three users, who are explained one after the other, in this process."""
    library = f"import time\n\ntime.sleep({SECONDS})\nSECONDS = {SECONDS}\nonce = {once}\n"
    name = f"{explainer}_library"
    (tmp_path / f"{name}.py").write_text(library, encoding="utf-8")
    (tmp_path / f"{explainer}.py").write_text(LATE.replace("a_slow_library", name), encoding="utf-8")
    study: dict[str, Any] = {
        "suite": "recsys",
        "data": [{"name": "synthetic", "users": 40, "items": 25, "interactions": 300}],
        "recommenders": ["popularity"],
        "explainers": [{"import": f"{explainer}:Late", "label": "late"}],
        "protocol": {"users": 3, "format": "implicit", "k": 1, "level": "list"},
        "metrics": ["pos-p"],
        "executor": "inline",
        "chunk": 1,
    }
    return run(study, out=tmp_path / "run").costs["elapsed_seconds"].tolist()


def test_loading_a_library_is_not_counted(tmp_path: Path) -> None:
    assert max(seconds_of_chunks(tmp_path, "loads_late", once=0)) < SECONDS / 2


def test_what_is_computed_once_is_counted_in_the_call_that_computes_it(tmp_path: Path) -> None:
    """Also where that call was timed again, because it loaded a library."""
    first, *others = seconds_of_chunks(tmp_path, "computes_once", once=1)
    assert SECONDS <= first < 2 * SECONDS
    assert max(others) < SECONDS / 2


def test_reading_the_data_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, load_split = [], chunks.load_split

    def slowly(folder: Path) -> Any:
        read.append(folder)
        time.sleep(SECONDS)
        return load_split(folder)

    monkeypatch.setattr(chunks, "load_split", slowly)
    assert max(seconds_of_chunks(tmp_path, "reads_late", once=0)) < SECONDS / 2
    assert read
