"""ALIBIC, CADEX, DiCE, Growing Spheres, ML-Explain and SEDC as published, against plain loops over one row at a time."""

import numpy as np
import pytest
import torch

from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import (
    alibic,
    cadex,
    dice,
    dice_published,
    growing_spheres,
    ml_explain,
    sedc,
)
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
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


@pytest.mark.parametrize(("seed", "threshold"), [(0, 0.2), (2, 0.2), (0, 0.0)])
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


def growing_spheres_of_one_row(is_enemy, x, stream, n, radius):
    """A ball that shrinks by ten until it holds no enemy, then shells, then each change reset that can be."""
    d, enemies = len(x), [x]
    while len(enemies):
        u = stream.normal(size=(n, d + 2))
        ball = x + radius * u[:, :d] / np.sqrt((u**2).sum(axis=1))[:, None]
        enemies = [z for z in ball if is_enemy(z)]
        radius /= 10
    step = radius / 10
    while not len(enemies):
        z = stream.normal(size=(n, d))
        r = stream.uniform(radius**d, (radius + step) ** d, n) ** (1 / d)
        enemies = [x + r[i] * z[i] / np.sqrt(z[i] @ z[i]) for i in range(n)]
        enemies = [z for z in enemies if is_enemy(z)]
        radius += step
    best = min(enemies, key=lambda z: np.linalg.norm(z - x))
    for j in sorted(range(d), key=lambda j: abs(best[j] - x[j])):
        tried = np.where(np.arange(d) == j, x, best)
        if is_enemy(tried):
            best = tried
    return best


@pytest.mark.parametrize(("seed", "radius"), [(0, 0.1), (1, 0.1), (2, 30.0)])
def test_growing_spheres_as_published_is_the_loop_of_its_authors(explain, network, numbers, seed, radius):
    """Also from a first ball that holds enemies, which shrinks."""
    rows, model = np.random.default_rng(seed).normal(size=(6, 4)), network(4, seed=seed)
    options = {**vars(options_of(growing_spheres)), "samples": 50, "radius": radius}
    found = explain(
        growing_spheres.GrowingSpheres(growing_spheres.Config(**options)), model, numbers(4), rows, rows
    )
    classes = model.predict_proba(rows).argmax(axis=1)
    for place, (row, own) in enumerate(zip(rows, classes, strict=True)):

        def is_enemy(z, own=own):
            return model.predict_proba(z[None]).argmax() != own

        stream = generator("test", str(place))
        wanted = growing_spheres_of_one_row(is_enemy, row, stream, 50, radius)
        np.testing.assert_allclose(found[place], wanted, atol=1e-9)


def test_growing_spheres_as_published_leaves_immutable_columns_alone(explain, network):
    columns = (Column("a", immutable=True), Column("b"), Column("c"))
    rows, model = np.random.default_rng(0).normal(size=(10, 3)), network(3, seed=1)
    options = {**vars(options_of(growing_spheres)), "samples": 50, "radius": 10.0, "layers": 400}
    spheres = growing_spheres.GrowingSpheres(growing_spheres.Config(**options))
    found = explain(spheres, model, encoding_of(columns), rows, rows)
    given = ~np.isnan(found[:, 0])
    assert given.any() and (found[given, 0] == rows[given, 0]).all()
    fixed = encoding_of(tuple(Column(name, immutable=True) for name in "abc"))
    assert np.isnan(explain(spheres, model, fixed, rows, rows)).all()


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


@pytest.mark.parametrize(("seed", "theta"), [(0, 1.0), (1, 0.0), (2, 10.0)])
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


@pytest.mark.parametrize("seed", range(4))
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


def dice_of_one_row(predict, x, own, k, low, high, weights, groups, o):
    """Adam of torch on one set, with the loss and the end of the authors' code; rounded to rows by ``rounded``."""
    low, high, x = (torch.tensor(part) for part in (low, high, x))
    weights = (torch.tensor(weights) * (high - low)).round(decimals=2)
    start = (x - low) / (high - low)
    points = (start + 0.01 * torch.arange(k)[:, None]).requires_grad_()
    optimiser = torch.optim.Adam([points], lr=o.learning_rate)

    def distance(a, b):
        return ((a - b).abs() * weights).sum()

    def logit(u):
        shifted = (predict(low + u * (high - low))[1] - 1e-6).abs()
        return (1 - 2 * own) * (torch.log(shifted) - torch.log(1 - shifted))

    def rounded():
        rows = points.detach().clone()
        for group in groups:
            for row in rows:
                row[group] = torch.eye(len(group), dtype=rows.dtype)[row[group].argmax()]
        return rows

    before, backup, nearest = 0.0, None, np.inf
    for step in range(1, o.iterations + 1):
        optimiser.zero_grad()
        loss = sum(torch.relu(1 - logit(u)) for u in points) / k
        loss = loss + o.proximity * sum(distance(u, start) for u in points) / (k * len(x))
        if k > 1:
            similar = torch.stack([torch.stack([1 / (1 + distance(a, b)) for b in points]) for a in points])
            loss = loss - o.diversity * torch.det(similar + 1e-4 * torch.eye(k, dtype=similar.dtype))
        for group in groups:
            loss = loss + o.categories * ((points[:, group].sum(dim=1) - 1) ** 2).sum()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            points.clamp_(0.0, 1.0)
        rows = rounded()
        leads = [float(predict(low + u * (high - low))[1 - own]) - 0.5 for u in rows]
        whole = min(leads) > 0
        near = np.mean(np.abs(leads))
        if whole and near < nearest:
            backup, nearest = rows, near
        change, before = abs(loss.item() - before), loss.item()
        if step >= dice_published.FIRST_STEPS and change <= 1e-5 and whole:
            break
    found = backup if not whole and backup is not None else rows
    vectors = (low + found * (high - low)).numpy()
    wrong = [float(predict(torch.tensor(row))[1 - own]) <= 0.5 for row in vectors]
    vectors[wrong] = np.nan
    return vectors


@pytest.mark.parametrize("own", [0, 1])
def test_dice_as_published_shifts_the_probability_of_class_1(own):
    margin = torch.linspace(-25.0, 25.0, 101, dtype=torch.float64, requires_grad=True)
    shifted = (torch.sigmoid(margin if own == 0 else -margin) - 1e-6).abs()
    toward = (1 - 2 * own) * (torch.log(shifted) - torch.log(1 - shifted))
    (slope,) = torch.autograd.grad(toward.sum(), margin)
    found = dice_published.shifted_log_odds(margin.detach().numpy(), np.full(101, own))
    np.testing.assert_allclose(found[0], toward.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(found[1], slope.numpy(), rtol=1e-6)
    assert (found[1] < 0).any() and (found[1] > 0.9).any()


@pytest.mark.parametrize(("seed", "k", "mixed"), [(0, 1, False), (1, 3, False), (5, 2, True), (3, 1, True)])
def test_dice_as_published_is_the_loop_of_its_authors(network, monkeypatch, seed, k, mixed):
    monkeypatch.setattr(dice_published, "FIRST_STEPS", 40)
    columns = (Column("a"), Column("b"), *([COLUMNS[1]] if mixed else [Column("c")]))
    encoding = Encoding(columns, np.zeros(3), np.full(3, 0.5), np.full(3, -2.0), np.full(3, 2.0))
    draw = np.random.default_rng(seed)
    third = draw.choice(["red", "green", "blue"], 6).astype(object) if mixed else draw.normal(size=6) / 2
    values = {"a": draw.normal(size=6) / 2, "b": draw.normal(size=6) / 2, columns[2].name: third}
    rows, model = encoding.encode(values), network(encoding.width, seed=seed)
    classes = model.predict_proba(rows).argmax(axis=1)
    config = dice.Config(**{**vars(options_of(dice)), "iterations": 120, "sparsity": "none"})
    factuals = Factuals(rows, classes, tuple(map(str, range(6))))
    context = Context(encoding, rows, lambda unit: generator("test", unit), counterfactuals_per_instance=k)
    found = Explanation.of(dice.DiCE(config).counterfactuals(model, factuals, context)).counterfactuals
    low, high = (np.array([*side[:2], *([0.0, 0.0, 0.0] if mixed else side[2:])]) for side in encoding.bounds)
    high[2:] = 1.0 if mixed else high[2:]
    groups = [[2, 3, 4]] if mixed else []
    weights = dice.inverse_deviations(rows, encoding)
    predict = torch_network(model)
    assert not np.isnan(found).all()
    for answers, row, own in zip(found.reshape(6, k, -1), rows, classes, strict=True):
        wanted = dice_of_one_row(predict, row, own, k, low, high, weights, groups, config)
        nearest = np.argsort(np.nan_to_num((np.abs(wanted - row) @ weights), nan=np.inf), kind="stable")
        np.testing.assert_allclose(answers, wanted[nearest], atol=1e-6)


def reset_of_one_row(valid, row, factual, columns):
    """The numbers in raw units, moved by single steps; ``columns``: limit and step of each, in the order of the table."""
    row, factual = ([round(float(value), 9) for value in part] for part in (row, factual))
    for place, (limit, step) in sorted(columns.items(), key=lambda entry: entry[1][0], reverse=True):
        difference = before = factual[place] - row[place]
        if abs(difference) > limit + 1e-9:
            continue
        steps = 0
        while abs(difference) > 1e-3 and difference * before > 0 and steps < 10_000:
            old, row[place] = row[place], row[place] + (step if difference > 0 else -step)
            if not valid(row):
                row[place] = old
                break
            before, difference, steps = difference, factual[place] - row[place], steps + 1
    return row


def test_dice_as_published_resets_numbers_in_single_steps():
    columns = (Column("a", step=1.0), Column("b", step=0.1), Column("colour", "categorical", ("r", "g", "b")))
    scale = np.array([3.0, 0.5, 1.0, 1.0, 1.0])
    encoding = Encoding(columns, np.zeros(3), scale[:3], np.full(3, -9.0), np.full(3, 9.0))
    draw = np.random.default_rng(0)
    raw = {
        "a": draw.integers(-9, 10, 200) * 2.0,
        "b": draw.integers(-20, 21, 200) / 10,
        "colour": draw.choice(["r", "g", "b"], 200).astype(object),
    }
    rows = encoding.encode(raw)
    limits = {}
    for place, (name, step) in enumerate((("a", 1.0), ("b", 0.1))):
        different = np.unique(raw[name])
        spread = np.median(np.abs(raw[name] - np.median(raw[name])))
        limit = min(np.quantile(np.abs(different - np.median(different)), 0.1), spread)
        limits[place] = round(limit, 9), step
    reset = dice_published.LinearReset(encoding, rows).reset
    moved, stopped = 0, 0
    for row in rows[:100]:
        factual = row.copy()
        factual[:2] += draw.integers(-4, 5, 2) * [1.0, 0.1] / scale[:2]
        slope = draw.normal(size=5)

        def valid(tried, slope=slope, least=slope @ row - 0.3):
            return tried @ slope > least

        found = reset(row, factual, valid) * scale
        wanted = reset_of_one_row(
            lambda raw_row, valid=valid: valid(np.array(raw_row) / scale),
            row * scale,
            factual * scale,
            limits,
        )
        np.testing.assert_allclose(found, wanted, atol=1e-9)
        moved += np.abs(found - row * scale).max() > 1e-9
        stopped += np.abs(found - row * scale).max() > 1e-9 and np.abs(found - factual * scale).max() > 1e-9
    assert moved > stopped > 5


def test_dice_as_published_resets_its_sets(network):
    encoding = encoding_of((Column("a", step=0.1), Column("b", step=0.1), Column("c", step=0.1)))
    background = np.random.default_rng(3).integers(-20, 21, (60, 3)) / 3.0
    model, rows = network(3, seed=3), background[:10]
    classes = model.predict_proba(rows).argmax(axis=1)
    options = {**vars(options_of(dice)), "iterations": 200, "proximity": 0.05}
    context = Context(encoding, background, lambda unit: generator("test", unit))
    factuals = Factuals(rows, classes, tuple(map(str, range(10))))
    plain, linear = (
        Explanation.of(
            dice.DiCE(dice.Config(**{**options, "sparsity": sparsity})).counterfactuals(
                model, factuals, context
            )
        ).stacked()[:, 0]
        for sparsity in ("none", "linear")
    )
    given = ~np.isnan(plain[:, 0])
    assert given.any() and (np.isnan(linear) == np.isnan(plain)).all()
    assert (model.predict_proba(linear[given]).argmax(axis=1) != classes[given]).all()
    assert (np.abs(linear - rows)[given] <= np.abs(plain - rows)[given] + 1e-9).all()
    assert (linear[given] != plain[given]).any()


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
