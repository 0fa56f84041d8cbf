"""What optimum and mace rely on: prices, and what a hidden unit can reach for a price."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.exact import Costs, Network, nearby, reach_of
from cfbench_tabular.table import Column

LEVELS = ("a", "b", "c")


def mixed():
    """Two numbers, a category of three, a switch."""
    columns = (
        Column("x"),
        Column("y"),
        Column("c", "categorical", LEVELS),
        Column("s", "categorical", ("0", "1")),
    )
    low, high = np.array([-3.0, -2.0, 0.0, 0.0]), np.array([3.0, 4.0, 1.0, 1.0])
    return Encoding(columns, np.zeros(4), np.ones(4), low, high)


FACTUAL = np.array([1.0, 0.5, 0.0, 1.0, 0.0, 1.0])


def rows_of(encoding, number, seed):
    draw = np.random.default_rng(seed)
    low, high = encoding.bounds
    rows = encoding.project(draw.uniform(low, high, size=(number, encoding.width)))
    keep = draw.random((number, len(encoding.columns)))[:, encoding.column_of] < 0.5
    return np.where(keep, FACTUAL, rows)


def test_prices_by_hand():
    costs = Costs(mixed(), np.array([2.0, 1.0, 0.0, 0.0]), np.array([0.0, 5.0, 3.0, 4.0]))
    rows = np.array([[2.0, 0.5, 0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], FACTUAL])
    assert costs.of(rows, FACTUAL).tolist() == [2.0, 5.5 + 3.0 + 4.0, 0.0]
    assert replace(costs, largest=True).of(rows, FACTUAL).tolist() == [2.0, 5.5, 0.0]


@pytest.mark.parametrize("kind", ["sum", "count", "largest"])
@pytest.mark.parametrize("budget", [0.3, 1.0, 2.5, np.inf])
def test_no_row_within_the_budget_leaves_the_bounds(kind, budget):
    encoding, draw = mixed(), np.random.default_rng(0)
    costs = {
        "sum": Costs(encoding, np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.7])),
        "count": Costs(encoding, np.zeros(4), np.ones(4)),
        "largest": Costs(
            encoding, np.array([0.3, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0]), largest=True
        ),
    }[kind]
    shapes = ((6, 5), (5, 4), (4, 2))
    network = Network.of([(draw.normal(size=shape), draw.normal(size=shape[1])) for shape in shapes])
    reach = reach_of(costs, FACTUAL).within(budget)
    rows = rows_of(encoding, 20_000, 1)
    near = rows[costs.of(rows, FACTUAL) <= budget]
    assert len(near) > 100
    assert ((near >= reach.low - 1e-12) & (near <= reach.high + 1e-12)).all()
    values = near
    for (weight, bias), (low, high) in zip(network.hidden(), reach.units(network), strict=True):
        values = values @ weight + bias
        assert (values >= low - 1e-9).all()
        assert (values <= high + 1e-9).all()
        values = np.maximum(values, 0.0)


def test_bounds_of_the_first_layer_are_no_wider_than_those_of_a_linear_programme():
    """Numbers up and down, levels divisible, one level of the category in all."""
    encoding, draw = mixed(), np.random.default_rng(3)
    costs = Costs(encoding, np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 2.0, 1.0]))
    weight, bias = draw.normal(size=(6, 12)), draw.normal(size=12)
    low, high = reach_of(costs, FACTUAL).within(1.8).extremes(weight, bias)
    # x up, x down, y up, y down, c to a, c to c, switch off
    moves = np.array(
        [[1, 0, 0, 0, 0, 0], [-1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, -1, 0, 0, 0, 0]], dtype=float
    )
    moves = np.concatenate([moves, [[0, 0, 1, -1, 0, 0], [0, 0, 0, -1, 1, 0], [0, 0, 0, 0, 0, -1]]])
    room = [(0, 2.0), (0, 4.0), (0, 3.5), (0, 2.5), (0, 1), (0, 1), (0, 1)]
    limits = np.array([[1, 1, 0.5, 0.5, 2, 2, 1], [0, 0, 0, 0, 1, 1, 0]])
    for unit in range(12):
        gains = moves @ weight[:, unit]
        most = -linprog(-gains, A_ub=limits, b_ub=[1.8, 1.0], bounds=room).fun
        least = linprog(gains, A_ub=limits, b_ub=[1.8, 1.0], bounds=room).fun
        middle = FACTUAL @ weight[:, unit] + bias[unit]
        # A number or level that the budget cannot pay is cut off first, which only tightens.
        assert high[unit] <= middle + most + 1e-9
        assert low[unit] >= middle + least - 1e-9


def test_the_row_to_start_from_is_of_the_other_class_and_no_dearer_than_any_training_row(network):
    encoding = mixed()
    costs = Costs(encoding, np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 2.0, 1.0]))
    background = rows_of(encoding, 200, 5)
    answered = 0
    for seed in range(8):
        model = network(6, seed=seed)
        label = int(model.predict_proba(FACTUAL[None])[0].argmax())
        enemies = background[model.predict_proba(background).argmax(axis=1) != label]
        start = nearby(model, reach_of(costs, FACTUAL), label, enemies)
        if len(enemies) == 0:
            assert start is None
            continue
        answered += 1
        encoding.decode(start[None])  # raises unless it is a row
        assert model.predict_proba(start[None])[0].argmax() != label
        assert costs.of(start[None], FACTUAL)[0] <= costs.of(enemies, FACTUAL).min() + 1e-12
    assert answered > 3
