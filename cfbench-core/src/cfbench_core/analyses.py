"""Analyses of finished runs, across cells. Components of kind "analysis".

A metric looks at one explanation; an analysis looks at tables of a run, or of several runs of one suite:
how results change along the list, with the scope, with the quality of the model. Each is in the HTML report
where it applies, and ``cfbench analyse NAME RUN...`` prints its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from cfbench_core.config import Document, decode_options, imported_spec
from cfbench_core.contracts import Contract
from cfbench_core.errors import UserError
from cfbench_core.registry import Component, Registry
from cfbench_core.run_directory import Run
from cfbench_core.specs import resolve

if TYPE_CHECKING:
    import pandas as pd

Runs = Run | str | Path | Sequence[Run | str | Path]
"""Run directories, or what was made of them."""

_DEFAULTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Figure:
    """A plot as inline SVG, made by ``reports/charts``: colours and fonts are the page's.

    Attributes:
        title: what is drawn, in a few words.
        svg: the drawing.
        note: how to read it; may be empty.
        wide: whether it takes the full width of the page.
    """

    title: str
    svg: str
    note: str = ""
    wide: bool = False


class Analysis(Protocol):
    """Made from its configuration, like every component. Importing it imports neither torch nor pandas."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        """Why the analysis does not apply to these runs, in a few words; empty if it does. Reads plans only."""

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """The answer, tidy: a row for each statement, numbers unrounded. Printed, and written as CSV."""

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        """The figures; drawn from the table alone, so that a stored CSV can be drawn again."""

    def words(self, table: pd.DataFrame) -> str:
        """The answer in one or two sentences, with the numbers that carry it; "" if it has none."""

    # An analysis whose table is no pleasure to read may have ``text(table) -> str`` as well: lines that stand on a
    # terminal in its place. It may have ``notes(runs) -> Sequence[str]``: what to know before
    # trusting it, shown below it in every format but CSV; and ``latex(table) -> str``, the table in a paper's form.


@dataclass(frozen=True)
class Answer:
    """The result of an analysis: a table, or why it does not apply (``incompatibility``) or failed (``problem``)."""

    name: str
    question: str
    incompatibility: str = ""
    problem: str = ""
    words: str = ""
    table: pd.DataFrame | None = None
    figures: Sequence[Figure] = ()
    text: str = ""
    latex: str = ""
    notes: Sequence[str] = ()

    def required_table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """The table, or a UserError with the reason why there is none."""
        if self.table is None:
            named = " and ".join(str(run.directory) for run in runs)
            raise UserError(f"{self.name} does not apply to {named}: {self.incompatibility or self.problem}")
        return self.table


def opened(runs: Runs) -> list[Run]:
    """Runs of one suite.

    Raises:
        UserError: if one is no run, or they are of different suites.
    """
    given = [runs] if isinstance(runs, (Run, str, Path)) else list(runs)
    found = [run if isinstance(run, Run) else Run(run) for run in given]
    suites = list(dict.fromkeys(run.suite for run in found))
    if len(suites) != 1:
        raise UserError(
            f"only runs of one suite can be analysed together, these are of {' and '.join(suites) or 'none'}"
        )
    return found


def find(name: str, runs: Sequence[Run], registry: Registry) -> Component:
    """The analysis of that name for these runs' suite; "module:Class" imports one that no plugin provides.

    Raises:
        UserError: if there is none, with the nearest spelling, or if a class lacks a method of an analysis.
    """
    if ":" not in name:
        return registry.find(runs[0].suite, "analysis", name)
    spec = imported_spec(name, "analysis", runs[0].suite, None)
    problem = Contract(protocol=Analysis).problem(resolve(name), "analysis")
    if problem:
        raise UserError(f"{name}: {problem}")
    return Component(spec, "", "")


def applicable(runs: Sequence[Run], registry: Registry) -> list[tuple[Component, str]]:
    """The analyses of the runs' suite by name, each with the reason why it does not apply; empty if it does.

    The reason of an analysis that is broken is its error.
    """
    found = []
    for component in registry.components("analysis", runs[0].suite):
        try:
            incompatibility = _created(component, {}, registry).incompatibility(runs)
        except Exception as error:  # somebody else's code: whatever it raises is the reason
            incompatibility = f"failed: {_first_line(error)}"
        found.append((component, incompatibility))
    return found


def run_analysis(
    component: Component,
    runs: Sequence[Run],
    registry: Registry,
    options: Mapping[str, Any] | Document = _DEFAULTS,
    rows: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> Answer:
    """The result of one analysis, or why it does not apply to these runs.

    Args:
        options: of the analysis, as Python data or as a document with ``--set`` changes.
        rows: chooses the rows of the table that are shown, drawn and put in words; all if None.

    Raises:
        UserError: for wrong options, and if the analysis fails.
    """
    spec = component.spec
    try:
        analysis = _created(component, options, registry)
        incompatibility = analysis.incompatibility(runs)
        if incompatibility:
            return Answer(spec.name, spec.summary, incompatibility=incompatibility)
        table = analysis.table(runs)
        table = table if rows is None else rows(table)
        words, figures = analysis.words(table), tuple(analysis.figures(table))
        text = str(analysis.text(table)) if hasattr(analysis, "text") else ""
        latex = str(analysis.latex(table)) if hasattr(analysis, "latex") else ""
        notes = tuple(map(str, analysis.notes(runs))) if hasattr(analysis, "notes") else ()
    except UserError:
        raise
    except Exception as error:  # somebody else's code
        by = component.owner
        raise UserError(f"{spec.id} of {by} failed: {_first_line(error)}") from error
    return Answer(
        spec.name,
        spec.summary,
        words=words,
        table=table,
        figures=figures,
        text=text,
        latex=latex,
        notes=notes,
    )


def answers(runs: Sequence[Run], registry: Registry) -> list[Answer]:
    """Of every analysis of the runs' suite, by name. One that fails does not stop the others."""
    found = []
    for component in registry.components("analysis", runs[0].suite):
        try:
            found.append(run_analysis(component, runs, registry))
        except UserError as error:
            problem = _first_line(error.__cause__ or error)
            found.append(Answer(component.spec.name, component.spec.summary, problem=problem))
    return found


def _created(component: Component, options: Mapping[str, Any] | Document, registry: Registry) -> Any:
    document = options if isinstance(options, Document) else Document.of(options, component.spec.name)
    return decode_options(component, document, registry).create()


def _first_line(error: BaseException) -> str:
    line = (str(error).strip().splitlines() or [""])[0]
    return line if isinstance(error, UserError) else f"{type(error).__name__}: {line}".removesuffix(": ")
