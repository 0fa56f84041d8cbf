"""FOCUS against the definition of its loss, finite differences, and a plain loop of its algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.presets import presets_of
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.gradient_boosting import Config as BoostingConfig
from cfbench_tabular.classifiers.gradient_boosting import GradientBoosting
from cfbench_tabular.classifiers.random_forest import Config as ForestConfig
from cfbench_tabular.classifiers.random_forest import RandomForest
from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.explainers.focus import FOCUS, SPEC, Config
from cfbench_tabular.explainers.soft_trees import SoftTrees
from cfbench_tabular.table import complete
from cfbench_tabular.testing import context_of, example_data, factuals_of, fitted

PUBLISHED = {"scale": "range", "leaves": "votes", "loss": "probability", "one_hot": "ignore", "halvings": 0}


def forest(data: Any, trees: int = 5, depth: int | None = 4) -> Any:
    return fitted(RandomForest(ForestConfig(trees=trees, depth=depth)), data)


def soft_value(trees: Trees, node: int, row: np.ndarray, sharpness: np.ndarray, value: np.ndarray) -> float:
    """The value of the soft tree below ``node``, by its definition."""
    if trees.left[node] == node:
        return float(value[node])
    feature = trees.feature[node]
    right = 1 / (1 + np.exp(-sharpness[feature] * (row[feature] - trees.threshold[node])))
    return (1 - right) * soft_value(trees, trees.left[node], row, sharpness, value) + right * soft_value(
        trees, trees.right[node], row, sharpness, value
    )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_soft_trees_are_their_definition_and_the_gradient_that_of_finite_differences(seed: int) -> None:
    data = example_data()
    trees, _ = forest(data, depth=None).ensemble()
    draw = np.random.default_rng(seed)
    sharpness = draw.uniform(0.5, 8, size=data.encoding.width)
    rows = draw.normal(size=(3, data.encoding.width))
    soft = SoftTrees(trees, sharpness)
    totals, gradient = soft.total(rows)
    expected = [
        sum(soft_value(trees, root, row, sharpness, trees.value) for root in trees.roots) for row in rows
    ]
    assert totals == pytest.approx(expected, rel=1e-12)
    width = 1e-5
    for place in range(data.encoding.width):
        move = width * np.eye(data.encoding.width)[place]
        change = (soft.total(rows + move)[0] - soft.total(rows - move)[0]) / (2 * width)
        assert gradient[:, place] == pytest.approx(change, rel=1e-5, abs=1e-7)


def test_sharp_trees_are_the_trees() -> None:
    data = example_data()
    trees, _ = forest(data, depth=None).ensemble()
    rows = np.random.default_rng(0).normal(size=(50, data.encoding.width))
    sharp, _ = SoftTrees(trees, np.full(data.encoding.width, 1e7)).total(rows)
    assert sharp == pytest.approx(trees.total(rows))


def loop(
    model: Any,
    row: np.ndarray,
    label: int,
    unit: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    options: Config,
) -> np.ndarray:
    """One factual as the paper describes it: votes, softmax, Adam with the derivative of the loss by differences."""
    trees, _ = model.ensemble()
    votes = np.rint(trees.value)
    sharpness = options.sharpness / unit

    def loss(point: np.ndarray, inside: float) -> float:
        one = np.mean([soft_value(trees, root, point, sharpness, votes) for root in trees.roots])
        powers = np.exp(options.temperature * np.array([1 - one, one]))
        distance = np.sqrt((((point - row) / unit) ** 2).sum())
        return float(inside * powers[label] / powers.sum() + options.distance_weight * distance)

    point, inside = row.copy(), 1.0
    first, second = np.zeros_like(row), np.zeros_like(row)
    best, nearest = np.full_like(row, np.nan), np.inf
    for step in range(1, options.iterations + 1):
        width = 1e-6
        moves = width * unit * np.eye(len(row))
        slope = np.array([(loss(point + m, inside) - loss(point - m, inside)) / (2 * width) for m in moves])
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        change = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        point = np.clip(point - options.learning_rate * unit * change, *limits)
        inside = float(predicted_classes(model, point[None])[0] == label)
        away = np.sqrt((((point - row) / unit) ** 2).sum())
        if not inside and away < nearest:
            best, nearest = point.copy(), away
    return best


def test_the_published_settings_are_the_loop_of_the_paper() -> None:
    data = example_data()
    model = forest(data, trees=3, depth=3)
    factuals, context = factuals_of(model, data, slice(0, 4)), context_of(data)
    options = Config(
        sharpness=5, temperature=3, distance_weight=0.05, learning_rate=0.02, iterations=60, **PUBLISHED
    )
    found = FOCUS(options).counterfactuals(model, factuals, context)
    low, high = data.encoding.bounds
    unit = np.where(data.encoding.numeric & (high > low), high - low, 1.0)
    limits = data.encoding.limits(factuals.vectors)
    assert complete(found).any()
    for place, row in enumerate(factuals.vectors):
        label = int(factuals.classes[place])
        expected = loop(model, row, label, unit, (limits.low[place], limits.high[place]), options)
        assert found[place] == pytest.approx(expected, abs=1e-4, nan_ok=True)


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_its_answers_are_in_the_other_class_and_nearer_than_without_the_way_back(kind: str) -> None:
    data = example_data()
    model = forest(data, 20) if kind == "forest" else fitted(GradientBoosting(BoostingConfig(trees=20)), data)
    factuals, context = factuals_of(model, data, slice(0, 15)), context_of(data)
    found = FOCUS(Config()).counterfactuals(model, factuals, context)
    given = complete(found)
    assert given.mean() > 0.8
    assert (predicted_classes(model, found[given]) != factuals.classes[given]).all()
    without = FOCUS(Config(halvings=0)).counterfactuals(model, factuals, context)
    away = [np.abs(rows[given] - factuals.vectors[given]).sum(axis=1) for rows in (found, without)]
    assert (away[0] <= away[1] + 1e-9).all() and away[0].mean() < away[1].mean()


def test_a_row_does_not_depend_on_the_rest_of_the_batch() -> None:
    data = example_data()
    model = forest(data, 10, None)
    factuals, context = factuals_of(model, data, slice(0, 9)), context_of(data)
    together = FOCUS(Config(iterations=40)).counterfactuals(model, factuals, context)
    for place in range(9):
        part = slice(place, place + 1)
        alone = Factuals(factuals.vectors[part], factuals.classes[part], factuals.units[part])
        one = FOCUS(Config(iterations=40)).counterfactuals(model, alone, context)
        assert np.array_equal(one[0], together[place], equal_nan=True)


def test_the_preset_has_the_published_settings() -> None:
    options = dict(presets_of(SPEC)["as-published"].options)
    assert options == {
        **PUBLISHED,
        "sharpness": 1.0,
        "temperature": 1.0,
        "distance_weight": 0.01,
        "learning_rate": 0.001,
        "iterations": 1000,
    }
    Config(**options)
