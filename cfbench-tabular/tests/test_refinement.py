"""ALIBIC's refinement against training rows, a fine grid, all rows of categories, and the linear problem by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.alibic import ALIBIC, Config
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, margins
from cfbench_tabular.explainers.exchanges import Exchanges, rounded_up
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.linear_problem import Linear, LinearProblem, Terms
from cfbench_tabular.explainers.other_class import OtherClass
from cfbench_tabular.explainers.refinement import leading
from cfbench_tabular.table import Column

BETA, THETA = 0.5, 0.2


def objective(points, starts, goals, theta=THETA):
    """beta ||c - x||_1 + ||c - x||_2^2 + theta ||c - p||_2^2 of each row."""
    away = points - starts
    return (
        BETA * np.abs(away).sum(axis=-1)
        + (away**2).sum(axis=-1)
        + theta * ((points - goals) ** 2).sum(axis=-1)
    )


@pytest.mark.parametrize("theta", [0.0, 0.2, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_training_row_of_the_other_class_is_better(explain, network, numbers, seed, theta):
    draw = np.random.default_rng(seed)
    rows, background = draw.normal(size=(15, 6)), draw.normal(size=(150, 6))
    model, encoding = network(6, seed=seed), numbers(6)
    classes, known = (model.predict_proba(part).argmax(axis=1) for part in (rows, background))
    found = explain(ALIBIC(Config(theta=theta)), model, encoding, rows, background)
    assert (margins(model, found, classes) > CLEAR_MARGIN).all()
    goals = OtherClass(background, known).nearest_means(rows, classes, 1)
    for row, goal, own, answer in zip(rows, goals, classes, found, strict=True):
        others = background[known != own]
        others = others[margins(model, others, np.full(len(others), own)) > CLEAR_MARGIN]
        assert objective(answer, row, goal, theta) <= objective(others, row, goal, theta).min() + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_it_is_as_good_as_the_best_point_of_a_fine_grid(explain, network, numbers, seed):
    """In two columns; the network's boundary is no line, and the best point may be far from the nearest."""
    draw = np.random.default_rng(seed)
    rows, background, model = draw.normal(size=(8, 2)), draw.normal(size=(200, 2)), network(2, seed=seed)
    classes, known = (model.predict_proba(part).argmax(axis=1) for part in (rows, background))
    found = explain(ALIBIC(Config()), model, numbers(2), rows, background)
    goals = OtherClass(background, known).nearest_means(rows, classes, 1)
    side = np.linspace(-5, 5, 401)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for row, goal, own, answer in zip(rows, goals, classes, found, strict=True):
        turned = grid[margins(model, grid, np.full(len(grid), own)) > CLEAR_MARGIN]
        if len(turned) and not np.isnan(goal).any():
            assert objective(answer, row, goal) <= 1.01 * objective(turned, row, goal).min() + 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_of_all_rows_of_categories_it_mostly_finds_the_best(explain, network, seed):
    """Three columns of four levels: 64 rows, each of them tried."""
    draw = np.random.default_rng(seed)
    columns = [Column(name, "categorical", tuple("abcd")) for name in ("one", "two", "three")]
    encoding = Encoding(columns, np.zeros(3), np.ones(3), np.full(3, -9.0), np.full(3, 9.0))
    every = np.concatenate(
        [np.eye(4)[list(levels)].reshape(1, -1) for levels in itertools.product(range(4), repeat=3)]
    )
    models = (network(12, seed=100 * seed + trial) for trial in itertools.count())
    model = next(m for m in models if 0.2 < m.predict_proba(every).argmax(axis=1).mean() < 0.8)
    classes = model.predict_proba(every).argmax(axis=1)
    background = every[draw.integers(0, 64, 300)]
    known = model.predict_proba(background).argmax(axis=1)
    found = explain(ALIBIC(Config()), model, encoding, every, background)
    space = Space.of_columns(encoding, background, known, "mvdm")
    points, answers = space.points(every), space.points(found)
    goals = OtherClass(space.points(background), known).nearest_means(points, classes, 1)
    best = []
    for place, own in enumerate(classes):
        turned = points[margins(model, every, np.full(64, own)) > CLEAR_MARGIN]
        least = objective(turned, points[place], goals[place]).min()
        reached = objective(answers[place], points[place], goals[place])
        assert reached >= least - 1e-9
        best.append(reached <= least + 1e-9)
    assert np.mean(best) >= 0.9


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**16), theta=st.sampled_from([0.0, 0.2, 1.5]))
@example(seed=4734, theta=0.2)
@example(seed=2256, theta=0.0)
def test_the_linear_problem_is_solved_exactly(seed: int, theta: float) -> None:
    """Without categories, against 200,000 random points that meet the condition and a bisection to the last digit.

    In the examples several breakpoints of the numbers are near the multiplier.
    """
    draw = np.random.default_rng(seed)
    start, goal, slopes = draw.normal(size=(3, 1, 3))
    terms = Terms(start, goal, BETA, np.array([theta]), np.full((1, 3), -4.0), np.full((1, 3), 4.0))
    encoding = Encoding(
        [Column(name) for name in "xyz"], np.zeros(3), np.ones(3), np.full(3, -9.0), np.full(3, 9.0)
    )
    space = Space.of_places(encoding)
    linear = Linear(np.array([-abs(draw.normal())]), slopes, np.zeros((1, 0, 0)))
    (solution,) = LinearProblem(terms, terms.of_levels(space), space, start, linear, 0.0).solutions()

    def lead(points):
        return linear.margin[0] + (points - start) @ slopes[0]

    trials = draw.uniform(-4, 4, (200_000, 3))
    trials = trials[lead(trials) >= 0]
    if len(trials):
        assert lead(solution)[0] >= -1e-9
        least = objective(trials, start, goal, theta).min()
        assert objective(solution, start, goal, theta)[0] <= least + 1e-9
        few, many = 0.0, 1e9
        for _ in range(200):
            middle = (few + many) / 2
            enough = lead(terms.minimum(middle * slopes))[0] >= 0
            few, many = (few, middle) if enough else (middle, many)
        best = terms.minimum(many * slopes)
        if few > 0:  # else nothing is lacking, and the smallest multiplier that is tried is not 0
            assert objective(solution, start, goal, theta)[0] <= objective(best, start, goal, theta)[0] + 1e-8


def test_the_leading_starts_of_each_factual() -> None:
    merit = np.array([3.0, 1.0, 1.0, np.inf, 2.0, 0.5])
    assert leading(np.array([0, 0, 0, 1, 1, 1]), merit, 2).tolist() == [1, 2, 4, 5]
    assert leading(np.array([0, 0, 0, 1, 1, 1]), merit, 1).tolist() == [1, 5]


@settings(deadline=None)
@given(by=st.floats(-9, 9), step=st.sampled_from([0.0, 0.1, 1.0, 2.5]))
def test_moves_are_rounded_up_to_the_step(by: float, step: float) -> None:
    (found,) = rounded_up(np.array([by]), np.array([step]))
    if step == 0:
        assert found == by
    else:
        assert found / step == pytest.approx(round(found / step), abs=1e-9)
        assert by - 1e-6 <= found < by + step


def test_the_exchanges_of_a_case_worked_out_by_hand() -> None:
    """The point (3, 0) of whole numbers, the margin 3 c_1 + 2 c_2 - 3.5, the factual (0, 0).

    5.5 is to spare: c_1 can go back by one step, by two it would lack 0.5. With c_1 reset, 3.5 is lacking:
    c_2 goes to 2, or stretched to 3, which is as far as before. If c_2 has to stay below 2, only the first remains.
    """
    columns = [Column("x"), Column("y")]
    space = Space.of_places(Encoding(columns, np.zeros(2), np.ones(2), np.full(2, -9.0), np.full(2, 9.0)))
    linear = Linear(np.array([5.5]), np.array([[3.0, 2.0]]), np.zeros((1, 0, 0)))
    start = np.zeros((1, 2))

    def found(highest: float) -> set[tuple[float, ...]]:
        low, high = np.full((1, 2), -9.0), np.array([[9.0, highest]])
        exchanges = Exchanges(Terms(start, start, BETA, np.zeros(1), low, high), space, np.ones(2), 0.0)
        _, tried = exchanges.most_promising(np.array([[3.0, 0.0]]), start, linear)
        return set(map(tuple, tried.tolist()))

    assert found(9.0) == {(2.0, 0.0), (0.0, 2.0)}
    assert found(1.5) == {(2.0, 0.0)}
