"""Certified rows of a run against all its other rows, unit by unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfbench_core.run_directory import Run, RunCell

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CertificateCheck:
    """What :func:`check_certificates` found.

    Attributes:
        beaten: a line for each pair of rows of which the certified one is beaten within its certificate.
        compared: pairs of a certified answer and a successful answer of another method.
        proven: answers that are proven to be optimal.
    """

    beaten: tuple[str, ...]
    compared: int
    proven: int


def check_certificates(run: Run) -> CertificateCheck:
    """Whether any method of a finished run beats a certified one within its certificate.

    A certified row reports ``none_up_to`` = s for each unit: no set of at most s removals in the scope displaces more
    items than its answer, nor as many with fewer removals; where ``proven`` is 1 no set of any size does. The run needs the
    metrics ``pn-s`` and ``num-edits``, and answers that only remove.
    """
    settings: dict[tuple[object, ...], list[RunCell]] = {}
    for cell in (cell for cell in run.cells() if cell.done and cell.labels.get("format") == "explicit"):
        labels = tuple(value for name, value in cell.labels.items() if name != "explainer")
        settings.setdefault(labels, []).append(cell)
    beaten: list[str] = []
    compared = proven_units = 0
    for cells in settings.values():
        answers = {cell.id: _answers(run, cell.id) for cell in cells}
        for certified in (cell for cell in cells if cell.role == "certified"):
            own = answers[certified.id]
            details = run.details[run.details["cell"] == certified.id]
            reported = details.pivot(index="unit", columns="name", values="value").loc[own.index]
            proven = reported["proven"] == 1
            proven_units += int(proven.sum())
            for other in (cell for cell in cells if cell.id != certified.id):
                theirs = answers[other.id].loc[own.index]
                better = _better(theirs, own) & (proven | (theirs["edits"] <= reported["none_up_to"]))
                compared += int((theirs["displaced"] > 0).sum())
                if better.any():
                    units = ", ".join(map(str, own.index[better]))
                    beaten.append(f"{other.id} beats {certified.id} for {units}")
    return CertificateCheck(tuple(beaten), compared, proven_units)


def _answers(run: Run, cell: str) -> pd.DataFrame:
    """By unit: how much of the list is displaced (``displaced``), and by how many edits (``edits``)."""
    scores = run.scores[run.scores["cell"] == cell]
    named = scores.assign(metric=scores["metric"].str.partition("@")[0])
    wide = named[named["metric"].isin(_COLUMNS)].pivot(index="unit", columns="metric", values="value")
    return wide.rename(columns=_COLUMNS)


_COLUMNS = {"PN-S": "displaced", "#Perturb": "edits"}


def _better(theirs: pd.DataFrame, own: pd.DataFrame) -> pd.Series[bool]:
    """Which of their successful answers displace more than these, or as much with fewer edits."""
    more = theirs["displaced"] > own["displaced"]
    fewer = (theirs["displaced"] == own["displaced"]) & (theirs["edits"] < own["edits"])
    return (theirs["displaced"] > 0) & (more | fewer)
