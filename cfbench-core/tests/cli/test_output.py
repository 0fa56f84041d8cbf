"""Text on a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.cli.output import hanging
from cfbench_core.cli.root import main


def test_text_hangs_behind_its_word_and_names_are_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert hanging("Say: ", "depends on python3-numpy, by lime-rs").splitlines() == [
        "Say: depends on python3-numpy,",
        "     by lime-rs",
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--output", ""],
        ["reproduce", "--output", ""],
        ["report", ""],
        ["run", "--data-dir", ""],
        ["view", "--export", ""],
    ],
)
def test_an_empty_name_is_not_the_working_directory(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "the name is empty" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
