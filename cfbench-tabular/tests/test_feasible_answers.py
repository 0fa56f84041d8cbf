"""Every counterfactual of every explainer is a row that could exist, for random tables."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.gradient_boosting import Config as BoostingConfig
from cfbench_tabular.classifiers.gradient_boosting import GradientBoosting
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.column_types import nearest_multiple
from cfbench_tabular.explainers.base import Context, Explanation
from cfbench_tabular.feature_changes import apply, feature_changes
from cfbench_tabular.metrics.feasibility import Config, Feasibility
from cfbench_tabular.observations import observed_of
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Column, Table, complete
from cfbench_tabular.testing import factuals_of, fitted

OPTIONS = {
    "growing-spheres": {"samples": 100},
    "lore": {"population": 100, "generations": 3},
    "optimum": {"seconds": 2.0},
    "exhaustive": {"values": 4},
    "alibic": {"rounds": 3},
    "alibic-nograd": {"rounds": 2, "iterations": 20},
}
EXPLAINERS = sorted(set(installed().names("tabular", "explainer")) - {"mace"})
OF_TREES = ("focus", "tree-optimum")
ROWS = 40
LEVELS = ("low", "middle", "high", "top")


def random_table(seed: int, narrow: bool) -> Table:
    """Three to six columns of random types, ranges and constraints; ``narrow``: many rows are outside of some ranges."""
    draw, inside = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    columns, values = [], {}
    score = np.zeros(ROWS)
    for place in range(int(draw.integers(3, 7))):
        name = f"x{place}"
        kind = draw.choice(["whole", "money", "any", "date", "ordinal", "colour", "binary"])
        way = {"immutable": bool(draw.random() < 0.15)}
        if kind != "colour" and not way["immutable"]:
            way["direction"] = str(draw.choice(["any", "any", "up", "down"]))
        if kind in ("ordinal", "colour", "binary"):
            levels = LEVELS[:2] if kind == "binary" else LEVELS[: int(draw.integers(3, 5))]
            codes = draw.integers(len(levels), size=ROWS)
            values[name] = np.array(levels, dtype=object)[codes]
            columns.append(Column(name, "categorical", levels, ordered=kind == "ordinal", **way))
            score += draw.normal() * codes
            continue
        size = 10.0 ** draw.integers(0, 4)
        numbers = draw.normal(size, size, size=ROWS)
        step = {"whole": 1.0, "date": 1.0, "money": 0.01}.get(str(kind))
        if step is not None:
            numbers = nearest_multiple(numbers, step)
        if draw.random() < 0.3:
            way |= {"low": float(numbers.min()) - 2.5, "high": float(numbers.max()) + 2.5}
        elif narrow:
            ends = np.sort(numbers)[[int(inside.integers(20)), -1 - int(inside.integers(15))]]
            way |= {"low": float(ends[0]), "high": float(ends[1])}
        values[name] = numbers
        columns.append(Column(name, step=step, format="date" if kind == "date" else "number", **way))
        score += draw.normal() * (numbers - numbers.mean()) / (numbers.std() or 1.0)
    target = np.where(score > np.median(score), "yes", "no").astype(object)
    return Table(f"random {seed}", tuple(columns), values, target, "yes")


@functools.lru_cache(maxsize=8)
def prepared(seed: int, trees: bool, narrow: bool):
    data = PreparedDataset.make(random_table(seed, narrow), 0.2, 0.2, generator("tabular", "split", seed))
    model = GradientBoosting(BoostingConfig(trees=15)) if trees else LogisticRegression(LogisticConfig())
    return data, fitted(model, data)


@pytest.mark.parametrize("name", EXPLAINERS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1_000), narrow=st.booleans())
@example(seed=193, narrow=False)  # a value that is at a threshold only when rounded to 32 bits
@example(seed=3, narrow=True)
def test_answers_are_rows_that_could_exist(name, seed, narrow):
    spec = installed().find("tabular", "explainer", name).spec
    explainer = resolve(spec.target)(resolve(str(spec.config))(**OPTIONS.get(name, {})))
    if name == "tree-optimum":
        pytest.importorskip("ortools", reason="tree-optimum needs cfbench-tabular[trees]")
    data, model = prepared(seed, name in OF_TREES, narrow)
    encoding, (background, labels) = data.encoding, data.sample("train")
    factuals = factuals_of(model, data, slice(0, 6))
    several = 2 if "several" in spec.provides.get("counterfactuals", ()) else 1
    context = Context(
        encoding,
        background,
        lambda unit: generator("units", unit),
        several,
        labels=labels,
        retrained=(model,) * 32,
    )
    found = Explanation.of(explainer.counterfactuals(model, factuals, context)).stacked()
    for number in range(found.shape[1]):
        answers = found[:, number]
        there = np.flatnonzero(complete(answers))
        low, high = encoding.allowed(factuals.vectors)
        assert (answers[there] >= low[there]).all() and (answers[there] <= high[there]).all()
        assert (encoding.snapped(answers, factuals.vectors)[there] == answers[there]).all()
        rows = encoding.decode(answers[there])
        for column in encoding.columns:
            if column.step is not None:
                assert (nearest_multiple(rows[column.name], column.step) == rows[column.name]).all()
        grid = encoding.grid.positions
        assert (encoding.encode(rows)[:, grid] == answers[there][:, grid]).all()
        stored = [
            apply(
                encoding, row, [(c.column, c.level, c.value) for c in feature_changes(encoding, row, answer)]
            )
            for row, answer in zip(factuals.vectors[there], answers[there], strict=True)
        ]
        if stored:
            assert (np.stack(stored)[:, grid] == answers[there][:, grid]).all()
        valid = predicted_classes(model, answers[there]) != factuals.classes[there]
        if spec.role != "baseline":
            assert valid.all()
        feasible = Feasibility(Config()).compute(observed_of(model, factuals, answers, data))["feasible"]
        assert feasible[there].tolist() == valid.astype(float).tolist()
