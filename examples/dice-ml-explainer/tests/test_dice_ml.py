"""First examples that can be verified by hand, then limits and pitfalls, and the conformance checks."""

import random

import numpy as np
import pytest
from cfbench_explainer_dice_ml.dice_ml import Config, DiceML, Frames, decimals_of

from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import Check, checks_for, verify
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.table import Column

ID = "tabular/explainer/dice-ml"
METHODS = ["random", "genetic", "kdtree"]


class Line:
    """A classifier: the log-odds of class 1 are w . x + b."""

    def __init__(self, weights: list[float], bias: float) -> None:
        self.weights, self.bias = np.array(weights), bias

    def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
        one = 1 / (1 + np.exp(-(vectors @ self.weights + self.bias)))
        return np.column_stack([1 - one, one])


NUMBERS = (Column("length"), Column("width"))
ROWS = [[0.0, 3.25], [0.5, 1.0], [2.5, 3.0], [4.0, 0.5], [3.0, 7.5], [0.25, 6.0]]
LENGTH = Line([2.0, 0.0], -4.0)
"""Class 1 where the length is above 2."""


def encoding_of(columns: tuple[Column, ...], low: float = 0.0, high: float = 9.0) -> Encoding:
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.ones(size), np.full(size, low), np.full(size, high))


def counterfactuals(config, model, columns, rows, background=ROWS, several: int = 1, units: str = "abcdefgh"):
    """(B, n, d) the counterfactuals of ``rows``."""
    vectors, background = np.array(rows, dtype=float), np.array(background, dtype=float)
    found = model.predict_proba(vectors)
    factuals = Factuals(vectors, (found[:, 1] > found[:, 0]).astype(np.int64), tuple(units[: len(rows)]))
    context = Context(
        encoding_of(columns),
        background,
        lambda unit: generator("test", unit),
        counterfactuals_per_instance=several,
    )
    return DiceML(config).counterfactuals(model, factuals, context)


def test_no_name_of_a_column_begins_another_one() -> None:
    """The library takes the columns of a category to be all whose names begin with its own."""
    columns = tuple(Column(f"number {place}") for place in range(12))
    names = Frames(encoding_of(columns), np.zeros((3, 12))).names
    assert len(set(names)) == 12
    assert not [(a, b) for a in names for b in names if a != b and b.startswith(a)]


def test_kdtree_returns_the_nearest_training_row_of_the_other_class() -> None:
    found = counterfactuals(Config(method="kdtree", sparsity=None), LENGTH, NUMBERS, [[0.0, 3.25]])
    assert found.tolist() == [[[2.5, 3.0]]]


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_at_the_steps_of_their_columns(method: str) -> None:
    """A term of 12, 24, ... months and a score in quarters, of which dice-ml knows the decimals only."""
    columns = (Column("term", step=12.0), Column("score", step=0.25))
    draw = np.random.default_rng(0)
    background = np.stack([12.0 * draw.integers(1, 11, 80), 0.25 * draw.integers(0, 37, 80)], axis=1)
    model = Line([0.1, 0.3], -8.0)
    vectors = background[:6]
    found = model.predict_proba(vectors)
    factuals = Factuals(vectors, (found[:, 1] > found[:, 0]).astype(np.int64), tuple("abcdef"))
    low, high = np.array([12.0, 0.0]), np.array([120.0, 9.0])
    encoding = Encoding(columns, np.zeros(2), np.ones(2), low, high)
    context = Context(encoding, background, lambda unit: generator("test", unit))
    answers = DiceML(Config(method=method)).counterfactuals(model, factuals, context)[:, 0]
    given = ~np.isnan(answers).any(axis=1)
    assert given.all()
    assert (answers[given, 0] % 12 == 0).all() and (answers[given, 1] % 0.25 == 0).all()
    flipped = model.predict_proba(answers[given])
    assert ((flipped[:, 1] > flipped[:, 0]) != (factuals.classes[given] == 1)).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_rows_of_the_other_class(method: str) -> None:
    found = counterfactuals(Config(method=method), LENGTH, NUMBERS, [[0.0, 3.25], [4.0, 0.5]])
    assert found[0, 0, 0] > 2 >= found[1, 0, 0]


@pytest.mark.parametrize("method", ["random", "kdtree"])
def test_the_only_level_of_the_other_class_is_found(method: str) -> None:
    columns = (
        Column("colour", "categorical", ("red", "green", "blue")),
        Column("x", "categorical", ("no", "yes")),
    )
    background = [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1]]
    found = counterfactuals(
        Config(method=method), Line([0.0, 0, 4, 0], -2), columns, [[1, 0, 0, 1]], background
    )
    assert found[0, 0, :3].tolist() == [0, 0, 1]


def test_several_counterfactuals_are_distinct_and_valid() -> None:
    found = counterfactuals(Config(), LENGTH, NUMBERS, [[0.0, 3.25]], several=4)[0]
    assert found.shape == (4, 2) and len(np.unique(found, axis=0)) == 4
    assert (found[:, 0] > 2).all()


def test_immutable_and_one_way_columns_are_respected() -> None:
    columns = (Column("length"), Column("width", immutable=True))
    found = counterfactuals(Config(), LENGTH, columns, [[0.0, 3.25]], several=8)[0]
    assert (found[:, 1] == 3.25).all() and (found[:, 0] > 2).all()
    down = (Column("length", direction="down"), Column("width"))
    assert np.isnan(counterfactuals(Config(), LENGTH, down, [[0.5, 1.0]])).all()
    still = (Column("length", immutable=True), Column("width", immutable=True))
    assert np.isnan(counterfactuals(Config(), LENGTH, still, [[0.5, 1.0]])).all()


def test_numbers_stay_in_the_range_of_the_table_up_to_the_last_decimal() -> None:
    found = counterfactuals(Config(), LENGTH, NUMBERS, [[0.0, 3.25]], several=50)[0]
    assert found.min() >= 0 and found.max() <= 9.01


def test_unchanged_numbers_equal_those_of_the_row_exactly() -> None:
    # 32 bits and few decimals would make 0.1 and a third something else.
    row = [0.1, 1 / 3]
    found = counterfactuals(Config(), LENGTH, NUMBERS, [row], background=[*ROWS, row], several=20)[0]
    assert (found[:, 1] == 1 / 3).any()
    assert (np.abs(found[:, 1] - 1 / 3) > 1e-4).any()


def test_whole_numbers_stay_whole() -> None:
    background = [[0, 3], [1, 1], [3, 3], [4, 0]]
    found = counterfactuals(Config(), LENGTH, NUMBERS, [[0, 3]], background, several=10)
    assert (found == np.round(found)).all()


def test_rows_that_the_library_refuses_have_no_counterfactual() -> None:
    columns = (Column("colour", "categorical", ("red", "green", "blue")), Column("x"))
    background = [[1, 0, 0, 0.5], [0, 1, 0, 3.5], [1, 0, 0, 2.5]]
    found = counterfactuals(
        Config(), Line([0.0, 0, 0, 2], -4), columns, [[1, 0, 0, 1], [0, 0, 1, 1]], background
    )
    assert np.isnan(found[1]).all() and not np.isnan(found[0]).any()
    assert np.isnan(counterfactuals(Config(), LENGTH, NUMBERS, [[0.5, 1]], [[0, 1], [3, 2]])).all()


def test_a_tie_is_no_counterfactual_of_class_0() -> None:
    class Tie:
        """Green is a tie, which is class 0; blue is class 1."""

        def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
            one = vectors @ np.array([0.2, 0.5, 0.9])
            return np.column_stack([1 - one, one])

    columns = (Column("colour", "categorical", ("red", "green", "blue")),)
    found = counterfactuals(Config(samples=20), Tie(), columns, [[1, 0, 0]], np.eye(3), several=1)
    assert found.tolist() == [[[0, 0, 1]]]


@pytest.mark.parametrize("method", METHODS)
def test_the_search_ends_if_the_model_never_predicts_the_other_class(method: str) -> None:
    found = counterfactuals(
        Config(method=method, max_queries=300, samples=100), Line([0, 0], -1), NUMBERS, [[0.0, 3.25]]
    )
    assert np.isnan(found).all()


def test_time_ends_a_search_that_would_not_end() -> None:
    config = Config(method="genetic", max_queries=10**9, seconds=0.3)
    assert np.isnan(counterfactuals(config, Line([0, 0], -1), NUMBERS, [[0.0, 3.25]])).all()


def test_random_streams_are_restored_and_output_is_suppressed(capfd: pytest.CaptureFixture[str]) -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()
    counterfactuals(Config(), LENGTH, NUMBERS, [[0.0, 3.25]])
    assert before == (random.getstate(), np.random.get_state()[1].tolist())
    assert capfd.readouterr() == ("", "")


def test_every_unit_has_its_own_random_stream() -> None:
    found = counterfactuals(Config(), LENGTH, NUMBERS, [[0.0, 3.25]] * 3, units="aab")
    assert found[0].tolist() == found[1].tolist() != found[2].tolist()


@pytest.mark.parametrize(
    ("values", "scale", "expected"),
    [([0.5, 1.25], 1.0, 2), ([1.0, 3.1], 1.0, 1), ([1 / 3, 2 / 3], 1.0, 3), ([0.00012, 0.0005], 1e-4, 5)],
)
def test_decimals_are_those_of_the_values(values: list[float], scale: float, expected: int) -> None:
    assert decimals_of(np.array(values), scale) == expected


def test_a_frame_is_decoded_to_the_same_vectors() -> None:
    columns = (
        Column("a"),
        Column("c", "categorical", ("x", "y", "z")),
        Column("b", "categorical", ("no", "yes")),
    )
    rows = np.array([[0.125, 1, 0, 0, 1], [7.5, 0, 0, 1, 0]])
    encoding = encoding_of(columns)
    frames = Frames(encoding, rows)
    frame = frames.of(rows)
    assert frame.to_numpy().tolist() == [[0.125, "x", "yes"], [7.5, "z", "no"]]
    assert frames.vectors(frame, rows[0]).tolist() == rows.tolist()


NEAREST_TEN = "it tries the ten nearest training rows only, and none agrees with the row in what must stay"
WAIVED = {
    "random": {},
    "kdtree": dict.fromkeys(
        ["respects-immutable-columns", "stays-in-range", "returns-valid-one-hot-groups"], NEAREST_TEN
    ),
}
"""``genetic`` is left out: it passes, but takes minutes."""


@pytest.mark.parametrize("method", WAIVED)
@pytest.mark.parametrize("check", checks_for(ID), ids=str)
def test_conformance(check: Check, method: str) -> None:
    verify(check, ID, options=Config(method=method, samples=100), waive=WAIVED[method])
