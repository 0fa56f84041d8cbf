"""The explanations of a unit as sentences, which the suite of the run makes of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.explained_units import explained_units
from cfbench_core.registry import installed
from cfbench_core.run_directory import Run
from cfbench_core.run_parts import parts
from cfbench_core.specs import resolve


@dataclass(frozen=True)
class Sentence:
    """How one explainer explains one unit, or several that belong together.

    Attributes:
        cell: the id of the cell. labels: of the cell; the explainer is among them.
        units: their ids.
    """

    cell: str
    labels: Mapping[str, Any]
    units: tuple[str, ...]
    sentence: str


def explain(run: Run | str | Path, unit: str | None = None) -> list[Sentence]:
    """How each explainer of a run explains one unit, a sentence for each cell that has a valid counterfactual.

    Args:
        run: as such, or its directory.
        unit: its id, or the part of it before a slash, which stands for all units that begin so. None: a unit that most
            cells explain.

    Raises:
        UserError: if the run did not explain this unit, with the reason or the nearest id; or its files are damaged.
    """
    run = run if isinstance(run, Run) else Run(run)
    return sentences(run, units_of(run, unit))


def sentences(run: Run, units: frozenset[str]) -> list[Sentence]:
    """What the suite has to say of these units, cell by cell."""
    return [*_sentences(run, units)] if units else []


def units_of(run: Run, unit: str | None) -> frozenset[str]:
    """The units that an id stands for: itself, or all that begin with it and a slash; without an id one that most cells
    explain."""
    if unit is None:
        return _chosen(run)
    known = [str(one) for one in run.scores["unit"].dropna().unique()]
    found = frozenset(one for one in known if one == unit or one.startswith(f"{unit}/"))
    if not found:
        if reason := _why_left_out(run, unit):
            raise UserError(f"{unit!r} was not explained in {run.directory}: {reason}")
        beginnings = {one.partition("/")[0] for one in known}
        hint = did_you_mean(unit, sorted({*known, *beginnings}))
        raise UserError(
            f"{unit!r} was not explained in {run.directory}.{hint}  (cfbench explain {run.directory} --list)"
        )
    return found


def why_silent(run: Run, units: frozenset[str]) -> str:
    """Why the suite has no sentence for these units."""
    suite = _suite_of(run)
    reason = str(suite.why_not_in_words(run, units)) if hasattr(suite, "why_not_in_words") else ""
    return reason or "No valid counterfactual: no explanation changes the model's output."


def _chosen(run: Run) -> frozenset[str]:
    """Of the units of which most cells have something to say, the one with the median number of rows: neither a trivial
    one nor one with very many edits. Where the suite does not know, or no cell has anything to say: of the units that
    most cells explain. Nothing where no unit has an explanation."""
    found, suite = explained_units(run), _suite_of(run)
    if hasattr(suite, "units_in_words") and (in_words := suite.units_in_words(run)):
        known = [replace(one, cells=in_words[one.unit]) for one in found if one.unit in in_words]
        found = sorted(known, key=lambda one: (-one.cells, one.rows, one.unit))
    most = [one.unit for one in found if one.cells == found[0].cells]
    return frozenset(most[(len(most) - 1) // 2 : (len(most) - 1) // 2 + 1])


def _why_left_out(run: Run, unit: str) -> str:
    """Why the suite left a unit out of the data; "" if it did not, or is not installed any more."""
    suite = _suite_of(run)
    return str(suite.left_out(run, unit)) if hasattr(suite, "left_out") else ""


def _sentences(run: Run, units: frozenset[str]) -> Iterator[Sentence]:
    suite = _suite_of(run)
    for part in parts(run, units) if suite is not None else ():
        if words := str(suite.verbalize(part)):
            cell = part.cells()[0]
            yield Sentence(cell.id, cell.labels, tuple(sorted(units)), words)


def _suite_of(run: Run) -> Any:
    """The suite of a run; None when it is not installed any more."""
    registry = installed()
    if run.suite not in registry.suites():
        return None
    return resolve(registry.find(run.suite, "suite", run.suite).spec.target)()
