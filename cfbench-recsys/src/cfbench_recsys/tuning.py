"""How ``cfbench tune`` judges a recommender or an explainer. Imports neither torch nor pandas.

- A recommender: by its quality on the validation part of the split, as its training reports it
  (``fit.validation``). The test part is not used.
- An explainer: by a metric over users who may be explained but are not: they are drawn apart from those whom a run
  with this configuration explains, and nothing that learns (``Context.training``) sees either. It is evaluated at the
  first K of the configuration, at item level if it can, for the first recommender and data set there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plan import Column
from cfbench_core.stages import UNITS, Stage
from cfbench_core.tuning import TrialPlan, Tunable, mean_score, reported
from cfbench_recsys.config import Checkpoints, RecsysConfig
from cfbench_recsys.grid import STAGES, Grid, ProtocolPoint, models_of, protocol_points, split_stage

QUALITIES = tuple(f"{name}@{k}" for k in (10, 20) for name in ("NDCG", "HR", "Recall"))
"""What a recommender may be judged by, the first by default."""

EXPLANATION_METRICS = ("POS-P@{k}", "PN-S@{k}")
"""What an explainer is judged by if no metric is named: the first that fits its answers."""


def tunable(
    config: RecsysConfig,
    metrics: Sequence[ConfiguredComponent],
    access: DataAccess,
    reference: ConfiguredComponent,
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


def _only(found: Sequence[ConfiguredComponent], what: str, key: str) -> ConfiguredComponent:
    if len(found) > 1:
        names = ", ".join(reference.label for reference in found)
        raise UserError(
            f"a search is about one {what}, the configuration has {names}; choose: --set {key}={found[0].spec.name}"
        )
    return found[0]


def _model(
    recommender: ConfiguredComponent, dataset: ConfiguredComponent, split: Stage, config: RecsysConfig
) -> Stage:
    (model,) = models_of(recommender, dataset, split, config)
    return model.stage


def _of_recommender(
    config: RecsysConfig,
    dataset: ConfiguredComponent,
    split: Stage,
    reference: ConfiguredComponent,
    metric: str | None,
) -> Tunable:
    name = metric or QUALITIES[0]
    if name not in QUALITIES:
        raise UserError(
            f"--metric {name}: a recommender is judged by one of {', '.join(QUALITIES)}."
            f"{did_you_mean(name, QUALITIES)}"
        )
    if getattr(reference.options, "weights", None) is not None:
        raise UserError(f"{reference.label}: its weights come from a file, so there is nothing to tune")

    def plan(candidate: ConfiguredComponent) -> TrialPlan:
        model = _model(candidate, dataset, split, config)
        return TrialPlan(
            {"model": model}, lambda results, _: reported(results, model, "fit", "validation", name)
        )

    return Tunable(f"validation {name}", "higher", dataset.label, plan, {"split": split})


class TuningGrid(Grid):
    """The grid of a run, with other users: see ``stages/tuning.py``."""

    sample = 0

    def units(self, point: ProtocolPoint) -> Stage:
        explained = super().units(point)
        return dataclasses.replace(
            explained,
            label=f"other {explained.label}",
            target=f"{STAGES}.tuning:choose_tuning_units",
            parameters={**explained.parameters, "sample": self.sample},
        )


def _of_explainer(
    config: RecsysConfig,
    metrics: Sequence[ConfiguredComponent],
    dataset: ConfiguredComponent,
    split: Stage,
    reference: ConfiguredComponent,
    metric: str | None,
    sample: int,
) -> Tunable:
    recommender = _only(config.recommenders, "recommender", "recommenders")
    (model,) = models_of(recommender, dataset, split, config)
    grid = TuningGrid(config, dataset, model, split, metrics, None)
    grid.sample = sample
    point, column, measured = _place(grid, config, recommender, reference, metric)
    one = TuningGrid(config, dataset, model, split, (measured,), None)
    one.sample = sample

    def plan(candidate: ConfiguredComponent) -> TrialPlan:
        scores = one.cell(candidate, point).stages["scores"]
        return TrialPlan(
            {"scores": scores}, lambda results, store: mean_score(results, scores, store, column.name)
        )

    where = f"{dataset.label}, {recommender.label}, {point.level} level"
    shared = {"model": model.stage, UNITS: one.units(point)}
    return Tunable(f"{column.name} of other users", _direction(column), where, plan, shared)


def _place(
    grid: Grid,
    config: RecsysConfig,
    recommender: ConfiguredComponent,
    reference: ConfiguredComponent,
    metric: str | None,
) -> tuple[ProtocolPoint, Column, ConfiguredComponent]:
    """The point of the protocol at which the explainer is evaluated, the column that judges it, and the metric that
    fills it."""
    k = config.protocol.k[0]
    cells = [
        (point, grid.cell(reference, point))
        for point in _preferred(config, recommender)
        if point.k == k or metric is not None
    ]
    wanted = [metric] if metric is not None else [name.format(k=k) for name in EXPLANATION_METRICS]
    for name in wanted:
        for point, cell in cells:
            for column in cell.columns:
                if column.name == name and not cell.skipped:
                    return point, column, _filled_by(grid.metrics, column, point)
    known = list(dict.fromkeys(column.name for _, cell in cells for column in cell.columns))
    if not known:
        reasons = "; ".join(dict.fromkeys(cell.skipped for _, cell in cells))
        raise UserError(f"{reference.label} explains nothing here: {reasons}")
    requested = f"--metric {metric}" if metric is not None else " and ".join(wanted)
    hint = did_you_mean(wanted[0], known)
    raise UserError(
        f"{requested}: not among the metrics of {reference.label}.{hint} There is {', '.join(known)}"
    )


def _preferred(config: RecsysConfig, recommender: ConfiguredComponent) -> Iterator[ProtocolPoint]:
    """The corners of the protocol, item level first, whatever its levels."""
    for level in ("item", "list"):
        protocol = dataclasses.replace(config.protocol, level=(level,))
        yield from protocol_points(protocol, recommender.spec.provides)


def _filled_by(
    metrics: Sequence[ConfiguredComponent], column: Column, point: ProtocolPoint
) -> ConfiguredComponent:
    """The metric that reports a column; the first, where several do."""
    return next(
        metric
        for metric in metrics
        if column.name in [own.name for own in metric.create().columns(vars(point))]
    )


def _direction(column: Column) -> Any:
    if not column.direction:
        raise UserError(f"--metric {column.name}: of this neither more nor less is better")
    return column.direction
