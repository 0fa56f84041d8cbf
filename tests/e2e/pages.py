"""Tutorials, followed as a reader does."""

from __future__ import annotations

import re
import shlex

from .conftest import Environment


def follow(environment: Environment, text: str) -> None:
    """Writes the files of a page, runs its scripts, then its commands."""
    for title, content in re.findall(r"```json title=\"(.*?)\"\n(.*?)```", text, flags=re.S):
        (environment.work / title).write_text(content, encoding="utf-8")
    for title, code in re.findall(r"```python(?: title=\"(.*?)\")?\n(.*?)```", text, flags=re.S):
        path = environment.work / (title or "script.py")
        path.write_text(code)
        if not title:
            done = environment.python(path)
            assert done.returncode == 0, done.stderr
    commands = re.findall(r"^\$ cfbench (.*?)(?:   # exits with (\d))?$", text, flags=re.M)
    assert len(commands) >= 7
    for command, code in commands:
        done = environment.cfbench(*shlex.split(command))
        assert done.returncode == int(code or 0), f"{command}\n{done.stdout}{done.stderr}"
