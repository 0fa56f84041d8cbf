"""LORE's published search against plain loops, hand-made trees, and what a rule must do."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import c45
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.c45 import Node
from cfbench_tabular.explainers.lore import LORE, SPEC, Config
from cfbench_tabular.explainers.lore_deltas import Delta, rows_of, shortest_deltas
from cfbench_tabular.explainers.lore_published import Draws, PublishedSearch, _above_the_gap, _Best
from cfbench_tabular.table import Column

INFINITE = float("inf")


class Linear:
    """Class 1 where the weighted sum of an encoded row is positive."""

    def __init__(self, weights, shift=0.0):
        self.weights, self.shift = np.asarray(weights, dtype=float), shift

    def predict_proba(self, rows):
        positive = 1 / (1 + np.exp(-(rows @ self.weights + self.shift)))
        return np.stack([1 - positive, positive], axis=1)


def encoding(*columns):
    """Numbers with mean 10 and scale 2."""
    size = len(columns)
    numeric = np.array([column.scalar for column in columns])
    mean, scale = np.where(numeric, 10.0, 0.0), np.where(numeric, 2.0, 1.0)
    low, high = np.where(numeric, -5.0, 0.0), np.where(numeric, 5.0, 1.0)
    assert len(mean) == size
    return Encoding(columns, mean, scale, low, high)


MIXED = encoding(
    Column("a"),
    Column("b", "categorical", ("x", "y", "z")),
    Column("c", step=1.0),
    Column("d", "categorical", ("no", "yes")),
    Column("e"),
)


def rows_of_mixed(count, seed=0):
    draw = np.random.default_rng(seed)
    levels = np.eye(3)[draw.integers(3, size=count)]
    whole = (draw.integers(0, 20, size=count) - 10.0) / 2
    numbers = draw.normal(size=(2, count))
    return np.column_stack([numbers[0], levels, whole, draw.integers(0, 2, size=count), numbers[1]])


def search(model, background, table=MIXED, population=40, generations=3):
    context = Context(table, background, lambda unit: generator("test", unit))
    return PublishedSearch(
        model, context, population=population, generations=generations, crossover=0.5, mutation=0.2
    )


WEIGHTS = [1.0, 0.5, -0.5, 0.0, 1.0, 0.5, -1.0]


def test_the_distance_is_that_of_the_code():
    background = rows_of_mixed(30)
    found = search(Linear(WEIGHTS), background)
    raw = found.table.raw(background)
    own = raw[0]
    for row, distance in zip(raw, found._distance(raw, own), strict=True):
        categories = sum(row[column] != own[column] for column in (1, 3)) / 2
        numbers = [[one[column] for column in (0, 2, 4)] for one in (row, own)]
        difference = [one - two for one, two in zip(*numbers, strict=True)]
        spread = statistics.pvariance(numbers[0]) + statistics.pvariance(numbers[1])
        expected = 2 / 5 * categories + 3 / 5 * 0.5 * statistics.pvariance(difference) / spread
        assert distance == pytest.approx(expected)


def test_without_categories_the_distance_counts_for_nothing():
    numbers = encoding(Column("a"), Column("b"))
    background = np.random.default_rng(0).normal(size=(20, 2))
    found = search(Linear([1.0, 1.0]), background, numbers)
    raw = found.table.raw(background)
    assert not found._distance(raw, raw[0]).any()
    wanted = background.sum(axis=1) > 0
    assert found._fitness(raw, raw[0], 1).tolist() == (0.5 * wanted).tolist()


def test_raw_rows_have_the_units_of_the_table_and_become_encoded_rows_again():
    background = rows_of_mixed(50)
    table = search(Linear(WEIGHTS), background).table
    raw = table.raw(background)
    assert raw[:, 0] == pytest.approx(background[:, 0] * 2 + 10)
    assert set(raw[:, 1]) == {0, 1, 2} and set(raw[:, 3]) == {0, 1}
    np.testing.assert_allclose(table.encoded(raw), background, atol=1e-12)
    assert table.levels == [0, 3, 0, 2, 0]
    assert table.seen(raw + 0.25)[:, 2].tolist() == pytest.approx(raw[:, 2].tolist())


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=40), st.integers(1, 6))
def test_the_best_ever_are_those_of_a_plain_loop(bred, size):
    """One after the other: a row that is fitter than the worst replaces it, unless it is there already."""
    best = _Best(size)
    rows = np.array([[float(row)] for row, _ in bred]).reshape(-1, 1)
    best.update(rows, np.array([float(value) for _, value in bred]))
    expected = []  # (fitness, place, row)
    for place, (row, value) in enumerate(bred):
        worst = min((one for one, _, _ in expected), default=None)
        if len(expected) == size and value <= worst:
            continue
        if any(other == row for _, _, other in expected):
            continue
        if len(expected) == size:
            expected.remove(min(expected, key=lambda one: (one[0], one[1])))
        expected.append((value, place, row))
    expected.sort(key=lambda one: (-one[0], -one[1]))
    assert [row[0] for row in best.rows] == [row for _, _, row in expected]
    assert sorted(best.fitness) == best.fitness == sorted(value for value, _, _ in expected)


def test_neighbours_are_those_above_the_widest_gap():
    rows = np.arange(6.0)[:, None]
    fitness = np.array([0.1, 0.9, 0.15, 0.85, 0.2, 0.8])
    best = _Best(2)
    best.update(rows, fitness)
    assert _above_the_gap(rows, fitness, best).ravel().tolist() == [1, 3, 5, 1, 3]
    # Of gaps that are equally wide the highest counts.
    assert _above_the_gap(rows[:3], np.array([0.0, 1.0, 2.0]), _Best(0)).ravel().tolist() == [2]
    # The code fails without a gap; here all rows are taken.
    assert len(_above_the_gap(rows, np.ones(6), _Best(0))) == 6


def test_draws_are_those_of_the_stream():
    draws, expected = Draws(np.random.default_rng(5)), np.random.default_rng(5).random(25_000)
    found = [draws.one() for _ in range(3)] + draws.many(20_000).tolist() + [draws.one()]
    assert found == expected[: len(found)].tolist()
    assert 0 <= min(draws.below(3) for _ in range(50)) <= max(draws.below(3) for _ in range(50)) == 2


def leaf(label, *counts):
    return Node(np.array(counts), label)


def node(column, threshold, *children):
    return Node(sum(child.counts for child in children), 0, column, threshold, children)


# a <= 8: 0; else b: x -> (c <= 12: 0, else 1), y -> 1, z -> (no rows)
TREE = node(
    0,
    8.0,
    leaf(0, 9, 1),
    node(1, None, node(2, 12.0, leaf(0, 5, 0), leaf(1, 0, 4)), leaf(1, 1, 6), leaf(1, 0, 0)),
)
NUMERIC = np.array([True, False, True, False, True])


def test_the_shortest_rules_by_hand():
    """From a = 9, b = x, c = 12: c > 12 alone, or b = y alone; the empty leaf of z counts for nothing."""
    found = shortest_deltas(TREE, np.array([9.0, 0, 12, 0, 10]), 0, NUMERIC)
    assert [delta.conditions for delta in found] == [{2: (12.0, INFINITE)}, {1: 1}]
    assert [delta.columns for delta in found] == [3, 2]


def test_a_rule_is_compared_with_the_rule_of_the_row_not_with_the_row():
    """From a = 8: both a > 8 and b are missing in its rule, although b = y already."""
    found = shortest_deltas(TREE, np.array([8.0, 1, 20, 0, 10]), 0, NUMERIC)
    assert [delta.conditions for delta in found] == [{0: (8.0, INFINITE), 1: 1}]


def test_both_ends_of_an_interval_count():
    tree = node(0, 5.0, leaf(0, 5, 0), node(0, 9.0, leaf(1, 0, 5), leaf(0, 5, 0)))
    assert [one.conditions for one in shortest_deltas(tree, np.array([4.0]), 0, np.array([True]))] == [
        {0: (5.0, 9.0)}
    ]
    wider = node(0, 5.0, tree, leaf(1, 0, 3))
    # a > 5 alone is shorter than 5 < a <= 9, which is a rule below a <= 5 here and never holds.
    assert [one.conditions for one in shortest_deltas(wider, np.array([4.0]), 0, np.array([True]))][-1] == {
        0: (5.0, INFINITE)
    }


def test_rows_are_moved_to_their_conditions_and_no_further():
    row = np.array([0.0, 1, 0, 0, 1.0, 0, 0.5])  # a = 10, b = x, c = 12, d = no, e = 11
    own = np.array([10.0, 0, 12, 0, 11])
    deltas = [
        Delta({2: (12.0, INFINITE)}, 1),
        Delta({0: (-INFINITE, 7.0), 4: (10.0, INFINITE)}, 2),  # e satisfies its condition
        Delta({1: 2, 3: 1}, 2),
    ]
    moved, columns = rows_of(deltas, row, own, MIXED)
    assert columns.tolist() == [1, 2, 2]
    assert moved[0].tolist() == [0, 1, 0, 0, 1.5, 0, 0.5]  # 13, the next whole number
    assert moved[1].tolist() == [-1.5, 1, 0, 0, 1.0, 0, 0.5]
    assert moved[2].tolist() == [0, 0, 0, 1, 1.0, 1, 0.5]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_tree_gives_the_other_class_to_every_moved_row(seed):
    background = rows_of_mixed(60, seed)
    model = Linear(np.random.default_rng(seed).normal(size=7))
    found = search(model, background)
    label = int(model.predict_proba(background[:1])[0, 1] > 0.5)
    stream = generator("test", str(seed))
    neighbours = found.neighbours(background[0], label, found.values(stream), Draws(stream))
    probabilities = model.predict_proba(found.table.encoded(neighbours))
    tree = found.tree(neighbours, (probabilities[:, 1] > probabilities[:, 0]).astype(np.int64))
    if tree is None:
        return
    own = found.table.raw(background[:1])[0]
    deltas = shortest_deltas(tree, own, label, found.table.numeric)
    moved, _ = rows_of(deltas, background[0], own, MIXED) if deltas else (np.empty((0, 7)), None)
    assert (c45.predict(tree, found.table.seen(found.table.raw(moved))) != label).all()
    distances = ((moved - background[0]) ** 2).sum(axis=1)
    assert (np.diff(distances) > -1e-8).all()


def test_the_populations_are_those_of_a_plain_loop():
    """Row by row, as the authors' code and deap do, with the same uniform numbers."""
    background = rows_of_mixed(40)
    model = Linear(WEIGHTS)
    found = search(model, background, population=12, generations=4)
    values = found.values(np.random.default_rng(0))
    own = found.table.raw(background[:1])[0]
    for wanted in (0, 1):
        draws = Draws(np.random.default_rng(3))
        expected = plain_loop(found, own, wanted, values, Draws(np.random.default_rng(3)))
        np.testing.assert_array_equal(found._bred(own, wanted, values, draws), expected)


def plain_loop(found, own, wanted, values, draws):
    def fitness(row):
        return float(found._fitness(np.array([row]), own, wanted)[0])

    population = [list(own) for _ in range(6)]
    bred = [[(row, fitness(row)) for row in population]]
    for _ in range(4):
        chosen = []
        for _ in population:
            three = [population[draws.below(6)] for _ in range(3)]
            chosen.append(list(max(three, key=fitness)))
        for first in range(0, 6, 2):
            if draws.one() < 0.5:
                start, stop = 1 + draws.below(5), 1 + draws.below(4)
                start, stop = (start, stop + 1) if stop >= start else (stop, start)
                one, two = chosen[first], chosen[first + 1]
                one[start:stop], two[start:stop] = two[start:stop], one[start:stop]
        for row in chosen:
            if draws.one() < 0.2:
                for column, known in enumerate(values):
                    if draws.one() <= 0.2:
                        row[column] = known[draws.below(len(known))]
        population = chosen
        bred.append([(row, fitness(row)) for row in population])
    best = _Best(round(6 * 0.1))
    for generation in bred:
        best.update(np.array([row for row, _ in generation]), np.array([value for _, value in generation]))
    return _above_the_gap(np.array(population), np.array([fitness(row) for row in population]), best)


def test_immutable_columns_keep_their_value():
    table = encoding(Column("a", immutable=True), Column("b", "categorical", ("x", "y", "z")), Column("c"))
    draw = np.random.default_rng(0)
    background = np.column_stack(
        [draw.normal(size=50), np.eye(3)[draw.integers(3, size=50)], draw.normal(size=50)]
    )
    model = Linear([1.0, 0.5, -0.5, 0.0, 2.0])
    found = search(model, background, table, population=100, generations=5)
    factuals = Factuals(
        background[:6], (model.predict_proba(background[:6])[:, 1] > 0.5).astype(int), tuple("abcdef")
    )
    rows = found.explanation(factuals).counterfactuals
    there = ~np.isnan(rows[:, 0])
    assert there.any() and np.array_equal(rows[there, 0], background[:6][there, 0])


def test_a_model_of_one_class_has_no_counterfactual():
    background = rows_of_mixed(30)
    found = search(Linear(np.zeros(7), 1.0), background)
    result = found.explanation(Factuals(background[:3], np.ones(3, dtype=int), ("a", "b", "c")))
    assert np.isnan(result.counterfactuals).all() and np.isnan(result.details["fidelity"]).all()


@pytest.mark.parametrize("name", ["Wine", "Ecoli", "HayesRoth", "Nursery"])
def test_as_published_on_sets_of_cf_tabular(study, name):
    """Rows of the table that change no more columns than their rule has; the rules are not tried on the model."""
    factuals = np.concatenate([study.factuals(name, label)[-5:] for label in (0, 1)]).astype(float)
    background = np.concatenate([study.factuals(name, label) for label in (0, 1)])
    model, table = study.network(name), study.encoding(name)
    classes = (np.diff(model.predict_proba(factuals))[:, 0] > 0).astype(np.int64)
    context = Context(table, background, lambda unit: generator("test", unit))
    explainer = LORE(Config(**presets_of(SPEC)["as-published"].options))
    result = explainer.counterfactuals(model, Factuals(factuals, classes, tuple("abcdefghij")), context)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert given.mean() >= 0.9 and np.nanmin(result.details["fidelity"]) > 0.7
    table.decode(result.counterfactuals[given])
    for place in np.flatnonzero(given):
        changed = [
            (result.counterfactuals[place][block] != factuals[place][block]).any() for block in table.blocks
        ]
        assert sum(changed) <= result.details["rule_length"][place]
