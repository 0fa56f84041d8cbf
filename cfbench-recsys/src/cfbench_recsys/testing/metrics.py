"""What every metric must do, on observations of the linear recommender of the kit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_recsys.contracts import Point
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.observations import ExplicitObservations, ImplicitObservations
from cfbench_recsys.ranking import top_k
from cfbench_recsys.targets import Level, Targets
from cfbench_recsys.testing.models import LinearModel
from cfbench_recsys.testing.world import ORDINARY, K, interactions, other_global_seeds, streams

Observations = ImplicitObservations | ExplicitObservations


def fills_the_columns_that_it_declares(subject: Subject) -> None:
    """Does it return one number per unit for each declared column, at every point that it is declared for?"""
    for name, point, observed in _cases(subject):
        metric = subject.create()
        declared = [column.name for column in metric.columns(point)]
        require(bool(declared), f"{name}: declares no column, so that it would contribute nothing")
        require(len(set(declared)) == len(declared), f"{name}: declares a column twice: {declared}")
        found = metric.compute(observed)
        require(set(found) == set(declared), f"{name}: declares {declared}, but computes {sorted(found)}")
        for column, values in found.items():
            shape = np.shape(values)
            require(shape == (len(observed.targets),), f"{name}: {column} has shape {shape}, not (units,)")
            require(np.asarray(values).dtype.kind == "f", f"{name}: {column} is not an array of float64")


def stays_in_its_range(subject: Subject) -> None:
    """Are all values within the declared range?"""
    for name, point, observed in _cases(subject):
        metric = subject.create()
        found = metric.compute(observed)
        for column in metric.columns(point):
            if column.range is not None:
                low, high = column.range
                values = np.asarray(found[column.name])
                outside = values[~np.isnan(values) & ((values < low - 1e-9) | (values > high + 1e-9))]
                require(
                    not len(outside), f"{name}: {column.name} is {outside[:1]}, outside of {column.range}"
                )


def gives_the_same_values_again(subject: Subject) -> None:
    """Are the values the same in a second call, without an uncontrolled random stream?"""
    for (name, _, first), (_, _, second) in zip(_cases(subject), _cases(subject), strict=True):
        with other_global_seeds("one"):
            once = subject.create().compute(first)
        with other_global_seeds("another"):
            again = subject.create().compute(second)
        for column in once:
            same = np.array_equal(np.asarray(once[column]), np.asarray(again[column]), equal_nan=True)
            require(same, f"{name}: {column} has other values in a second call")


def does_not_mix_units(subject: Subject) -> None:
    """Are the values of a unit the same in another order of the units?"""
    for (name, _, first), (_, _, second) in zip(
        _cases(subject), _cases(subject, backwards=True), strict=True
    ):
        once, other = subject.create().compute(first), subject.create().compute(second)
        for column in once:
            reversed_values = np.asarray(other[column])[::-1]
            close = np.allclose(once[column], reversed_values, atol=1e-9, equal_nan=True)
            require(close, f"{name}: the {column} of a unit depends on the other units")


METRIC_CHECKS = checks_of(
    fills_the_columns_that_it_declares,
    stays_in_its_range,
    gives_the_same_values_again,
    does_not_mix_units,
)


def _cases(subject: Subject, backwards: bool = False) -> Iterator[tuple[str, Point, Observations]]:
    """A name for messages, the point and the observations; for each format and level that it is declared for."""
    formats = subject.spec.needs.get("explainer", {}).get("format", frozenset({"implicit", "explicit"}))
    levels = subject.spec.provides.get("level", frozenset({"item", "list"}))
    known: tuple[Level, ...] = ("item", "list")
    chosen = [
        (format, level)
        for format in ("implicit", "explicit")
        if format in formats
        for level in known
        if level in levels
    ]
    if not chosen:
        raise NotApplicable("it is declared for no format and level")
    for format, level in chosen:
        point: Point = {"k": K, "level": level, "format": format, "scope": "user-vector", "edit": "remove"}
        yield f"{format}, {level} level", point, _observed(format, level, backwards)


def _observed(format: str, level: Level, backwards: bool) -> Observations:
    """Observations of the ordinary users, whose importances and removals are drawn; some edits are empty."""
    graph = interactions()
    users = ORDINARY[::-1] if backwards else ORDINARY
    model = LinearModel.planted(graph)
    seen = Targets.of(graph, users, np.zeros((len(users), 1), dtype=np.int64), K, "item", "user-vector")
    ranked = top_k(model.score_profiles(graph[users]), seen.history, seen.padding, K)
    items = ranked if level == "list" else ranked[:, :1]
    targets = Targets.of(graph, users, items, K, level, "user-vector")
    importances: FloatArray = np.stack(
        [streams("importances", int(user)).normal(size=targets.history.shape[1]) for user in users]
    )
    if format == "implicit":
        return ImplicitObservations(model, targets, importances, graph)
    removed = (importances > 0.3) & ~targets.padding
    removed[users == ORDINARY[0]] = False
    return ExplicitObservations(model, targets, Edits.removals(users, targets.history, removed), graph)
