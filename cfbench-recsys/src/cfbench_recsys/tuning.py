"""How ``cfbench tune`` judges a recommender or an explainer. Imports neither torch nor pandas.

- A recommender: by its quality on the validation part of the split, as its training reports it
  (``fit.validation``). The test part judges no trial: after the search, the best options and those as configured are
  compared on it.
- An explainer: by a metric over users who may be explained but are not: they are drawn apart from those whom a run
  with this configuration explains, and nothing that learns (``Context.training``) sees either. It is evaluated at the
  first K of the configuration, in its first scope, with its first number of edits, at item level if it can, for its
  recommender and data set, of which it has one each.
  After the search the best options and those as configured are compared on as many further users, by whom no trial was
  judged, and from whom nothing learns in this comparison (a method that is trained may have learned from them in a trial).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.lifecycle.cell_stages import units_stage
from cfbench_core.lifecycle.study import (
    PlannedCell,
    PreparedDataset,
    PreparedModel,
    ProtocolPoint,
    Setting,
    Study,
)
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import Column
from cfbench_core.reports.labels import label_texts
from cfbench_core.stages import UNITS
from cfbench_core.tuning import TrialPlan, Tunable, mean_score, reported
from cfbench_recsys.config import Checkpoints
from cfbench_recsys.labels import LABEL_FORMATS

QUALITIES = tuple(f"{name}@{k}" for k in (10, 20) for name in ("NDCG", "HR", "Recall"))
"""What a recommender may be judged by, the first by default."""

EXPLANATION_METRICS = ("POS-P@{k}", "PN-S@{k}")
"""What an explainer is judged by if no metric is named: the first that fits its answers."""


def tunable(
    suite: LifecycleSuite,
    study: Study,
    reference: ConfiguredComponent,
    metric: str | None,
    held_out: LifecycleSuite,
) -> Tunable:
    """See :mod:`cfbench_core.tuning.protocol`.

    ``suite`` explains users whom a run does not explain, and ``held_out`` users whom neither explains.

    Raises:
        UserError: when the component cannot be judged, or not by ``metric``.
    """
    protocol = dataclasses.replace(study.config.protocol, checkpoints=Checkpoints())
    study = dataclasses.replace(study, config=dataclasses.replace(study.config, protocol=protocol))
    data = suite.prepared(study, _only(study.config.data, "dataset", "data"))
    if reference.kind == "recommender":
        return _of_recommender(suite, study, data, reference, metric)
    if reference.kind == "explainer":
        return _of_explainer(suite, held_out, study, data, reference, metric)
    raise UserError(f"{reference.spec.id}: only recommenders and explainers can be tuned")


def _only(found: Sequence[ConfiguredComponent], what: str, key: str) -> ConfiguredComponent:
    if len(found) > 1:
        names = ", ".join(reference.label for reference in found)
        raise UserError(
            f"a search is about one {what}, the configuration has {names}; choose: --set {key}={found[0].spec.name}"
        )
    return found[0]


def _of_recommender(
    suite: LifecycleSuite,
    study: Study,
    data: PreparedDataset,
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
        (model,) = suite.models(study, data, candidate)
        fitted = model.stages["model"]
        return TrialPlan(
            {"model": fitted}, lambda results, _: reported(results, fitted, "fit", "validation", name)
        )

    def plan_held_out(candidate: ConfiguredComponent) -> TrialPlan:
        (model,) = suite.models(study, data, candidate)
        fitted = model.stages["model"]
        return TrialPlan(
            {"model": fitted}, lambda results, _: reported(results, fitted, "quality", name, "value")
        )

    shared = {"split": data.stages["split"]}
    return Tunable(
        f"validation {name}",
        "higher",
        data.dataset.label,
        plan,
        shared,
        held_out=plan_held_out,
        held_out_metric=f"test {name}",
    )


def _of_explainer(
    suite: LifecycleSuite,
    held_out: LifecycleSuite,
    study: Study,
    data: PreparedDataset,
    reference: ConfiguredComponent,
    metric: str | None,
) -> Tunable:
    recommender = _only(study.config.recommenders, "recommender", "recommenders")
    (model,) = suite.models(study, data, recommender.used_for(data.name))
    setting, column, measured = _place(suite, study, model, reference, metric)
    point, one = setting.point, dataclasses.replace(study, metrics=(measured,))

    def plan(candidate: ConfiguredComponent, judge: LifecycleSuite = suite) -> TrialPlan:
        scores = judge.cell(PlannedCell(one, model, point, candidate)).stages["scores"]
        return TrialPlan(
            {"scores": scores}, lambda results, store: mean_score(results, scores, store, column.name)
        )

    def plan_held_out(candidate: ConfiguredComponent) -> TrialPlan:
        return plan(candidate, held_out)

    labels = label_texts(
        {name: point[name] for name in ("level", "edit", "scope", "max_edits")}, LABEL_FORMATS
    )
    where = ", ".join([data.dataset.label, recommender.label, *labels])
    shared = {"model": model.stages["model"], UNITS: units_stage(suite, setting)}
    return Tunable(
        f"{column.name} of other users", _direction(column), where, plan, shared, held_out=plan_held_out
    )


def _place(
    suite: LifecycleSuite,
    study: Study,
    model: PreparedModel,
    reference: ConfiguredComponent,
    metric: str | None,
) -> tuple[Setting, Column, ConfiguredComponent]:
    """The setting in which the explainer is evaluated, the column that judges it, and the metric that fills it."""
    k = study.config.protocol.k[0]
    cells = [
        (Setting(study, model, point), suite.cell(PlannedCell(study, model, point, reference)))
        for point in _preferred(suite, study, model)
        if point["k"] == k or metric is not None
    ]
    wanted = [metric] if metric is not None else [name.format(k=k) for name in EXPLANATION_METRICS]
    for name in wanted:
        for setting, cell in cells:
            for column in cell.columns:
                if column.name == name and not cell.skipped:
                    return setting, column, _filled_by(suite, setting, column)
    known = list(dict.fromkeys(column.name for _, cell in cells for column in cell.columns))
    if not known:
        reasons = "; ".join(dict.fromkeys(cell.skipped for _, cell in cells))
        raise UserError(f"{reference.label} explains nothing here: {reasons}")
    requested = f"--metric {metric}" if metric is not None else " and ".join(wanted)
    hint = did_you_mean(wanted[0], known)
    raise UserError(
        f"{requested}: not among the metrics of {reference.label}.{hint} There is {', '.join(known)}"
    )


def _preferred(suite: LifecycleSuite, study: Study, model: PreparedModel) -> Iterator[ProtocolPoint]:
    """The protocol points, item level first, whatever the configured levels."""
    for level in ("item", "list"):
        protocol = dataclasses.replace(study.config.protocol, level=(level,))
        yield from suite.points(dataclasses.replace(study.config, protocol=protocol), model)


def _filled_by(suite: LifecycleSuite, setting: Setting, column: Column) -> ConfiguredComponent:
    """The metric that reports a column; the first, where several do."""
    return next(
        metric
        for metric in setting.study.metrics
        for _, columns in suite.metric_entries(setting, metric)
        if column.name in [own.name for own in columns]
    )


def _direction(column: Column) -> Any:
    if not column.direction:
        raise UserError(f"--metric {column.name}: of this neither more nor less is better")
    return column.direction
