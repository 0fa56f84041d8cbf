"""A disk that is soon full, for tests."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = 2) -> Iterator[Path]:
    """A file system of a few megabytes, mounted below ``folder``; skips the test where it may not be."""
    mount = folder / "small-disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(mount)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small tmpfs cannot be mounted here: {error}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", str(mount)], check=True)
