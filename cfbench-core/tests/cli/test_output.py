"""Text on a terminal."""

from __future__ import annotations

import pytest

from cfbench_core.cli.output import hanging


def test_text_hangs_behind_its_word_and_names_are_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert hanging("Say: ", "depends on python3-numpy, by lime-rs").splitlines() == [
        "Say: depends on python3-numpy,",
        "     by lime-rs",
    ]
