"""SynAS as published, against a plain search that follows one sequence of actions at a time."""

from itertools import permutations

import numpy as np
import pytest
import torch

from cfbench_core.presets import presets_of
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import synas
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.table import Column

COLUMNS = (
    Column("age", step=1.0, direction="up"),
    Column("colour", "categorical", ("red", "green", "blue")),
    Column("income"),
    Column("striped", "categorical", ("no", "yes")),
    Column("born", immutable=True),
)
AGE, GROUP, INCOME, PAIR = 0, [1, 2, 3], 4, 5
LOW, HIGH, SCALE = -2.0, 2.5, 0.3


def published(**changes):
    return synas.Config(**{**presets_of(synas.SPEC)["as-published"].options, **changes})


def encoding():
    size = len(COLUMNS)
    return Encoding(COLUMNS, np.zeros(size), np.full(size, SCALE), np.full(size, LOW), np.full(size, HIGH))


def rows_of(count, seed):
    draw = np.random.default_rng(seed)
    return encoding().encode(
        {
            "age": draw.integers(-1, 2, count) * SCALE,
            "colour": draw.choice(["red", "green", "blue"], count).astype(object),
            "income": draw.normal(size=count) * SCALE,
            "striped": draw.choice(["no", "yes"], count).astype(object),
            "born": draw.normal(size=count) * SCALE,
        }
    )


def logits_of(model):
    w1, b1, w2, b2 = (torch.tensor(np.asarray(model.weights[name])) for name in ("W1", "b1", "W2", "b2"))
    return lambda x: torch.relu(x @ w1 + b1) @ w2 + b2


def actions_of(row):
    """Each: its name, what it does to a row with its parameter (None: it has none), and its cost."""

    def add(place, low):
        def apply(x, p):
            return torch.cat([x[:place], (x[place] + p)[None], x[place + 1 :]])

        def cost(x, y, o):
            raw, room = y[place] * SCALE, (HIGH - low) * SCALE
            below = 1000 / room * torch.exp(-1000 / room * (raw - low * SCALE))
            above = 1000 / room * torch.exp(1000 / room * (raw - HIGH * SCALE))
            return o.number * (y[place] - x[place]).abs() + below + above

        return apply, cost

    def put(values):
        def apply(x, _):
            y = x.clone()
            for place, value in values.items():
                y[place] = value
            return y

        return apply, lambda x, y, o: torch.tensor(o.category, dtype=x.dtype)

    found = [
        ("age", 1, *add(AGE, float(row[AGE])), AGE, float(row[AGE])),
        ("income", 1, *add(INCOME, LOW), INCOME, LOW),
    ]
    for level in GROUP:
        if row[level] == 0:
            found.append((f"colour {level}", 0, *put({g: float(g == level) for g in GROUP}), None, None))
    found.append(("striped", 0, *put({PAIR: 1.0 - float(row[PAIR])}), None, None))
    return found


class Result:
    def __init__(self):
        self.success, self.cost, self.f, self.row = False, np.inf, np.inf, None

    def update(self, cost, f, row):
        cheaper, nearer = f == 0 and cost < self.cost, f == 0 or f < self.f
        if cheaper if self.success else nearer:
            self.success, self.cost, self.f, self.row = f == 0, cost, f, row


def parameters_of(logits, x, own, sequence, o):
    """The inner loop of the authors: Adam, the weight c and the end as in their code."""
    numbers = sum(action[1] for action in sequence)
    p = torch.zeros(numbers, dtype=torch.float64)
    m, v, c = torch.zeros_like(p), torch.zeros_like(p), 1e5
    check_every, reached, last_f, result = 100, False, None, Result()
    for t in range(o.steps if numbers else 1):
        p = p.detach().requires_grad_(numbers > 0)
        row, cost, used = x, torch.tensor(0.0, dtype=torch.float64), 0
        for _, needs, apply, price, *_ in sequence:
            after = apply(row, p[used] if needs else None)
            cost, row, used = cost + o.action_cost_offset + price(row, after, o), after, used + needs
        z = logits(row)
        f = torch.relu(z[own] - z[1 - own])
        here = p.detach()
        if numbers:
            (g,) = torch.autograd.grad(cost + c * f, p)
            m, v = 0.99 * m + 0.01 * g, 0.999 * v + 0.001 * g * g
            rate = 0.005 * (1 - 0.999 ** (t + 1)) ** 0.5 / (1 - 0.99 ** (t + 1))
            p = here - rate * m / (v.sqrt() + 1e-8)
        cost, f, row = cost.item(), f.item(), row.detach().numpy().copy()
        if t % check_every == 0:
            if f == 0:
                c, check_every, reached = max(1e-5, c / 10), max(check_every * 2, 10_000), True
            elif reached:
                c, check_every = min(1e9, c * 2), max(check_every / 2, 10)
            else:
                c = 1.0 if last_f == f else min(1e9, c * 2)
            last_f = f
        if t % (o.steps // 100) == 0:
            if not result.success and f > 0.9999 * result.f:
                result.update(cost, f, row)
                break
            if result.success and (f > 0 or cost > 0.9999 * result.cost):
                result.update(cost, f, row)
                break
        result.update(cost, f, row)
    return result


def by_hand(model, row, own, o):
    """The cheapest of all sequences, in every order, of actions on different columns."""
    x, best = torch.tensor(row), Result()
    for length in range(1, o.length + 1):
        for sequence in permutations(actions_of(row), length):
            if len({action[0].split()[0] for action in sequence}) < length:
                continue
            found = parameters_of(logits_of(model), x, own, sequence, o)
            within = all(place is None or low <= found.row[place] <= HIGH for *_, place, low in sequence)
            if found.success and within and found.cost < best.cost:
                best = found
    return best


@pytest.mark.parametrize(("seed", "length"), [(0, 1), (1, 2), (3, 2)])
def test_synas_as_published_is_the_search_of_its_authors(network, seed, length):
    rows, model = rows_of(4 if length == 1 else 2, seed), network(7, seed=seed)
    classes = model.predict_proba(rows).argmax(axis=1)
    config = published(length=length, steps=1000, action_cost_offset=0.1)
    factuals = Factuals(rows, classes, tuple(map(str, range(len(rows)))))
    context = Context(encoding(), rows, lambda unit: np.random.default_rng(0))
    found = synas.SynAS(config).counterfactuals(model, factuals, context)
    wanted = [by_hand(model, row, own, config) for row, own in zip(rows, classes, strict=True)]
    assert any(result.success for result in wanted)
    for place, result in enumerate(wanted):
        if not result.success:
            assert np.isnan(found.counterfactuals[place]).all()
            continue
        assert found.details["cost"][place] == pytest.approx(result.cost, rel=1e-6)
        np.testing.assert_allclose(found.counterfactuals[place], result.row, atol=1e-6)


def test_the_result_is_the_first_point_beyond_the_boundary(linear, numbers):
    """With one number, all later points are farther: the class weighs more than the cost until the search ends."""
    model, encoding_of_one = linear([1.0], -1.0), numbers(1)
    factuals = Factuals(np.zeros((1, 1)), np.array([0]), ("a",))
    context = Context(encoding_of_one, np.zeros((1, 1)), lambda unit: np.random.default_rng(0))
    found = synas.SynAS(published(length=1)).counterfactuals(model, factuals, context)
    assert 1.0 < found.counterfactuals[0, 0] < 1.0 + 2 * 0.005  # the first point beyond the boundary
    assert found.details["actions"].tolist() == [1.0]
    assert found.details["cost"][0] == pytest.approx(found.counterfactuals[0, 0])


def test_it_is_never_cheaper_than_the_cheapest_on_categories(network):
    """Where no number can move, every set of up to two levels is tried, so the result is the optimum."""
    columns = tuple(Column(name, "categorical", ("x", "y", "z")) for name in "abc")
    zero = np.zeros(3)
    space = Encoding(columns, zero, zero + 1, zero, zero + 1)
    rows = np.array(
        [np.concatenate([np.eye(3)[i], np.eye(3)[j], np.eye(3)[k]]) for i, j, k in np.ndindex(3, 3, 3)]
    )
    model = network(9, seed=2)
    classes = model.predict_proba(rows).argmax(axis=1)
    factuals = Factuals(rows, classes, tuple(map(str, range(len(rows)))))
    found = synas.SynAS(published(length=2)).counterfactuals(
        model, factuals, Context(space, rows, lambda unit: np.random.default_rng(0))
    )
    changes = np.abs(rows[:, None] - rows[None]).sum(axis=2) / 2
    fewest = np.where(classes[:, None] != classes[None], changes, np.inf).min(axis=1)
    wanted = np.where(fewest <= 2, fewest, np.nan)
    np.testing.assert_allclose(found.details["cost"], wanted)
