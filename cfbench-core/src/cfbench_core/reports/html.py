"""The report of a run as one HTML page: no requests to anywhere, light and dark, on paper and on a phone."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cfbench_core.model_quality import Quality, quality_words
from cfbench_core.reports import plots
from cfbench_core.reports.answer import answer_of, primary_leads, standings_of
from cfbench_core.reports.frames import cells
from cfbench_core.reports.labels import label_texts
from cfbench_core.reports.page_limits import limited
from cfbench_core.reports.table_data import LEGEND, Entry, Header, Table, outcome_words
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run, RunCell
from cfbench_core.statistics import Friedman, friedman, indistinguishable, nemenyi_critical_difference
from cfbench_core.wording import count_of

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from cfbench_core.analyses import Answer

MOST_ROWS, MOST_FIGURES = 100, 12
"""Of an analysis in a report, which stays small enough to be mailed. A page of its own has all figures."""


def page_environment() -> Environment:
    """Of the templates: everything is escaped, nothing may be undefined."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("cfbench_core.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "unbroken": _unbroken,
        "drawn": Markup,
        "cells": lambda frame: cells(frame, MOST_ROWS),
    }
    return environment


def render(run: Run, verbalization: str = "", answers: Sequence[Answer] = ()) -> str:
    """The page.

    Args:
        verbalization: one explanation as a sentence.
        answers: of the analyses of the run's suite.
    """
    from markupsafe import Markup

    environment = page_environment()
    environment.globals |= {
        "dot_plot": lambda table, place: Markup(plots.dot_plot(table, place)),
        "cost_plot": lambda table: Markup(plots.cost_plot(table)),
        "outcome_words": outcome_words,
        "quality_words": quality_words,
        "sort_key": _sort_key,
    }
    all_tables = tables(run)
    shown_tables = limited(all_tables)
    leads = primary_leads(all_tables)
    standings = standings_of(leads)
    title = ", ".join(_values(run, "dataset")) or run.suite
    return environment.get_template("report.html.j2").render(
        suite=run.suite,
        title=title,
        row=run.layout.row,
        facts=_facts(run, run.data.removeprefix(title).strip()),
        quality=_quality(run),
        standings=standings,
        answer=answer_of(leads),
        compared=sum(lead.distinguishes for lead in leads),
        tables=shown_tables,
        anchors={table.title: f"table-{place}" for place, table in enumerate(shown_tables, 1)},
        left_out=len(all_tables) - len(shown_tables),
        rankings=[(ranking, Markup(ranking.plot)) for ranking in _rankings(all_tables)],
        questions=_questions(all_tables),
        legend=LEGEND,
        verbalization=verbalization,
        answers=[answer for answer in answers if not answer.incompatibility],
        not_run=[answer for answer in answers if answer.incompatibility],
        directories=[run.directory],
        most_figures=MOST_FIGURES,
        problems=[
            (_place(run, cell), outcome_words(cell.status), cell.reason)
            for cell in run.cells()
            if cell.problem
        ],
        skipped=_skipped(run),
        environment=list(_flat(run.environment)),
        config=(run.directory / "config.yaml").read_text(encoding="utf-8") if run.config else "",
    )


def _values(run: Run, label: str) -> list[str]:
    return list(dict.fromkeys(str(cell.labels[label]) for cell in run.cells() if label in cell.labels))


def _unbroken(text: str) -> Markup:
    """Escaped, names with a hyphen kept on one line: "lime-rs", "python3-numpy"."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"[\w.]+(?:-[\w.]+)+", r'<span class="whole">\g<0></span>', str(escape(text))))


def _facts(run: Run, data: str) -> list[str]:
    """What was run, counted: "2 models", "6 explainers", "300 units", "seed 0", "24 cells: 19 ok, ..."."""
    facts = [re.sub(r"^\((.*?)\)", r"\1", data)] if data else []
    for label in dict.fromkeys(["model", run.layout.row]):
        count = len(_values(run, label))
        facts.append(count_of(count, label))
    units = max((len(values.units) for values in run.unit_values.values()), default=0)
    facts.append(f"up to {units:,} explanations by each")
    if "seed" in run.config:
        facts.append(f"seed {run.config['seed']}")
    cells = sorted(run.cells(), key=lambda cell: not cell.done)  # what went well first
    counts = Counter("ok" if cell.done else outcome_words(cell.status) for cell in cells)
    facts.append(
        f"{counts.total()} cells: " + ", ".join(f"{count} {status}" for status, count in counts.items())
    )
    return facts


def _questions(all_tables: Sequence[Table]) -> list[Header]:
    """The columns that have a definition, each once."""
    headers = {header.column.name: header for table in all_tables for header in table.headers}
    return [header for header in headers.values() if header.column.question]


def _quality(run: Run) -> list[tuple[str, dict[str, Quality]]]:
    """Each model, with its quality by metric."""
    models = run.quality[["dataset", "model"]].drop_duplicates()
    several = models["dataset"].nunique() > 1
    return [
        (f"{model} on {dataset}" if several else str(model), run.quality_of(dataset, model))
        for dataset, model in models.itertuples(index=False)
    ]


# Ranks over the tables


@dataclass(frozen=True)
class Ranking:
    """Ranks of the competitors by one metric, with the tables as blocks."""

    metric: str
    test: Friedman
    plot: str


def _rankings(all_tables: Sequence[Table]) -> Iterator[Ranking]:
    """One for each metric of at least three tables, over the (three or more) competitors that were skipped in
    none.

    A competitor that failed in a table, or did not finish, shares the last rank there.
    """
    columns = {
        table.headers[place].column.name: table.headers[place].column
        for table in all_tables
        for place in table.shown
        if table.headers[place].arrow
    }
    for column in columns.values():
        blocks = [_means(table, column.name) for table in all_tables]
        blocks = [block for block in blocks if block]
        names = [
            name
            for name in dict.fromkeys(n for block in blocks for n in block)
            if all(name in b for b in blocks)
        ]
        if len(names) < 3 or len(blocks) < 3:
            continue
        test = friedman([[block[name] for name in names] for block in blocks], column.direction)
        difference = nemenyi_critical_difference(len(names), len(blocks))
        bars = indistinguishable(test.average_ranks, difference)
        ranks = [float(rank) for rank in test.average_ranks]
        yield Ranking(column.name, test, plots.critical_difference_plot(names, ranks, difference, bars))


def _means(table: Table, metric: str) -> dict[str, float]:
    """By what each competitor is ordered in the column, NaN where it did not finish; without those skipped; empty without
    the metric."""
    place = next((n for n, header in enumerate(table.headers) if header.column.name == metric), None)
    if place is None:
        return {}
    return {
        row.name: math.nan if row.status == "partial" else row.entries[place].order_in(table.headers[place])
        for row in table.rows
        if not row.role and row.status != "skipped"
    }


# What did not run, and what it ran on


def _place(run: Run, cell: RunCell) -> str:
    return " · ".join(label_texts(cell.labels, run.layout.label_formats))


def _skipped(run: Run) -> list[tuple[str, list[str]]]:
    """Reasons, each with the cells that were skipped for it."""
    found: dict[str, list[str]] = {}
    for cell in run.cells("skipped"):
        found.setdefault(cell.reason, []).append(_place(run, cell))
    return list(found.items())


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested data as ("packages.numpy", "2.4.6")."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)


def _sort_key(entry: Entry, header: Header) -> str:
    """By what the column is ordered, here as everywhere."""
    order = entry.order_in(header)
    return "" if math.isnan(order) else repr(order)
