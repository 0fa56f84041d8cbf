"""Settings of the process that a task may change."""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cfbench_core.isolation.global_state import restored


def mask() -> int:
    found = os.umask(0o022)
    os.umask(found)
    return found


CHANGES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "random": (lambda: random.seed(1), random.getstate),
    "numpy": (lambda: np.random.seed(1), lambda: np.random.get_state()[1].tolist()),
    "errors": (lambda: np.seterr(all="raise"), np.geterr),
    "environment": (lambda: os.environ.update(CFBENCH_TEST="1"), lambda: dict(os.environ)),
    "cleared environment": (os.environ.clear, lambda: dict(os.environ)),
    "directory": (lambda: os.chdir("/"), Path.cwd),
    "signals": (
        lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGTERM),
    ),
    "path": (sys.path.clear, lambda: list(sys.path)),
    "warnings": (lambda: warnings.simplefilter("error"), lambda: list(warnings.filters)),
    "logging": (lambda: logging.disable(50), lambda: logging.getLogger().manager.disable),
    "recursion": (lambda: sys.setrecursionlimit(9000), sys.getrecursionlimit),
    "mask": (lambda: os.umask(0o777), mask),
    "garbage": (gc.disable, gc.isenabled),
    "output": (lambda: setattr(sys, "stdout", None), lambda: sys.stdout),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_that_a_task_changes_is_restored(name: str) -> None:
    change, read = CHANGES[name]
    before = read()
    with restored():
        change()
    assert read() == before


def test_settings_are_restored_after_an_exception() -> None:
    before = random.getstate()
    with pytest.raises(ValueError, match="mine"), restored():
        random.seed(1)
        raise ValueError("mine")
    assert random.getstate() == before


def test_a_deleted_working_directory_does_not_stop_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with restored():
        pass


@pytest.mark.slow
def test_settings_of_torch_are_restored() -> None:
    torch = pytest.importorskip("torch")
    with restored():
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        torch.set_grad_enabled(False)
        torch.manual_seed(3)
    assert torch.get_default_dtype() == torch.float32
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.is_grad_enabled()
    assert torch.initial_seed() != 3
