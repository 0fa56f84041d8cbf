"""A run in a notebook: the first tables, with failed cells, as one piece of HTML that needs no script and no style sheet."""

from __future__ import annotations

from collections import Counter

from cfbench_core.model_quality import quality_words
from cfbench_core.reports.html import page_environment
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run

OPEN_TABLES, ALL_TABLES = 2, 8
"""How many tables stand open, and how many there are at most: a notebook stores what it shows."""


def render(run: Run) -> str:
    """The run as an HTML fragment; every text in it is escaped.

    Raises:
        UserError: if the run directory cannot be read.
    """
    found = tables(run)
    counts = Counter("ok" if cell.done else cell.status.replace("_", " ") for cell in run.cells())
    return (
        page_environment()
        .get_template("notebook.html.j2")
        .render(
            suite=run.suite,
            data=run.data,
            directory=str(run.directory),
            counts=", ".join(f"{number} {status}" for status, number in counts.items()),
            tables=[(table, quality_words(table.quality)) for table in found[:ALL_TABLES]],
            open_tables=OPEN_TABLES,
            left=len(found[ALL_TABLES:]),
        )
    )
