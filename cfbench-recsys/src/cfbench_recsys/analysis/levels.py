"""The same recommender at several levels of quality: which cells of which runs make one comparison.

A model named "mf@25%" is the recommender "mf" after 25% of its training, "mf@q80%" at 80% of its best quality: two
ladders, each with levels in ascending order. Runs that have a ladder in common repeat it, with other seeds.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.plan import Column
from cfbench_recsys.analysis.shared import Labels, Wanted, unit_ranks
from cfbench_recsys.config import Checkpoints
from cfbench_recsys.edits import FloatArray

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run, RunCell

Place = tuple[str, str]
"""A level, "25%" or "q80%", and an explainer."""


@dataclass(frozen=True)
class Repetition:
    """One run's cells of a ladder, those that ended well."""

    run: Run
    seed: str
    cells: Mapping[Place, RunCell]


@dataclass(frozen=True)
class Ladder:
    """One recommender on one data set, explained at several levels of quality, in one or several runs.

    ``labels`` are those of a setting (see ``shared.py``), the model without its level, and ``levels``: "training"
    or "quality", what the levels are shares of. An explainer takes part that ended well at every level in every run.
    """

    labels: Labels
    repetitions: tuple[Repetition, ...]

    @functools.cached_property
    def levels(self) -> list[str]:
        """Those that every run has, in ascending order."""
        found = set.intersection(*({level for level, _ in one.cells} for one in self.repetitions))
        return sorted(found, key=_share)

    @functools.cached_property
    def explainers(self) -> list[str]:
        """In the order of the plan."""
        named = dict.fromkeys(explainer for _, explainer in self.repetitions[0].cells)
        return [
            name
            for name in named
            if all((level, name) in one.cells for one in self.repetitions for level in self.levels)
        ]

    @functools.cached_property
    def roles(self) -> list[str]:
        """Of the explainers."""
        cells = self.repetitions[0].cells
        return [cells[self.levels[0], explainer].role for explainer in self.explainers]

    def columns(self, wanted: Sequence[str]) -> list[Column]:
        """What all cells measure, has a direction, and is named by ``wanted`` before its "@", in that order."""
        every = [
            {column.name: column for column in one.cells[level, explainer].columns}
            for one in self.repetitions
            for level in self.levels
            for explainer in self.explainers
        ]
        shared = [c for c in every[0].values() if c.direction and all(c.name in names for names in every)]
        return [column for name in wanted for column in shared if column.name.partition("@")[0] == name]


def ladders(runs: Sequence[Run], wanted: Wanted) -> list[Ladder]:
    """All ladders of cells that ended well and are ``wanted``, with at least two levels and two explainers.

    Looks at plans only.
    """
    found: dict[tuple[Any, ...], tuple[dict[str, Any], list[Repetition]]] = {}
    for run in runs:
        of_run: dict[tuple[Any, ...], tuple[dict[str, Any], dict[Place, RunCell]]] = {}
        for cell in run.cells():
            named = _recommender_and_level(run, str(cell.labels.get("model", "")))
            if named is None or not cell.done or not wanted(cell):
                continue
            labels = _labels(run, cell, *named)
            place = (named[1], str(cell.labels[run.layout.row]))
            of_run.setdefault(tuple(labels.items()), (labels, {}))[1][place] = cell
        for key, (labels, cells) in of_run.items():
            found.setdefault(key, (labels, []))[1].append(Repetition(run, str(run.config.get("seed")), cells))
    all_of_them = [Ladder(labels, _told_apart(repetitions)) for labels, repetitions in found.values()]
    return [ladder for ladder in all_of_them if len(ladder.levels) > 1 and len(ladder.explainers) > 1]


def _recommender_and_level(run: Run, model: str) -> tuple[str, str] | None:
    """("mf", "25%") of "mf@25%"; None for a model that is no checkpoint, whatever it is called."""
    if "@" not in model:
        return None
    shares = (run.config.get("protocol") or {}).get("checkpoints") or {}
    levels = Checkpoints(
        training=tuple(shares.get("training", ())), quality=tuple(shares.get("quality", ()))
    ).names
    own_names = [
        entry.get("label", entry.get("name")) if isinstance(entry, dict) else entry
        for entry in run.config.get("recommenders", ())
    ]
    recommender, _, level = model.rpartition("@")
    return (recommender, level) if recommender and level in levels and model not in own_names else None


def _labels(run: Run, cell: RunCell, recommender: str, level: str) -> dict[str, Any]:
    constant = ("level", "format", "edit", "max_edits")  # items, importances, removals
    labels = {by: cell.labels[by] for by in run.layout.by if by not in constant}
    return {**labels, "model": recommender, "levels": "quality" if level.startswith("q") else "training"}


def _told_apart(repetitions: list[Repetition]) -> tuple[Repetition, ...]:
    """Runs of one seed get the name of their directory too."""
    times = Counter(one.seed for one in repetitions)
    return tuple(
        one
        if times[one.seed] == 1
        else Repetition(one.run, f"{one.seed} ({one.run.directory.resolve().name})", one.cells)
        for one in repetitions
    )


def _share(level: str) -> float:
    return float(level.removeprefix("q").removesuffix("%"))


def values_of(ladder: Ladder, repetition: Repetition, metrics: Sequence[str], places: int) -> FloatArray:
    """(U, K, M, L, E) scores of a run by user, place of the explained item, metric, level and explainer."""
    run = repetition.run
    grid = [[repetition.cells[level, name] for name in ladder.explainers] for level in ladder.levels]
    ids = [cell.id for row in grid for cell in row]
    ranks = unit_ranks(run, ids)
    users = np.unique(np.concatenate([run.unit_values[cell].clusters for cell in ids]))
    values = np.full((len(users), places, len(metrics), len(ladder.levels), len(ladder.explainers)), np.nan)
    for level, row in enumerate(grid):
        for explainer, cell in enumerate(row):
            scores = run.unit_values[cell.id]
            rank = ranks[cell.id].loc[scores.units].to_numpy(dtype=np.int64)
            user = np.searchsorted(users, scores.clusters)
            for number, metric in enumerate(metrics):
                values[user, rank - 1, number, level, explainer] = scores.column(metric)
    return values


def quality_of(ladder: Ladder, metric: str) -> FloatArray:
    """(runs, L) the quality of the model at each level on held-out data; NaN where it is not known."""
    found = np.full((len(ladder.repetitions), len(ladder.levels)), np.nan)
    for row, one in enumerate(ladder.repetitions):
        table = one.run.quality
        table = table[(table["dataset"] == str(ladder.labels["dataset"])) & (table["metric"] == metric)]
        known = dict(zip(table["model"], table["value"], strict=True))
        for column, level in enumerate(ladder.levels):
            found[row, column] = known.get(f"{ladder.labels['model']}@{level}", np.nan)
    return found
