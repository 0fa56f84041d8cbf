"""What a run ran on: versions, hardware, code; for ``environment.json``. Never an environment variable."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cfbench_core.cores import usable_cores
from cfbench_core.distribution_metadata import field_of, fields_of, requirements_of
from cfbench_core.redaction import redacted

_COMMAND_SECONDS = 10
"""A tool that does not answer in this time is taken for absent."""


def capture(folder: Path | None = None) -> dict[str, Any]:
    """Everything about this machine and installation that may explain a number, as JSON.

    Args:
        folder: whose git state is recorded; the current one if None.
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [redacted(argument) for argument in sys.argv],
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "hardware": hardware(),
        "distributions": versions(),
        "git": git_state(folder if folder is not None else Path.cwd()),
    }


NUMERICAL = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch")
"""Libraries whose versions every artifact records, where they are installed."""


@functools.cache
def provenance() -> dict[str, Any]:
    """Who computes in this process: versions of cfbench, Python and the numerical libraries, and the platform, as JSON.

    Part of every artifact, so that a result from the cache still says which environment produced it.
    """
    ours: dict[str, str] = {}
    for name, version, _ in _cfbench_distributions():
        ours.setdefault(canonicalize_name(name), version)  # the first one is what is imported
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "processor": _processor(),
        "versions": dict(sorted(ours.items()))
        | {name: _version(name) for name in NUMERICAL if _version(name)},
    }


def hardware() -> dict[str, Any]:
    """Processor, cores, memory and GPUs."""
    import psutil

    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores_logical": os.cpu_count(),
        "cores_physical": psutil.cpu_count(logical=False),
        "cores_usable": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "gpus": _gpus(),
    }


def versions() -> dict[str, str]:
    """Every installed cfbench distribution (and plugin) and all that they declare to need, with versions."""
    found = {}
    for name, version, requirements in _cfbench_distributions():
        found[canonicalize_name(name)] = version
        for line in requirements:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed = _version(requirement.name)
                if needed:
                    found[canonicalize_name(requirement.name)] = needed
    return dict(sorted(found.items()))


def git_state(folder: Path) -> dict[str, Any] | None:
    """The commit that ``folder`` is at, and whether files differ from it; None outside of a repository."""
    commit = _answer("git", "-C", str(folder), "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _answer("git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


@functools.cache
def _cfbench_distributions() -> tuple[tuple[str, str, list[str]], ...]:
    """Name, version and requirements: ours by name, and those of others by their entry point. Half an installation, which
    lacks its name or version, is not among them; ``cfbench plugins`` shows it."""
    found = []
    for distribution in metadata.distributions():
        fields = fields_of(distribution)
        name, version = fields.get("Name"), fields.get("Version")
        own = (name or "").startswith("cfbench-")
        if name and version and (own or any(entry.group == "cfbench" for entry in distribution.entry_points)):
            found.append((name, version, requirements_of(distribution)))
    return tuple(found)


def _version(name: str) -> str:
    try:
        return field_of(metadata.distribution(name), "Version") or ""
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    """The processor's model name."""
    if sys.platform == "darwin":
        return _answer("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(errors="replace"), re.MULTILINE)
        if match:
            return match[1].strip()
    return platform.processor() or platform.machine()


def _gpus() -> list[dict[str, Any]]:
    """As torch sees them if it is loaded already, else as nvidia-smi does; torch is not imported for this."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        return [
            {"name": p.name, "memory_bytes": p.total_memory, "cuda": torch.version.cuda} for p in properties
        ]
    query = ("--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits")
    gpus = []
    for line in (_answer("nvidia-smi", *query) or "").splitlines():
        name, megabytes, driver = (part.strip() for part in line.split(","))
        memory = int(megabytes) * 2**20 if megabytes.isdigit() else None  # some say "[N/A]"
        gpus.append({"name": name, "memory_bytes": memory, "driver": driver})
    return gpus


def _answer(*command: str) -> str | None:
    """What a program says; None when it is not there, fails, or takes too long."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_COMMAND_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
