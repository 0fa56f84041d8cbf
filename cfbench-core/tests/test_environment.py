"""What environment.json tells, and what it never tells."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import psutil
import pytest

from cfbench_core.environment import capture, git_state, hardware, versions


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_it_is_json_with_python_platform_and_versions(tmp_path: Path) -> None:
    reported = json.loads(json.dumps(capture(tmp_path)))
    assert list(reported) == ["time", "command", "python", "platform", "hardware", "distributions", "git"]
    assert reported["time"].endswith("+00:00")
    assert reported["command"] == sys.argv
    assert platform.python_version() in reported["python"]
    assert reported["distributions"]["cfbench-core"] == metadata.version("cfbench-core")
    assert reported["distributions"]["numpy"] == np.__version__
    assert reported["git"] is None


def test_the_hardware_is_this_machines() -> None:
    reported = hardware()
    assert reported["memory_bytes"] == psutil.virtual_memory().total
    assert reported["cores_logical"] == os.cpu_count()
    assert 1 <= reported["cores_usable"] <= reported["cores_logical"]
    assert reported["processor"]


def test_it_contains_no_environment_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_TOKEN", "s3cr3t-s3cr3t")
    assert "s3cr3t" not in json.dumps(capture(tmp_path))


def test_versions_cover_what_the_distributions_declare_and_no_extras() -> None:
    reported = versions()
    assert {"cfbench-core", "numpy", "pyarrow", "pyyaml", "scipy"} <= set(reported)
    assert "pytest" not in reported  # declared for tests only
    assert list(reported) == sorted(reported)


def test_the_git_state_is_commit_and_whether_files_differ(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) is None  # no commit yet
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "untracked").write_text("results")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "file").write_text("two")
    assert git_state(tmp_path) == {"commit": commit, "dirty": True}


def test_a_gpu_is_described_as_by_nvidia_smi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if os.name == "nt" or "torch" in sys.modules:
        pytest.skip("needs a shell script, and that torch is not loaded")
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, 570.1'\necho 'Other, [N/A], 570.1'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert hardware()["gpus"] == [
        {"name": "NVIDIA H200", "memory_bytes": 143771 * 2**20, "driver": "570.1"},
        {"name": "Other", "memory_bytes": None, "driver": "570.1"},
    ]


def test_capturing_imports_neither_torch_nor_pandas() -> None:
    code = (
        "import sys; from cfbench_core.environment import capture; capture();"
        "assert not {'torch', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tool_that_answers_in_another_encoding_is_understood_as_far_as_possible(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_bytes(b"#!/bin/sh\nprintf 'Carte \\351tendue, 1000, 1.0'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    (gpu,) = hardware()["gpus"]
    assert gpu["name"] == "Carte \ufffdtendue"


@pytest.mark.parametrize("finder", ["importlib.metadata", "importlib_metadata"])
def test_half_an_installation_has_no_version(tmp_path: Path, finder: str) -> None:
    if finder == "importlib_metadata":
        pytest.importorskip("importlib_metadata")
    folder = tmp_path / "cfbench_half-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text("[cfbench]\nhalf = nothing\n")
    code = (
        f"import {finder}; from cfbench_core.environment import capture, versions;"
        "assert 'cfbench-core' in versions() and 'cfbench-half' not in capture()['distributions']"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
