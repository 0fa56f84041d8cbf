"""``python -m cfbench_core`` is the command ``cfbench``."""

from __future__ import annotations

import subprocess
import sys

from child_processes import popen


def module(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``python -m cfbench_core`` with ``arguments``."""
    process = popen(
        [sys.executable, "-m", "cfbench_core", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def test_it_calls_itself_cfbench() -> None:
    code, output, errors = module("--help")
    assert (code, errors) == (0, "")
    assert output.startswith("Usage: cfbench [OPTIONS] COMMAND")


def test_exit_codes_are_those_of_the_command() -> None:
    code, output, errors = module("lsit")
    assert (code, output) == (2, "")
    assert errors.startswith("no command 'lsit'. Did you mean 'list'?") and "Traceback" not in errors
    assert module("completion", "bash")[0] == 0
