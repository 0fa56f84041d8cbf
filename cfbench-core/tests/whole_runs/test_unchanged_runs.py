"""A run into the directory of an equal run leaves its tables and reports as they are."""

from __future__ import annotations

from pathlib import Path

from toy_runs import run

from cfbench_core.registry import Registry
from cfbench_core.reports.page_limits import limited
from cfbench_core.reports.saved import saved_tables, saved_words
from cfbench_core.reports.tables import built

MADE = (
    "scores.parquet",
    "explanations.parquet",
    "costs.parquet",
    "summary.csv",
    "report.json",
    "report.html",
)


def written(directory: Path) -> dict[str, int]:
    return {name: (directory / name).stat().st_mtime_ns for name in MADE}


def test_nothing_is_written_again_unless_something_changed(registry: Registry, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run(registry, out)
    assert saved_words(first) == "7 is explained by 7."
    before, environment = written(out), (out / "environment.json").read_bytes()
    again = run(registry, out)
    assert written(out) == before
    assert (out / "environment.json").read_bytes() == environment
    assert {cell.status for cell in again.cells()} == {"cached"}

    page = out / "report.html"
    page.write_text(page.read_text() + "x")  # not as it was written
    run(registry, out)
    assert not page.read_text().endswith("x")

    run(registry, out, fresh=True)  # other results, by their times
    assert all(written(out)[name] > before[name] for name in MADE)


def test_saved_tables_are_those_of_the_run_and_large_ones_are_cut(registry: Registry, tmp_path: Path) -> None:
    explainers = [{"name": "digits", "base": base, "label": f"base-{base}"} for base in range(2, 12)]
    result = run(registry, tmp_path / "run", explainers=explainers)
    tables = built(result)
    assert saved_tables(result) == tables or repr(saved_tables(result)) == repr(tables)  # NaN is not NaN
    (table,) = limited(tables * 1)
    assert len(table.lines) == 10 and table.left_out == 0
    assert len(limited(tables * 500)) == 100  # 1,000 rows
