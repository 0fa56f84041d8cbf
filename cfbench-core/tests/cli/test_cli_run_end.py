"""The end of a run on a terminal: in at most 40 lines the answer, a small table for each model, and where to look next."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up_run import write_run

from cfbench_core.cli.run_end import LINES, show_end
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run, write_summary


@pytest.fixture
def run(tmp_path: Path) -> Run:
    directory = write_run(tmp_path / "run")
    write_summary(Run(directory))
    return Run(directory)


def test_a_large_run_ends_in_forty_lines(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    show_end(run)
    lines = capsys.readouterr().out.splitlines()
    problems = [line for line in lines if "timeout" in line or "failed" in line or "partial" in line]
    assert len(lines) - len(problems) <= LINES
    assert lines[1].startswith("Answer: By POS-P@5, ")
    assert lines[-1].endswith(f"cfbench view {run.directory}")
    assert any(line.startswith("POS-P@5: How long does the item stay") for line in lines)


def test_the_small_table_of_a_model_has_the_numbers_of_its_tables(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    show_end(run)
    lines = capsys.readouterr().out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("mf"))
    assert lines[start + 1].split() == ["item", "level", "list", "level"]
    of_mf = [table for table in tables(run) if table.labels["model"] == "mf"]
    for row in of_mf[0].lines[:3]:
        line = next(line for line in lines[start:] if line.startswith(row.label))
        for table in of_mf:
            (same,) = [one for one in table.lines if one.name == row.name]
            assert f"{same.entries[0].number.mean:.3f}" in line
