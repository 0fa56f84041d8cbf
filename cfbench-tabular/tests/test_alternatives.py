"""No counterfactual of a set contains the changes of another one: an oracle in plain Python over all explainers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cfbench_core.component_specs import component_specs
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.mlp import from_weights
from cfbench_tabular.constrained_search import explain_with_constraints
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import (
    dice,
    dice_genetic,
    dice_kdtree,
    dice_random,
    growing_spheres,
    lore,
    nearest_enemy,
    nice,
    sedc,
)
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.dominance import Dominance
from cfbench_tabular.table import Column, Table

EXPLAINERS = {
    "dice": dice.DiCE(dice.Config(iterations=150)),
    "dice-genetic": dice_genetic.DiCEGenetic(dice_genetic.Config(generations=10)),
    "dice-kdtree": dice_kdtree.DiCEKDTree(dice_kdtree.Config()),
    "dice-random": dice_random.DiCERandom(dice_random.Config(samples=200)),
    "growing-spheres": growing_spheres.GrowingSpheres(growing_spheres.Config(samples=200)),
    "lore": lore.LORE(lore.Config(population=200)),
    "nearest-enemy": nearest_enemy.NearestEnemy(nearest_enemy.Config()),
    "nice": nice.NICE(nice.Config()),
    "sedc": sedc.SEDC(sedc.Config()),
}
WANTED = 4
DERIVED = ("total",)
CASES = [(seed, constrained) for seed in range(4) for constrained in (False, True)]


def contains(row: dict[str, Any], other: dict[str, Any], factual: dict[str, Any]) -> bool:
    """Whether one counterfactual makes all the changes of another one, column by column."""
    for name, before in factual.items():
        if name in DERIVED or other[name] == before:
            continue
        if isinstance(before, str):
            if row[name] != other[name]:
                return False
        elif not (other[name] < before and row[name] <= other[name]) and not (
            other[name] > before and row[name] >= other[name]
        ):
            return False
    return True


def table(seed: int, constrained: bool) -> Table:
    draw, size = np.random.default_rng(seed), 150
    first, second = np.round(draw.normal(size=size), 1), draw.integers(0, 9, size).astype(float)
    columns = [
        Column("first", step=0.1),
        Column("second", step=1.0),
        Column("share", low=0.0, high=1.0),
        Column("grade", "categorical", ("low", "middle", "high"), ordered=True),
        Column("colour", "categorical", ("red", "green", "blue", "grey")),
        Column("flag", "categorical", ("no", "yes")),
    ]
    values: dict[str, Any] = {"first": first, "second": second, "share": draw.uniform(size=size)}
    for column in columns[3:]:
        values[column.name] = np.array(column.levels, dtype=object)[
            draw.integers(len(column.levels), size=size)
        ]
    constraints: tuple[Constraint, ...] = ()
    if constrained:
        columns.append(Column("total", step=0.1))
        values["total"] = np.round(first + second, 1)
        constraints = (Constraint(column="total", relation="sum", of=("first", "second"), absolute=0.01),)
    classes = np.array(["a", "b"], dtype=object)[draw.integers(2, size=size)]
    return Table("generated", tuple(columns), values, classes, constraints=constraints)


def setting(seed: int, constrained: bool) -> tuple[Any, Factuals, Context]:
    """A random network, and ten rows."""
    data = table(seed, constrained)
    encoding = Encoding.fit(data, np.arange(150))
    rows = encoding.encode(data.values)
    draw, hidden = np.random.default_rng(seed + 100), 5
    weights = {"W1": draw.normal(size=(encoding.width, hidden)), "b1": draw.normal(size=hidden)}
    weights |= {"W2": draw.normal(size=(hidden, 2)), "b2": np.zeros(2)}
    chances = from_weights(weights).predict_proba(rows)
    middle = np.median(np.log(chances[:, 1] / chances[:, 0]))  # half of the rows are in each class
    model = from_weights({**weights, "b2": np.array([middle, 0.0])})
    classes = model.predict_proba(rows).argmax(axis=1)
    factuals = Factuals(rows[:10], classes[:10], tuple(f"row {place}" for place in range(10)))
    context = Context(
        encoding,
        rows,
        lambda unit: generator("test", unit),
        counterfactuals_per_instance=WANTED,
        labels=classes,
    )
    return model, factuals, context


def listed(encoding: Encoding, rows: np.ndarray) -> list[dict[str, Any]]:
    """The rows in words, but with the ranks of ordered levels."""
    columns = {name: values.tolist() for name, values in encoding.decode(rows).items()}
    for column in encoding.columns:
        if column.ordered:
            columns[column.name] = [column.levels.index(level) for level in columns[column.name]]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_the_list_of_explainers_is_complete() -> None:
    specs = component_specs("cfbench_tabular", "explainer")
    several = {
        spec.id.split("/")[-1] for spec in specs if "several" in spec.provides.get("counterfactuals", ())
    }
    assert several == set(EXPLAINERS)


@pytest.mark.parametrize(("seed", "constrained"), CASES)
@pytest.mark.parametrize("name", EXPLAINERS)
def test_no_counterfactual_contains_the_changes_of_another(name: str, seed: int, constrained: bool) -> None:
    model, factuals, context = setting(seed, constrained)
    found = explain_with_constraints(EXPLAINERS[name], model, factuals, context)
    sets = found.checked(factuals, context, name)
    before, compared = listed(context.encoding, factuals.vectors), 0
    for own, rows in zip(before, sets, strict=True):
        given = listed(context.encoding, rows[~np.isnan(rows).any(axis=1)])
        for place, row in enumerate(given):
            for other in given[:place] + given[place + 1 :]:
                assert not contains(row, other, own), (own, other, row)
                compared += 1
    assert compared > 0


@pytest.mark.parametrize("seed", range(5))
def test_the_comparison_is_that_of_the_oracle(seed: int) -> None:
    """Random rows that differ from the factual in few columns, all pairs of them."""
    data = table(seed, constrained=False)
    encoding, draw = Encoding.fit(data, np.arange(150)), np.random.default_rng(seed)
    rows = encoding.encode(data.values)
    factual = rows[:1]
    unchanged = (draw.random((60, len(encoding.columns))) < 0.6)[:, encoding.column_of]
    points = np.where(unchanged, factual, rows[20:80])
    dominance = Dominance(encoding, factual)
    own, given = listed(encoding, factual)[0], listed(encoding, points)
    expected = np.array([[contains(row, other, own) for other in given] for row in given])
    assert np.array_equal(dominance.of(0, points[:, None], points[None]), expected)
    assert 0.02 < expected.mean() < 0.9
    first = [
        not any(
            expected[place, other] and not (expected[other, place] and place < other)
            for other in range(60)
            if other != place
        )
        for place in range(60)
    ]
    assert dominance.undominated(points[None], np.ones((1, 60), dtype=bool))[0].tolist() == first


def two_ways() -> tuple[Any, Factuals, Context]:
    """A flag on or the level high gives the other class; a flag on and the level middle is no third way."""
    columns = (
        Column("flag", "categorical", ("off", "on")),
        Column("level", "categorical", ("low", "middle", "high"), ordered=True, direction="up"),
        Column("age", step=1.0, immutable=True),
    )
    draw = np.random.default_rng(0)
    flags, levels = draw.integers(2, size=200), draw.integers(3, size=200)
    values = {
        "flag": np.array(columns[0].levels, dtype=object)[flags],
        "level": np.array(columns[1].levels, dtype=object)[levels],
        "age": draw.integers(20, 60, size=200).astype(float),
    }
    wanted = (flags == 1) | (levels == 2)
    data = Table("ways", columns, values, np.array(["no", "ok"], dtype=object)[wanted.astype(int)])
    encoding = Encoding.fit(data, np.arange(200))
    rows = encoding.encode(values)
    threshold = (encoding.encode_number(1, np.array([1.0, 2.0])).mean()).item()
    # Two hidden neurons that are 1 on one of the two ways, and 0 off it.
    steep = 40.0
    first = np.zeros((encoding.width, 2))
    first[0, 0], first[1, 1] = steep, steep
    network = from_weights(
        {
            "W1": first,
            "b1": np.array([-steep / 2, -steep * threshold]),
            "W2": np.array([[-1.0, 1.0], [-1.0, 1.0]]),
            "b2": np.array([0.5, -0.5]),
        }
    )
    classes = network.predict_proba(rows).argmax(axis=1)
    assert np.array_equal(classes == 1, wanted)
    members = np.flatnonzero((flags == 0) & (levels == 0))[:4]
    factuals = Factuals(rows[members], classes[members], tuple(f"row {place}" for place in members))
    context = Context(
        encoding,
        rows,
        lambda unit: generator("test", unit),
        counterfactuals_per_instance=3,
        labels=classes,
    )
    return network, factuals, context


@pytest.mark.parametrize("name", sorted(set(EXPLAINERS) - {"nearest-enemy"}))
def test_two_ways_are_two_answers(name: str) -> None:
    model, factuals, context = two_ways()
    sets = explain_with_constraints(EXPLAINERS[name], model, factuals, context).checked(
        factuals, context, name
    )
    for own, rows in zip(listed(context.encoding, factuals.vectors), sets, strict=True):
        given = listed(context.encoding, rows[~np.isnan(rows).any(axis=1)])
        changes = {tuple((n, v) for n, v in row.items() if v != own[n]) for row in given}
        ways = {(("flag", "on"),), (("level", 2),)}
        # The typical values of SEDC need not be on both ways, and the descent may end on one of them.
        assert changes <= ways if name in ("dice", "sedc") else changes == ways
        assert changes and len(given) == len(changes)
