"""The toy suite as an installed distribution, found through its entry point, and the command line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cfbench_core.cli import main
from cfbench_core.registry import installed

PLUGIN = """
from cfbench_core.hooks import hookimpl

@hookimpl
def cfbench_components():
    import toy_suite
    return toy_suite.SPECS
"""


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """``install("cfbench-mine", "1.0", source, *requires)``: a distribution with one plugin module."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    installed.cache_clear()

    def put(name: str, version: str, source: str, *requires: str) -> None:
        module = name.replace("-", "_") + "_plugin"
        (site / f"{module}.py").write_text(source)
        folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        (folder / "entry_points.txt").write_text(f"[cfbench]\nplugin = {module}\n")
        importlib.invalidate_caches()
        installed.cache_clear()

    yield put
    for path in site.iterdir():
        sys.modules.pop(path.stem, None)
    installed.cache_clear()


@pytest.fixture
def toy(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy suite is installed; returns the working directory, which is new and has a study of it."""
    install("cfbench-toy", "1.0", PLUGIN)
    task = tmp_path / "work"
    task.mkdir()
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CFBENCH_DATA_DIR", raising=False)
    monkeypatch.chdir(task)
    (task / "study.yaml").write_text(
        "suite: toy\n"
        "data: {name: numbers, count: 20}\n"
        "models: times\n"
        "explainers: [digits]\n"
        "executor: inline\n"
        "chunk: 4\n"
    )
    return task


@pytest.fixture
def cfbench(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command line in this process."""

    def run(*arguments: str | Path) -> Result:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return run
