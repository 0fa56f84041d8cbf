"""DiCE as published, against plain loops over one factual at a time."""

import numpy as np
import pytest
import torch

from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import dice, dice_published
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.table import Column

COLOUR = Column("colour", "categorical", ("red", "green", "blue"))
OPTIONS = presets_of(dice.SPEC)["as-published"].options


def torch_network(model):
    w1, b1, w2, b2 = (torch.tensor(np.asarray(model.weights[name])) for name in ("W1", "b1", "W2", "b2"))
    return lambda x: torch.softmax(torch.relu(x @ w1 + b1) @ w2 + b2, -1)


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


@pytest.mark.parametrize(
    ("seed", "k", "mixed"),
    [
        pytest.param(0, 1, False, marks=pytest.mark.slow),
        pytest.param(1, 3, False, marks=pytest.mark.slow),
        (5, 2, True),
        (3, 1, True),
    ],
)
def test_dice_as_published_is_the_loop_of_its_authors(network, monkeypatch, seed, k, mixed):
    monkeypatch.setattr(dice_published, "FIRST_STEPS", 40)
    columns = (Column("a"), Column("b"), *([COLOUR] if mixed else [Column("c")]))
    encoding = Encoding(columns, np.zeros(3), np.full(3, 0.5), np.full(3, -2.0), np.full(3, 2.0))
    draw = np.random.default_rng(seed)
    third = draw.choice(["red", "green", "blue"], 6).astype(object) if mixed else draw.normal(size=6) / 2
    values = {"a": draw.normal(size=6) / 2, "b": draw.normal(size=6) / 2, columns[2].name: third}
    rows, model = encoding.encode(values), network(encoding.width, seed=seed)
    classes = model.predict_proba(rows).argmax(axis=1)
    config = dice.Config(**{**OPTIONS, "iterations": 120, "sparsity": "none"})
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
    encoding = Encoding(
        tuple(Column(name, step=0.1) for name in "abc"),
        np.zeros(3),
        np.full(3, 0.3),
        np.full(3, -9.0),
        np.full(3, 9.0),
    )
    background = np.random.default_rng(3).integers(-20, 21, (60, 3)) / 3.0
    model, rows = network(3, seed=3), background[:10]
    classes = model.predict_proba(rows).argmax(axis=1)
    options = {**OPTIONS, "iterations": 200, "proximity": 0.05}
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
