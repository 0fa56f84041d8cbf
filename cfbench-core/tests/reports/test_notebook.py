"""A run in a notebook, and its tables as Arrow, pandas and polars."""

from __future__ import annotations

import builtins
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from html_page import Page
from made_up_run import small_run, write_run

from cfbench_core.errors import UserError
from cfbench_core.reports import notebook
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(write_run(tmp_path_factory.mktemp("notebook") / "run"))


def test_it_shows_every_row_of_the_tables_with_the_numbers_of_the_report(run: Run) -> None:
    page = Page(run._repr_html_())
    text = " ".join(" ".join(page.text).split())
    for table in tables(run):
        assert table.title in text
        for row in table.lines:
            assert row.label in text
            assert all(entry.text in text for entry in row.entries if not row.outcome)


def test_failed_cells_stand_in_the_table_with_their_reason(run: Run) -> None:
    failed = [cell for cell in run.cells() if cell.status in ("failed", "timeout")]
    assert failed
    text = " ".join(Page(run._repr_html_()).text)
    assert all(cell.reason in text for cell in failed if cell.reason)
    assert "1 failed" in text and "1 timeout" in text and "1 partial" in text


def test_names_and_reasons_are_escaped(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"<script>x</script>": [1.0, 0.0], "b": [0.0, 1.0]})
    plan = json.loads((run.directory / "plan.json").read_text())
    plan["cells"][1] |= {"status": "failed", "reason": "<img src=x onerror=y>"}
    (run.directory / "plan.json").write_text(json.dumps(plan))
    html = Run(run.directory)._repr_html_()
    assert "&lt;script&gt;" in html and "<script" not in html and "<img" not in html
    assert "Does it &lt;hit&gt; &amp; hold?" in html  # what a metric measures, on its head
    Page(html)


def test_a_large_run_shows_its_first_tables_and_counts_the_others(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, "ALL_TABLES", 3)
    html = run._repr_html_()
    assert html.count("<table>") == 3 and "1 more table in" in html
    assert html.count("<details open>") == notebook.OPEN_TABLES


def test_a_run_that_cannot_be_read_says_so_in_its_place(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    (directory / "scores.parquet").write_bytes(b"no table")
    html = Run(directory)._repr_html_()
    assert html.startswith("<pre>") and "scores.parquet: cannot be read" in html


@pytest.mark.parametrize("name", ["scores", "explanations", "costs"])
def test_arrow_pandas_and_polars_hold_the_same_table(run: Run, name: str) -> None:
    polars = pytest.importorskip("polars")
    arrow = run.to_arrow(name)
    assert isinstance(arrow, pa.Table) and arrow.num_rows == len(getattr(run, name))
    pd.testing.assert_frame_equal(run.to_pandas(name), getattr(run, name))
    frame = run.to_polars(name)
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == arrow.column_names and frame.height == arrow.num_rows


def test_an_unknown_table_is_one_line_with_the_nearest_name(run: Run) -> None:
    assert run.table_names == ["scores", "explanations", "costs"]
    with pytest.raises(UserError, match=re.escape("no table 'score'. Did you mean 'scores'?")):
        run.to_arrow("score")


def test_without_polars_the_error_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_polars(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "polars":
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_polars)
    with pytest.raises(UserError, match="pip install polars"):
        run.to_polars("scores")
