"""ALIBIC, CADEX, ML-Explain and SEDC as published, against plain loops over one row at a time."""

import numpy as np
import pytest
import torch

from cfbench_core.presets import presets_of
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import alibic, cadex, ml_explain, sedc
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.table import Column

COLUMNS = (
    Column("age", step=1.0),
    Column("colour", "categorical", ("red", "green", "blue")),
    Column("income"),
    Column("striped", "categorical", ("no", "yes")),
)
GROUP, PAIR, WHOLE = [1, 2, 3], 5, 0


def encoding_of(columns):
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.full(size, 0.3), np.full(size, -9.0), np.full(size, 9.0))


def rows_of(encoding, count, seed):
    draw = np.random.default_rng(seed)
    values = {
        "age": draw.integers(-2, 3, count).astype(float),
        "colour": draw.choice(["red", "green", "blue"], count).astype(object),
        "income": draw.normal(size=count),
        "striped": draw.choice(["no", "yes"], count).astype(object),
    }
    return encoding.encode(values)


def torch_network(model):
    w1, b1, w2, b2 = (torch.tensor(np.asarray(model.weights[name])) for name in ("W1", "b1", "W2", "b2"))
    return lambda x: torch.softmax(torch.relu(x @ w1 + b1) @ w2 + b2, -1)


def options_of(module):
    return module.Config(**presets_of(module.SPEC)["as-published"].options)


def cadex_of_one_row(predict, x, target, columns_are_numbers, threshold=0.2):
    """Keras's Adam on the input, with levels switched after every step."""
    x, delta = torch.tensor(x), torch.zeros(len(x), dtype=torch.float64)
    m, v = torch.zeros_like(delta), torch.zeros_like(delta)
    for t in range(1, 1001):
        delta = delta.detach().requires_grad_()
        loss = -torch.log(predict(x + delta)[target])
        (g,) = torch.autograd.grad(loss, delta)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        delta = (delta - 0.001 * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t) * m / (v.sqrt() + 1e-7)).detach()
        if not columns_are_numbers:
            now = x + delta
            second = sorted(GROUP, key=lambda place: float(now[place]))[1]
            if now[second] > threshold:
                now[GROUP] = 0.0
                now[second] = 1.0
            no, yes = 1 - float(now[PAIR]), float(now[PAIR])
            if min(no, yes) > threshold:
                now[PAIR] = 1.0 if yes < no else 0.0
            delta = now - x
        if predict(x + delta)[target] <= 0.5:
            continue
        row = (x + delta).clone()
        if not columns_are_numbers:
            largest = max(GROUP, key=lambda place: float(row[place]))
            row[GROUP] = 0.0
            row[largest] = 1.0
            row[PAIR] = 1.0 if row[PAIR] > 0.5 else 0.0
            row[WHOLE] = torch.round(row[WHOLE] * 0.3) / 0.3
        if predict(row)[target] > 0.5:
            return row.numpy()
    return np.full(len(x), np.nan)


def ml_explain_of_one_row(predict, x, own, steps):
    x = torch.tensor(x)
    c = x.clone()
    for _ in range(steps):
        c = c.detach().requires_grad_()
        cost = predict(c)[own] + torch.dist(x, c)
        (g,) = torch.autograd.grad(cost, c)
        c = (c - g).detach()
    return c.numpy() if predict(c)[own] < 0.5 else np.full(len(x), np.nan)


@pytest.mark.parametrize(
    ("seed", "threshold"),
    [(0, 0.2), pytest.param(2, 0.2, marks=pytest.mark.slow), pytest.param(0, 0.0, marks=pytest.mark.slow)],
)
def test_cadex_as_published_is_the_loop_of_its_authors(explain, network, seed, threshold):
    encoding = encoding_of(COLUMNS)
    rows, model = rows_of(encoding, 8, seed), network(6, seed=seed)
    config = cadex.Config(**{**vars(options_of(cadex)), "switch_above": threshold})
    found = explain(cadex.CADEX(config), model, encoding, rows, rows)
    predict = torch_network(model)
    classes = model.predict_proba(rows).argmax(axis=1)
    wanted = [
        cadex_of_one_row(predict, row, 1 - own, False, threshold)
        for row, own in zip(rows, classes, strict=True)
    ]
    assert np.isnan(found[:, 0]).sum() < 8
    np.testing.assert_allclose(found, wanted, atol=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_cadex_as_published_on_numbers(explain, network, numbers, seed):
    rows, model = np.random.default_rng(seed).normal(size=(6, 4)), network(4, seed=seed)
    found = explain(cadex.CADEX(options_of(cadex)), model, numbers(4), rows, rows)
    predict, classes = torch_network(model), model.predict_proba(rows).argmax(axis=1)
    wanted = [cadex_of_one_row(predict, row, 1 - own, True) for row, own in zip(rows, classes, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_cadex_as_published_keeps_immutable_columns_and_the_number_of_changes(explain, network):
    columns = (Column("a", immutable=True), Column("b"), Column("c", direction="up"), Column("d"))
    rows, model = np.random.default_rng(0).normal(size=(30, 4)), network(4, seed=1)
    options = options_of(cadex)
    found = explain(cadex.CADEX(options), model, encoding_of(columns), rows, rows)
    given = ~np.isnan(found[:, 0])
    assert given.any() and (found[given, 0] == rows[given, 0]).all()
    few = cadex.Config(**{**vars(options), "features": 1})
    found = explain(cadex.CADEX(few), model, encoding_of(columns), rows, rows)
    given = ~np.isnan(found[:, 0])
    assert given.any() and ((found != rows)[given].sum(axis=1) == 1).all()


@pytest.mark.parametrize(("steps", "least"), [(1, 1.0), (6, 1.0), (100, 0.9)])
@pytest.mark.parametrize("seed", range(3))
def test_ml_explain_as_published_is_the_loop_of_its_author(explain, network, numbers, seed, steps, least):
    """After many swings around x, where the distance has no gradient, rounding may decide where a point ends."""
    rows, model = np.random.default_rng(seed).normal(size=(20, 4)), network(4, seed=seed)
    config = ml_explain.Config(**{**vars(options_of(ml_explain)), "iterations": steps})
    found = explain(ml_explain.MLExplain(config), model, numbers(4), rows, rows)
    predict, classes = torch_network(model), model.predict_proba(rows).argmax(axis=1)
    wanted = [ml_explain_of_one_row(predict, row, own, steps) for row, own in zip(rows, classes, strict=True)]
    same = np.isclose(found, wanted, atol=1e-6, equal_nan=True).all(axis=1)
    assert same.mean() >= least


def test_ml_explain_as_published_finds_few_counterfactuals(explain, linear, numbers):
    """With a distance of weight 1, points swing around x; without it, the probability is descended."""
    rows = np.random.default_rng(0).normal(size=(200, 2))
    published = options_of(ml_explain)
    alone = ml_explain.Config(**{**vars(published), "distance_weight": 0.0})
    model = linear([1.0, 1.0], 0.0)
    shares = [
        (~np.isnan(explain(ml_explain.MLExplain(config), model, numbers(2), rows, rows)[:, 0])).mean()
        for config in (published, alone)
    ]
    assert shares[0] < 0.5 < shares[1] == 1


def alibic_of_one_row(predict, x, own, prototype, o, low=-9.0, high=9.0):
    """FISTA on one point for each cost, in the order of the authors' code."""
    x, prototype, low, high = (
        torch.as_tensor(part, dtype=torch.float64) for part in (x, prototype, low, high)
    )
    lower, upper, cost = 0.0, 1e10, o.cost
    best, least = torch.full_like(x, torch.nan), 1e10
    for _ in range(o.rounds):
        adv, ahead, found = x.clone(), x.clone(), False
        for step in range(o.iterations):
            ahead = ahead.detach().requires_grad_()
            p = predict(ahead)
            loss = cost * torch.clamp(p[own] - p[1 - own] + o.kappa, min=0.0)
            loss = loss + ((ahead - x) ** 2).sum() + o.theta * ((ahead - prototype) ** 2).sum()
            (g,) = torch.autograd.grad(loss, ahead)
            g = g.clamp(-1000.0, 1000.0)
            y = ahead.detach() - o.learning_rate * (1 - step / o.iterations) ** 0.5 * g
            before = adv
            adv = torch.where(y - x > o.beta, torch.minimum(y - o.beta, high), x)
            adv = torch.where(y - x < -o.beta, torch.maximum(y + o.beta, low), adv)
            ahead = (adv + (step + 1) / (step + 4) * (adv - before)).clamp(low, high)
            p = predict(adv)
            if p[1 - own] > p[own] + o.kappa:
                found = True
                distance = o.beta * (adv - x).abs().sum() + ((adv - x) ** 2).sum()
                if distance < least:
                    best, least = adv, distance
        if found:
            upper = min(upper, cost)
        else:
            lower = max(lower, cost)
        cost = (lower + upper) / 2 if upper < 1e9 else cost * 10
    return best.numpy()


@pytest.mark.parametrize(
    ("seed", "theta"),
    [(0, 1.0), pytest.param(1, 0.0, marks=pytest.mark.slow), pytest.param(2, 10.0, marks=pytest.mark.slow)],
)
def test_alibic_as_published_is_the_loop_of_its_authors(explain, network, numbers, seed, theta):
    draw = np.random.default_rng(seed)
    rows, background, model = draw.normal(size=(4, 3)), draw.normal(size=(60, 3)), network(3, seed=seed)
    config = alibic.Config(**{**vars(options_of(alibic)), "iterations": 100, "rounds": 5, "theta": theta})
    found = explain(alibic.ALIBIC(config), model, numbers(3), rows, background)
    predict, classes = torch_network(model), model.predict_proba(rows).argmax(axis=1)
    others = model.predict_proba(background).argmax(axis=1)
    wanted = []
    for row, own in zip(rows, classes, strict=True):
        enemies = background[others != own]
        prototype = enemies[((enemies - row) ** 2).sum(axis=1).argmin()]
        wanted.append(alibic_of_one_row(predict, row, own, prototype, config))
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    assert np.isclose(found, wanted, atol=1e-7, equal_nan=True).mean() > 0.9  # at a kink rounding decides
    assert not np.isnan(found).all()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_alibic_as_published_passes_gradients_to_categories(explain, network, seed):
    encoding = encoding_of(COLUMNS)
    rows, background, model = (
        rows_of(encoding, 4, seed),
        rows_of(encoding, 60, seed + 9),
        network(6, seed=seed),
    )
    config = alibic.Config(**{**vars(options_of(alibic)), "iterations": 60, "rounds": 8, "theta": 1.0})
    found = explain(alibic.ALIBIC(config), model, encoding, rows, background)
    classes, others = (model.predict_proba(part).argmax(axis=1) for part in (rows, background))
    space = Space.of_columns(encoding, background, others, "abdm")
    lines = []  # where each level is, in the order of the levels
    for column, size in ((1, 3), (3, 2)):
        line = rows_of(encoding, 1, 0).repeat(size, axis=0)
        line[:, GROUP if size == 3 else [PAIR]] = np.eye(3) if size == 3 else [[0.0], [1.0]]
        lines.append(torch.tensor(space.points(line)[:, column]))

    def vector(point):
        """A level passes the gradients of all its positions to its coordinate."""
        through = point - point.detach()
        group = torch.eye(3, dtype=point.dtype)[(lines[0] - point[1]).abs().argmin()] + through[1]
        pair = (lines[1] - point[3]).abs().argmin() + through[3]
        return torch.cat([point[:1], group, point[2:3], pair[None]])

    network_of_rows = torch_network(model)
    points, known = space.points(rows), space.points(background)
    ends = [[-9.0, float(lines[0].min()), -9.0, float(lines[1].min())]]
    ends.append([9.0, float(lines[0].max()), 9.0, float(lines[1].max())])
    for answer, point, own in zip(found, points, classes, strict=True):
        enemies = known[others != own]
        prototype = enemies[((enemies - point) ** 2).sum(axis=1).argmin()]
        wanted = alibic_of_one_row(
            lambda p: network_of_rows(vector(p)), point, own, prototype, config, ends[0], ends[1]
        )
        if np.isnan(wanted).any():
            assert np.isnan(answer).all()
        else:
            np.testing.assert_allclose(answer, vector(torch.tensor(wanted)).numpy(), atol=1e-6)
    assert not np.isnan(found).all()


def sedc_of_one_row(score, x, typical, iterations):
    """``score``: P(class of x) of a row. Sets are numbers whose bits are the positions that are replaced."""

    def replaced(mask):
        return np.array([typical[j] if mask >> j & 1 else x[j] for j in range(len(x))])

    queue = [(score(x), 0)]
    for _ in range(iterations):
        if not queue:
            return None
        chance, mask = queue.pop(0)
        if chance < 0.5:
            smaller = [c for c in range(1, mask) if c | mask == mask and c & (c - 1)]
            smaller.sort(key=lambda c: -bin(c).count("1"))
            while smaller:
                c = smaller.pop(0)
                if score(replaced(c)) < 0.5:
                    mask, smaller = c, [other for other in smaller if other | c == c]
            return replaced(mask)
        for j in range(len(x)):
            if not mask >> j & 1 and x[j] != typical[j]:
                queue.append((score(replaced(mask | 1 << j)), mask | 1 << j))
        queue.sort(key=lambda entry: entry[0])
    return None


@pytest.mark.parametrize("seed", range(6))
def test_sedc_as_published_is_the_loop_of_its_authors(explain, network, numbers, seed):
    draw = np.random.default_rng(seed)
    rows, background, model = draw.normal(size=(12, 6)), draw.normal(size=(50, 6)), network(6, seed=seed)
    found = explain(sedc.SEDC(options_of(sedc)), model, numbers(6), rows, background)
    classes = model.predict_proba(rows).argmax(axis=1)
    for answer, row, own in zip(found, rows, classes, strict=True):
        wanted = sedc_of_one_row(
            lambda x, own=own: model.predict_proba(x[None])[0, own], row, background.mean(axis=0), 20
        )
        np.testing.assert_array_equal(answer, np.full(6, np.nan) if wanted is None else wanted)
    assert not np.isnan(found).all() or len(set(classes)) == 1  # then the mean is in that class, too
