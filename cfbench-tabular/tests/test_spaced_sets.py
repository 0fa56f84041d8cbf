"""Several counterfactuals from explainers that find them one after the other."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.mlp import MLP
from cfbench_tabular.classifiers.mlp import Config as MLPConfig
from cfbench_tabular.explainers import growing_spheres, lore, nice, sedc
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.spaced_sets import SpacedSets
from cfbench_tabular.testing import context_of, example_data, factuals_of, fitted

EXPLAINERS = {
    "growing-spheres": growing_spheres.GrowingSpheres(growing_spheres.Config(samples=200)),
    "lore": lore.LORE(lore.Config()),
    "nice": nice.NICE(nice.Config()),
    "sedc": sedc.SEDC(sedc.Config()),
}


@pytest.fixture(scope="module")
def setting():
    data = example_data()
    model = fitted(MLP(MLPConfig()), data)
    return data, model, factuals_of(model, data, slice(0, 12)), context_of(data, model)


def found(explainer, model, factuals, context, size):
    context = replace(context, counterfactuals_per_instance=size)
    return Explanation.of(explainer.counterfactuals(model, factuals, context)).checked(factuals, context, "x")


@pytest.mark.parametrize("name", EXPLAINERS)
def test_counterfactuals_are_valid_rows_and_the_minimum_distance_apart(setting, name):
    data, model, factuals, context = setting
    sets = found(EXPLAINERS[name], model, factuals, context, 4)
    assert sets.shape == (12, 4, data.encoding.width)
    given = ~np.isnan(sets).any(axis=2)
    assert given[:, 0].all() and given[:, 1].mean() > 0.7
    assert (given[:, :-1] >= given[:, 1:]).all(), "missing ones come last"
    for rows, here, label in zip(sets, given, factuals.classes, strict=True):
        data.encoding.decode(rows[here])  # raises unless each is a row
        assert (model.predict_proba(rows[here]).argmax(axis=1) != label).all()
        assert all(np.linalg.norm(one - other) >= 0.5 - 1e-12 for one, other in combinations(rows[here], 2))


def contains(row, other, factual):
    """Whether the row makes the changes of another one, position by position."""
    return all(
        place == before or (place > before and own >= place) or (place < before and own <= place)
        for own, place, before in zip(row.tolist(), other.tolist(), factual.tolist(), strict=True)
    )


@pytest.mark.parametrize("name", EXPLAINERS)
def test_the_first_is_the_one_that_is_found_alone_or_does_with_less(setting, name):
    _, model, factuals, context = setting
    alone = found(EXPLAINERS[name], model, factuals, context, 1)[:, 0]
    first = found(EXPLAINERS[name], model, factuals, context, 3)[:, 0]
    assert (alone == first).all(axis=1).mean() > 0.5
    for row, other, factual in zip(alone, first, factuals.vectors, strict=True):
        assert contains(row, other, factual)


@pytest.mark.parametrize("name", EXPLAINERS)
def test_the_counterfactuals_of_a_row_do_not_depend_on_the_batch(setting, name):
    _, model, factuals, context = setting
    sets = found(EXPLAINERS[name], model, factuals, context, 3)
    one = Factuals(factuals.vectors[5:6], factuals.classes[5:6], factuals.units[5:6])
    assert np.array_equal(found(EXPLAINERS[name], model, one, context, 3)[0], sets[5], equal_nan=True)


def test_nice_takes_the_next_nearest_rows_in_turn(setting):
    """Each training row alone as the only background, in the order of their distances."""
    _, model, factuals, context = setting
    context = replace(context, labels=None)
    explainer = nice.NICE(nice.Config(scale="deviation", minimum_distance=0.7))
    sets = found(explainer, model, factuals, context, 3)
    encoding, background = context.encoding, context.background
    weight = np.where(encoding.numeric, 1.0, 0.5)
    for block in encoding.blocks:
        if block.stop - block.start == 1:
            weight[block] = 1.0
    for place, (row, label) in enumerate(zip(factuals.vectors, factuals.classes, strict=True)):
        enemies = background[model.predict_proba(background).argmax(axis=1) != label]
        one = Factuals(row[None], factuals.classes[place : place + 1], ("one",))
        expected: list[np.ndarray] = []
        for index in (np.abs(enemies - row) @ weight).argsort(kind="stable"):
            alone = replace(context, background=enemies[index : index + 1])
            copied = found(nice.NICE(nice.Config(scale="deviation")), model, one, alone, 1)[0, 0]
            if any(contains(copied, other, row) for other in expected):
                continue
            stays = [other for other in expected if not contains(other, copied, row)]
            if all(np.linalg.norm(copied - other) >= 0.7 for other in stays):
                places = [at for at, other in enumerate(expected) if contains(other, copied, row)]
                stays.insert(places[0] if places else len(stays), copied)
                expected = stays
            if len(expected) == 3:
                break
        given = sets[place][~np.isnan(sets[place]).any(axis=1)]
        assert np.allclose(given, np.stack(expected), atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("cost", ["none", "change"])
def test_sedc_finds_every_irreducible_set_of_columns(network, numbers, seed, cost):
    """All subsets of six columns, tried one by one."""
    draw = np.random.default_rng(seed)
    model, background, row = network(6, seed=seed), draw.normal(size=(20, 6)), draw.normal(scale=2, size=6)
    typical, label = background.mean(axis=0), int(model.predict_proba(row[None])[0].argmax())

    def explains(columns):
        changed = row.copy()
        changed[list(columns)] = typical[list(columns)]
        return model.predict_proba(changed[None])[0].argmax() != label

    sets = [frozenset(c) for size in range(1, 7) for c in combinations(range(6), size) if explains(c)]
    irreducible = {one for one in sets if not any(other < one for other in sets)}
    options = sedc.Config(replacements="typical", iterations=1000, minimum_distance=0, cost=cost)
    context = Context(numbers(6), background, lambda unit: generator("test", unit))
    factuals = Factuals(row[None], np.array([label]), ("one",))
    rows = found(sedc.SEDC(options), model, factuals, context, 40)[0]
    rows = rows[~np.isnan(rows).any(axis=1)]
    changed = [frozenset(np.flatnonzero(one != row).tolist()) for one in rows]
    assert len(set(changed)) == len(changed)
    assert set(changed) == irreducible


def test_growing_spheres_finds_the_second_nearest_point_around_the_first(linear, numbers):
    """Of the points on the line x + y = 1, half a unit from the nearest, (.5, .5), there is one on each side."""
    options = growing_spheres.Config(samples=20_000)
    context = Context(numbers(2), np.zeros((1, 2)), lambda unit: generator("test", unit))
    factuals = Factuals(np.zeros((1, 2)), np.array([0]), ("one",))
    rows = found(growing_spheres.GrowingSpheres(options), linear([1.0, 1.0], -1.0), factuals, context, 3)[0]
    assert rows[0] == pytest.approx([0.5, 0.5], abs=0.02)
    assert np.linalg.norm(rows[1:], axis=1) == pytest.approx(np.sqrt(0.75), abs=0.03)
    assert np.sort(rows[1:, 0]) == pytest.approx([0.5 - np.sqrt(1 / 8), 0.5 + np.sqrt(1 / 8)], abs=0.03)


def test_lore_gives_one_counterfactual_for_each_rule(numbers):
    """Class 1 where x0 > 3 or x1 > 3: two rules, each with one column."""

    class Either:
        def predict_proba(self, vectors):
            one = (vectors > 3).any(axis=1).astype(float)
            return np.stack([1 - one, one], axis=1)

    draw = np.random.default_rng(0)
    context = Context(numbers(2), draw.uniform(-6, 6, size=(400, 2)), lambda unit: generator("test", unit))
    factuals = Factuals(np.array([[1.0, 2.0]]), np.array([0]), ("one",))
    rows = found(lore.LORE(lore.Config(population=2000)), Either(), factuals, context, 2)[0]
    changed = sorted(np.flatnonzero(one != [1.0, 2.0]).tolist() for one in rows)
    assert changed == [[0], [1]]
    assert rows.max(axis=1) == pytest.approx([3.0, 3.0], abs=0.1)


def test_a_set_refuses_a_row_that_is_near_or_for_which_it_has_no_room(numbers):
    sets = SpacedSets(np.full((2, 1), 0.2), 2, numbers(1), 0.5)
    assert sets.add(0, np.array([0.0])) and not sets.add(0, np.array([0.4]))
    assert sets.add(0, np.array([0.5])) and not sets.add(0, np.array([9.0]))
    assert sets.full(0) and sets.unfilled().tolist() == [1]
    assert np.array_equal(sets.results(), [[[0.0], [0.5]], [[np.nan], [np.nan]]], equal_nan=True)
    assert not SpacedSets(np.zeros((1, 1)), 1, numbers(1), 0.0).full(0)


def test_a_row_takes_the_place_of_those_that_contain_its_changes(numbers):
    sets = SpacedSets(np.zeros((1, 3)), 4, numbers(3), 0.5)
    for row in ([0.0, -9.0, 0.0], [2.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 0.0, 3.0]):
        assert sets.add(0, np.array(row))
    assert not sets.add(0, np.array([-1.0, -9.0, 0.0])), "full"
    sets = SpacedSets(np.zeros((1, 3)), 4, numbers(3), 0.5)
    for row in ([0.0, -9.0, 0.0], [2.0, 1.0, 0.0], [2.0, 0.0, 1.0]):
        assert sets.add(0, np.array(row))
    assert not sets.add(0, np.array([-1.0, -9.5, 0.0])) and sets.add(0, np.array([1.9, 0.0, 0.0]))
    assert np.array_equal(sets.rows[0], [[0, -9, 0], [1.9, 0, 0], [np.nan] * 3, [np.nan] * 3], equal_nan=True)
    assert sets.counts[0] == 2


def test_equal_rows_are_refused_without_a_minimum_distance(numbers):
    sets = SpacedSets(np.zeros((1, 1)), 2, numbers(1), 0.0)
    assert sets.add(0, np.array([1.0])) and not sets.add(0, np.array([1.0]))
