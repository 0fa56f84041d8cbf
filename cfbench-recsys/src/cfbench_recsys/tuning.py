"""How ``cfbench tune`` judges a recommender or an explainer. Imports neither torch nor pandas.

- A recommender: by its quality on the validation part of the split, as its training reports it
  (``fit.validation``). The test part is not looked at.
- An explainer: by a metric over users who may be explained but are not: they are drawn apart from those whom a run
  with this configuration explains, and nothing that learns (``Context.training``) sees either. It is asked at the
  first K of the configuration, at item level if it can, for the first recommender and data set there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from cfbench_core.config import Reference
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plan import Column
from cfbench_core.stages import UNITS, Stage
from cfbench_core.tuning import TrialPlan, Tunable, mean_score, reported
from cfbench_recsys.config import Checkpoints, RecsysConfig
from cfbench_recsys.grid import STAGES, Corner, Grid, corners, models_of, split_stage

QUALITIES = tuple(f"{name}@{k}" for k in (10, 20) for name in ("NDCG", "HR", "Recall"))
"""What a recommender may be judged by, the first unless one is asked for."""

EXPLANATION_METRICS = ("POS-P@{k}", "PN-S@{k}")
"""What an explainer is judged by unless something is asked for: the first that fits its answers."""


def tunable(
    config: RecsysConfig,
    metrics: Sequence[Reference],
    access: DataAccess,
    reference: Reference,
    metric: str | None,
    sample: int,
) -> Tunable:
    """See :mod:`cfbench_core.tuning.protocol`. ``metrics`` are those of the configuration.

    Raises:
        UserError: when the component cannot be judged, or not by ``metric``.
    """
    protocol = dataclasses.replace(config.protocol, checkpoints=Checkpoints())
    config = dataclasses.replace(config, protocol=protocol)
    dataset = _only(config.data, "data set", "data")
    split = split_stage(dataset, config, access)
    if reference.kind == "recommender":
        return _of_recommender(config, dataset, split, reference, metric)
    if reference.kind == "explainer":
        return _of_explainer(config, metrics, dataset, split, reference, metric, sample)
    raise UserError(f"{reference.spec.id}: only recommenders and explainers can be tuned")


def _only(found: Sequence[Reference], what: str, key: str) -> Reference:
    if len(found) > 1:
        names = ", ".join(reference.label for reference in found)
        raise UserError(
            f"a search is about one {what}, the configuration has {names}; choose: --set {key}={found[0].spec.name}"
        )
    return found[0]


def _model(recommender: Reference, dataset: Reference, split: Stage, config: RecsysConfig) -> Stage:
    (model,) = models_of(recommender, dataset, split, config)
    return model.stage


def _of_recommender(
    config: RecsysConfig, dataset: Reference, split: Stage, reference: Reference, metric: str | None
) -> Tunable:
    name = metric or QUALITIES[0]
    if name not in QUALITIES:
        raise UserError(
            f"--metric {name}: a recommender is judged by one of {', '.join(QUALITIES)}."
            f"{did_you_mean(name, QUALITIES)}"
        )
    if getattr(reference.options, "weights", None) is not None:
        raise UserError(f"{reference.label}: its weights come from a file, so there is nothing to tune")

    def plan(candidate: Reference) -> TrialPlan:
        model = _model(candidate, dataset, split, config)
        return TrialPlan(
            {"model": model}, lambda results, _: reported(results, model, "fit", "validation", name)
        )

    return Tunable(f"validation {name}", "higher", dataset.label, plan, {"split": split})


class TuningGrid(Grid):
    """The grid of a run, with other users: see ``stages/tuning.py``."""

    sample = 0

    def units(self, corner: Corner) -> Stage:
        explained = super().units(corner)
        return dataclasses.replace(
            explained,
            label=f"other {explained.label}",
            target=f"{STAGES}.tuning:choose_tuning_units",
            parameters={**explained.parameters, "sample": self.sample},
        )


def _of_explainer(
    config: RecsysConfig,
    metrics: Sequence[Reference],
    dataset: Reference,
    split: Stage,
    reference: Reference,
    metric: str | None,
    sample: int,
) -> Tunable:
    recommender = _only(config.recommenders, "recommender", "recommenders")
    (model,) = models_of(recommender, dataset, split, config)
    grid = TuningGrid(config, dataset, model, split, metrics, None)
    grid.sample = sample
    corner, column, measured = _place(grid, config, recommender, reference, metric)
    one = TuningGrid(config, dataset, model, split, (measured,), None)
    one.sample = sample

    def plan(candidate: Reference) -> TrialPlan:
        scores = one.cell(candidate, corner).stages["scores"]
        return TrialPlan(
            {"scores": scores}, lambda results, store: mean_score(results, scores, store, column.name)
        )

    where = f"{dataset.label}, {recommender.label}, {corner.level} level"
    shared = {"model": model.stage, UNITS: one.units(corner)}
    return Tunable(f"{column.name} of other users", _direction(column), where, plan, shared)


def _place(
    grid: Grid, config: RecsysConfig, recommender: Reference, reference: Reference, metric: str | None
) -> tuple[Corner, Column, Reference]:
    """Where of the protocol the explainer is asked, the column that judges it, and the metric that fills it."""
    k = config.protocol.k[0]
    cells = [
        (corner, grid.cell(reference, corner))
        for corner in _preferred(config, recommender)
        if corner.k == k or metric is not None
    ]
    wanted = [metric] if metric is not None else [name.format(k=k) for name in EXPLANATION_METRICS]
    for name in wanted:
        for corner, cell in cells:
            for column in cell.columns:
                if column.name == name and not cell.skipped:
                    return corner, column, _filled_by(grid.metrics, column, corner)
    known = list(dict.fromkeys(column.name for _, cell in cells for column in cell.columns))
    if not known:
        reasons = "; ".join(dict.fromkeys(cell.skipped for _, cell in cells))
        raise UserError(f"{reference.label} explains nothing here: {reasons}")
    asked = f"--metric {metric}" if metric is not None else " and ".join(wanted)
    hint = did_you_mean(wanted[0], known)
    raise UserError(
        f"{asked}: not among what is measured of {reference.label}.{hint} There is {', '.join(known)}"
    )


def _preferred(config: RecsysConfig, recommender: Reference) -> Iterator[Corner]:
    """The corners of the protocol, item level first, whatever its levels."""
    for level in ("item", "list"):
        protocol = dataclasses.replace(config.protocol, level=(level,))
        yield from corners(protocol, recommender.spec.provides)


def _filled_by(metrics: Sequence[Reference], column: Column, corner: Corner) -> Reference:
    """The metric that reports a column; the first, where several do."""
    return next(
        metric
        for metric in metrics
        if column.name in [own.name for own in metric.create().columns(corner.k, corner.level)]
    )


def _direction(column: Column) -> Any:
    if not column.direction:
        raise UserError(f"--metric {column.name}: of this neither more nor less is better")
    return column.direction
