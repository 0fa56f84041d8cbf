"""What may be wrong with this installation: versions, GPU, folders, disk space. Changes nothing."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cfbench_core.cores import usable_cores
from cfbench_core.registry import installed
from cfbench_core.store import default_root
from cfbench_core.usable_memory import usable_memory
from cfbench_core.wording import count_of, size

LITTLE_SPACE = 2e9
"""Bytes of free disk below which a study of some size may not fit."""


class Finding(NamedTuple):
    """The result of one check. ``advice`` is empty if there is no problem."""

    subject: str
    found: str
    advice: str = ""


def diagnose() -> list[Finding]:
    """Checks the installation, the folder of the cache and the working directory."""
    return [*_findings()]


def _findings() -> Iterator[Finding]:
    yield Finding(
        "python", f"{platform.python_version()} on {platform.platform(terse=True)}, {sys.executable}"
    )
    yield _machine()
    yield _torch()
    yield from _distributions()
    for problem in installed().problems():
        yield Finding("plugin", problem, "see 'cfbench plugins --tracebacks'")
    yield _writable("cache", default_root(), "choose another folder with $CFBENCH_CACHE_DIR")
    yield from _data_folders()
    yield _writable(
        "runs", Path("runs").absolute(), "give 'cfbench run' a folder that you may write to, with --output"
    )


def _machine() -> Finding:
    import psutil

    memory, usable = psutil.virtual_memory(), usable_memory()
    free = f"{size(memory.total)} memory, {size(memory.available)} of it free"
    if not usable.limit.startswith("this machine"):
        free += f"; {usable.limit}"
    return Finding("machine", f"{count_of(usable_cores(), 'core')}, {free}")


def _torch() -> Finding:
    """Queried in another process: only torch knows of the GPU, and the core does not import torch."""
    if find_spec("torch") is None:
        return Finding("torch", "not installed (not every suite needs it)")
    question = (
        "import torch; gpu = torch.cuda.is_available(); "
        "print(torch.__version__, '·', torch.cuda.get_device_name(0) if gpu else 'no GPU, uses the CPU')"
    )
    answer = subprocess.run(
        [sys.executable, "-c", question], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if answer.returncode:
        error = (answer.stderr.strip().splitlines() or ["no error message"])[-1]
        return Finding("torch", f"cannot be imported: {error}", "install it anew: pip install torch")
    return Finding("torch", answer.stdout.strip())


def _distributions() -> Iterator[Finding]:
    """Every distribution that brings something, with its version."""
    registry = installed()
    names = dict.fromkeys(plugin.distribution for plugin in registry.plugins)
    for name in names:
        yield Finding(name, metadata.version(name))
    if not registry.suites():
        yield Finding("suites", "none is installed", "'cfbench list' says what to install")


def _data_folders() -> Iterator[Finding]:
    from cfbench_core.data_files import search_path

    for place in search_path():
        there = "" if place.folder.is_dir() else ", not there yet"
        yield Finding("data", f"{place.folder.absolute()} ({place.name}{there})")


def _writable(subject: str, folder: Path, advice: str) -> Finding:
    """Whether a folder can be written to (or made), and the room on its disk."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()  # asking for rights would not do: root has all
    except OSError as error:
        return Finding(subject, f"{folder}: cannot be written to ({error.strerror})", advice)
    free = shutil.disk_usage(there).free
    too_little = "little space left: 'cfbench cache gc' makes some" if free < LITTLE_SPACE else ""
    return Finding(subject, f"{folder}, {size(free)} free", too_little)
