"""First examples that can be verified by hand, then cfnow itself, its pitfalls, and the conformance checks."""

import logging
import random
import time

import numpy as np
import pandas as pd
import pytest
from cfbench_explainer_cfnow.cfnow import Cfnow, Config
from cfnow import find_tabular

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import Check, checks_for, verify
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.table import Column

ID = "tabular/explainer/cfnow"
STRATEGIES = ["greedy", "random", "random-sequential"]


class Line:
    """A classifier: the log-odds of class 1 are w . x + b."""

    def __init__(self, weights: list[float], bias: float) -> None:
        self.weights, self.bias = np.array(weights), bias

    def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
        one = 1 / (1 + np.exp(-(vectors @ self.weights + self.bias)))
        return np.column_stack([1 - one, one])


def encoding_of(*levels: int) -> Encoding:
    """A number for each 0, a category with that many levels for each other."""
    columns = tuple(
        Column(f"x{place}", "categorical", tuple(str(level) for level in range(count)))
        if count
        else Column(f"x{place}")
        for place, count in enumerate(levels)
    )
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.ones(size), np.full(size, -9.0), np.full(size, 9.0))


def counterfactual(
    config: Config, model: object, encoding: Encoding, row: list[float], unit: str = "a"
) -> np.ndarray:
    vectors = np.array([row], dtype=float)
    found = model.predict_proba(vectors)
    factuals = Factuals(vectors, (found[:, 1] > found[:, 0]).astype(np.int64), (unit,))
    context = Context(encoding, vectors, lambda unit: generator("test", unit))
    return Cfnow(config).counterfactuals(model, factuals, context)[0]


def test_the_relevant_column_crosses_the_boundary_and_the_other_is_unchanged() -> None:
    # Class 1 where the first column is above 1; steps are tenths of it.
    found = counterfactual(Config(iterations=50), Line([2.0, 0.0], -2.0), encoding_of(0, 0), [0.5, 3.0])
    assert 1 < found[0] < 1.1
    assert found[1] == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_only_level_of_the_other_class_is_found(strategy: str) -> None:
    # Three levels and a two-valued column, which tells nothing: class 1 is the level 2.
    model, encoding = Line([0.0, 0.0, 4.0, 0.0], -2.0), encoding_of(3, 2)
    found = counterfactual(Config(strategy=strategy, iterations=20), model, encoding, [1, 0, 0, 1])
    assert found.tolist() == [0, 0, 1, 1]


def test_numbers_give_the_result_of_the_bare_library() -> None:
    model, row = Line([1.0, -0.5, 0.3], -2.0), [0.5, 1.0, -0.7]
    alone = find_tabular(pd.Series(row), model.predict_proba, cf_strategy="greedy", ft_it_max=50, size_tabu=2)
    found = counterfactual(Config(iterations=50), model, encoding_of(0, 0, 0), row)
    assert found == pytest.approx(alone.cfs[0], abs=1e-12)


def test_a_tie_is_no_counterfactual_of_class_0() -> None:
    class Tie:
        """Level 1 is a tie, which is class 0; level 2 is class 1."""

        def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
            one = vectors @ np.array([0.2, 0.5, 0.9])
            return np.column_stack([1 - one, one])

    assert counterfactual(Config(iterations=20), Tie(), encoding_of(3), [1, 0, 0]).tolist() == [0, 0, 1]


def test_the_tabu_search_ends_on_few_columns() -> None:
    # Four categories of five levels: the tabu list of five columns that cfnow would take forbids them all.
    weights = np.zeros(20)
    weights[[4, 9, 14, 19]] = 1.0
    model, encoding = Line(weights.tolist(), -3.5), encoding_of(5, 5, 5, 5)
    found = counterfactual(Config(rounds=200, iterations=20), model, encoding, [1, 0, 0, 0, 0] * 4)
    assert found.tolist() == [0, 0, 0, 0, 1] * 4


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weights", [[2.0, 1.0, 1.5, 0.0], [-1.0, 2.0, -0.5, 0.4], [0.0, 0.0, 3.0, 1.0]])
def test_numbers_are_at_the_steps_of_their_columns_and_of_the_other_class(
    strategy: str, weights: list[float]
) -> None:
    """A whole number, quarters, four ordered levels, and a number of any precision, each next to other numbers."""
    columns = (
        Column("age", step=1.0),
        Column("height", step=0.25),
        Column("grade", "categorical", ("poor", "fair", "good", "best"), ordered=True),
        Column("mass"),
    )
    mean, scale = np.array([38.3, 1.6, 1.4, 0.0]), np.array([13.7, 2.1, 1.1, 1.0])
    raw = np.array([41.0, 2.75, 1.0, -0.37])
    encoding = Encoding(columns, mean, scale, (np.zeros(4) - mean) / scale, (np.full(4, 3.0) - mean) / scale)
    row = (raw - mean) / scale
    model = Line(weights, -float(row @ weights) - 0.6)  # of class 0
    found = counterfactual(
        Config(strategy=strategy, iterations=30, rounds=300), model, encoding, row.tolist()
    )
    assert model.predict_proba(found[None])[0, 1] > 0.5
    numbers = found * scale + mean
    assert np.abs(numbers[:3] / [1, 0.25, 1] - np.round(numbers[:3] / [1, 0.25, 1])).max() < 1e-9
    assert 0 <= round(numbers[2]) <= 3 and not np.allclose(found, row)


@pytest.mark.parametrize("row", [[0, 0], [0, 1]])
def test_a_row_of_immovable_zeros_has_no_counterfactual(row: list[float]) -> None:
    found = counterfactual(Config(rounds=100), Line([1.0, 0.0], -1.0), encoding_of(0, 0), row)
    assert np.isnan(found).all()


def test_time_ends_a_search_that_finds_nothing() -> None:
    started = time.perf_counter()
    found = counterfactual(
        Config(rounds=10**9, seconds=0.3), Line([0.0, 0.0], -1.0), encoding_of(0, 0), [1, 2]
    )
    assert np.isnan(found).all() and time.perf_counter() - started < 5


def test_random_streams_and_loggers_are_restored_and_output_is_suppressed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = random.getstate(), np.random.get_state()[1].tolist(), logging.root.handlers[:]
    config = Config(strategy="random", rounds=5, iterations=5)
    counterfactual(config, Line([1.0, 0.0], -3.0), encoding_of(0, 0), [1, 2])
    counterfactual(config, Line([0.0, 0.0], -1.0), encoding_of(0, 0), [1, 2])  # "No CF found."
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), logging.root.handlers)
    assert capfd.readouterr() == ("", "")


def test_every_unit_has_its_own_random_stream() -> None:
    row = np.linspace(0.5, 1.5, 30).tolist()
    model, encoding = Line([1.0] * 30, -30.5), encoding_of(*[0] * 30)
    config = Config(strategy="random", iterations=0)
    first, again, other = (counterfactual(config, model, encoding, row, unit) for unit in "aab")
    assert first.tolist() == again.tolist() != other.tolist()


def test_a_failure_of_the_library_is_retried_with_fewer_iterations() -> None:
    class Breaks:
        """Replaces the function of cfnow: fails above 30 iterations, as the function occasionally does."""

        def __init__(self) -> None:
            self.cfs = [np.array([2.0, 2.0])]
            self.iterations: list[int] = []

        def __call__(self, ft_it_max: int, **_: object) -> "Breaks":
            self.iterations.append(ft_it_max)
            if ft_it_max > 30:
                np.concatenate([np.ones((1, 2)), np.array([])])
            return self

    explainer, library = Cfnow(Config(iterations=100)), Breaks()
    explainer.find = library
    factuals = Factuals(np.array([[1.0, 2.0]]), np.array([0]), ("a",))
    context = Context(encoding_of(0, 0), factuals.vectors, lambda unit: generator("test", unit))
    found = explainer.counterfactuals(Line([1.0, 0.0], -1.5), factuals, context)
    assert found.tolist() == [[2, 2]] and library.iterations == [100, 50, 25]


def test_a_model_that_returns_nan_is_named() -> None:
    class Broken:
        def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
            return np.full((len(vectors), 2), np.nan)

    with pytest.raises(UserError, match="Broken: predict_proba returned NaN"):
        counterfactual(Config(), Broken(), encoding_of(0), [1])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("check", checks_for(ID), ids=str)
def test_conformance(check: Check, strategy: str) -> None:
    verify(check, ID, options=Config(strategy=strategy, rounds=30, iterations=10))
