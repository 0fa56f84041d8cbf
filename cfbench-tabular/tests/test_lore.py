from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from cfbench_core.lifecycle.streams import generator
from cfbench_core.presets import presets_of
from cfbench_tabular.classifiers.mlp import MLP
from cfbench_tabular.classifiers.mlp import Config as MLPConfig
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.lore import LONG_SEARCH, LORE, SPEC, Config
from cfbench_tabular.explainers.lore_neighbourhood import PackedRows
from cfbench_tabular.explainers.lore_rules import rules_of
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of, fitted


def explained(model, encoding, rows, background, **options):
    rows = np.asarray(rows, dtype=float)
    found = model.predict_proba(rows)
    factuals = Factuals(rows, (found[:, 1] > found[:, 0]).astype(np.int64), tuple(map(str, range(len(rows)))))
    context = Context(encoding, np.asarray(background, dtype=float), lambda unit: generator("test", unit))
    return LORE(Config(**options)).counterfactuals(model, factuals, context), factuals


def flips(model, factuals, rows):
    found = model.predict_proba(rows)
    return (found[:, 1] > found[:, 0]) != (factuals.classes == 1)


def columns_changed(encoding, one, other):
    return sum(bool((one[block] != other[block]).any()) for block in encoding.blocks)


class Recorder:
    """Records its queries."""

    def __init__(self, model):
        self.model, self.queries = model, []

    def predict_proba(self, vectors):
        self.queries.append(vectors.copy())
        return self.model.predict_proba(vectors)


def test_the_number_moves_to_the_threshold_of_the_tree(linear, numbers):
    """Training values are 0, 1, ..., 8 and the model changes at 4.4: the tree parts 4 from 5 in the middle."""
    background = np.arange(9.0)[:, None]
    result, _ = explained(linear([1.0], -4.4), numbers(1), [[2.0], [7.0]], background)
    assert result.counterfactuals[0] == pytest.approx([4.5], abs=1e-4)
    assert result.counterfactuals[0] > 4.5
    # 4.5 is still above 4.4: the threshold does not flip, so the value of the nearest row of the leaf is taken.
    assert result.counterfactuals[1].tolist() == [4.0]
    assert result.details["fidelity"].tolist() == [1.0, 1.0]
    assert result.details["rule_length"].tolist() == [1.0, 1.0]


def test_only_the_column_that_matters_changes(linear, numbers):
    draw = np.random.default_rng(0)
    background, rows = draw.normal(size=(100, 5)), draw.normal(size=(20, 5))
    result, factuals = explained(linear([0.0, 0.0, 1.0, 0.0, 0.0]), numbers(5), rows, background)
    assert flips(linear([0.0, 0.0, 1.0, 0.0, 0.0]), factuals, result.counterfactuals).all()
    assert np.array_equal(np.delete(result.counterfactuals, 2, axis=1), np.delete(rows, 2, axis=1))


@pytest.mark.parametrize("seed", range(4))
def test_every_counterfactual_is_checked_and_changes_no_more_than_its_rule_says(network, numbers, seed):
    draw = np.random.default_rng(seed)
    model, rows = network(6, hidden=10, seed=seed), draw.normal(size=(10, 6))
    result, factuals = explained(model, numbers(6), rows, draw.normal(size=(200, 6)), population=400)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert given.mean() > 0.5
    assert flips(model, factuals, result.counterfactuals)[given].all()
    changed = (result.counterfactuals != rows).sum(axis=1)
    assert (changed[given] >= 1).all()
    assert (changed <= result.details["rule_length"])[given].all()
    assert np.isnan(result.details["rule_length"][~given]).all()
    assert (result.details["fidelity"] > 0.8).all()


def test_the_neighbourhood_is_bred_for_both_classes_and_stays_near(linear, numbers):
    draw = np.random.default_rng(0)
    model, background = Recorder(linear([1.0, 1.0], 0.0)), draw.normal(size=(500, 2))
    row = np.array([[1.5, 1.0]])
    explained(model, numbers(2), row, background, **LONG_SEARCH)
    neighbours = max(model.queries[-3:], key=len)
    assert len(neighbours) == 1000
    classes = neighbours.sum(axis=1) > 0
    assert classes[:500].mean() > 0.85
    assert classes[500:].mean() < 0.35
    bred, drawn = np.abs(neighbours - row).mean(), np.abs(background - row).mean()
    assert bred < 0.7 * drawn
    assert (np.isin(neighbours, background) | (neighbours == row)).all()  # values that exist


def test_probabilities_near_a_half_are_no_obstacle(numbers):
    """Cut to whole numbers, as the adapter of CF-tabular did, every probability here would be 0."""

    class Unsure:
        def predict_proba(self, vectors):
            one = np.where(vectors[:, 0] > 0, 0.51, 0.49)
            return np.stack([1 - one, one], axis=1)

    draw = np.random.default_rng(1)
    rows = draw.normal(size=(10, 3))
    result, factuals = explained(Unsure(), numbers(3), rows, draw.normal(size=(100, 3)))
    assert flips(Unsure(), factuals, result.counterfactuals).all()


def test_categories_stay_categories_and_what_may_not_change_stays():
    data = example_data()
    model = fitted(MLP(MLPConfig()), data)
    factuals, context = factuals_of(model, data, slice(0, 40)), context_of(data)
    result = LORE(Config()).counterfactuals(model, factuals, context)
    data.encoding.decode(result.counterfactuals)  # raises unless each is a row
    assert flips(model, factuals, result.counterfactuals).all()
    columns = tuple(
        replace(
            column, immutable=column.name == "length", direction="up" if column.name == "width" else "any"
        )
        for column in data.encoding.columns
    )
    encoding = replace(data.encoding, columns=columns)
    result = LORE(Config()).counterfactuals(model, factuals, replace(context, encoding=encoding))
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    low, high = encoding.allowed(factuals.vectors)
    assert given.sum() > 5
    assert ((result.counterfactuals >= low) & (result.counterfactuals <= high))[given].all()


def test_of_two_ways_the_one_with_fewer_broken_conditions(numbers):
    """Either the first column above 3 (rare), or the second and the third above 0."""

    class Ways:
        def predict_proba(self, vectors):
            one = ((vectors[:, 0] > 3) | ((vectors[:, 1] > 0) & (vectors[:, 2] > 0))).astype(float)
            return np.stack([1 - one, one], axis=1)

    draw = np.random.default_rng(0)
    background = np.column_stack([draw.uniform(0, 6, 300), draw.normal(size=300), draw.normal(size=300)])
    result, _ = explained(Ways(), numbers(3), [[2.5, -0.2, -0.2]] * 10, background)
    assert (result.counterfactuals[:, 1:] == -0.2).all()
    assert (result.counterfactuals[:, 0] > 3).all()


def test_without_an_enemy_there_is_no_counterfactual():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    result = LORE(Config(population=40)).counterfactuals(Constant(), factuals, context_of(data))
    assert np.isnan(result.counterfactuals).all()
    assert result.details["fidelity"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["Iris", "MagicGT", "TicTacToe", "BalanceScale"])
def test_on_cf_tabular_nearly_every_factual_has_a_counterfactual(study, name):
    rows = np.concatenate([study.factuals(name, 0)[:15], study.factuals(name, 1)[:15]])
    background = np.concatenate([study.factuals(name, 0), study.factuals(name, 1)])
    model = study.network(name)
    result, factuals = explained(model, study.encoding(name), rows, background)
    given = ~np.isnan(result.counterfactuals).any(axis=1)
    assert given.mean() >= 0.9
    assert flips(model, factuals, result.counterfactuals)[given].all()


def test_packed_rows_become_the_encoded_rows_again():
    data = example_data()
    rows = PackedRows(data.encoding)
    encoded, _ = data.sample("train")
    packed = rows.packed(encoded)
    assert packed.shape == (len(encoded), len(data.encoding.columns))
    assert np.array_equal(rows.unpacked(packed), encoded)


@pytest.mark.parametrize("seed", range(5))
def test_a_rule_holds_exactly_for_the_rows_of_its_leaf(numbers, seed):
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(300, 4)).astype(np.float32).astype(float)
    labels = (rows[:, 0] * rows[:, 1] + rows[:, 2] > 0).astype(int)
    tree = DecisionTreeClassifier(random_state=seed).fit(rows, labels).tree_
    leaf = tree.apply(rows.astype(np.float32))
    for rule in rules_of(tree, np.unique(leaf), rows[0], numbers(4)):
        holds = np.ones(len(rows), dtype=bool)
        for place, value in rule.low.items():
            holds &= rows[:, place] > value
        for place, value in rule.high.items():
            holds &= rows[:, place] <= value
        assert np.array_equal(holds, leaf == rule.leaf)
        wrong = {p for p, v in rule.low.items() if rows[0, p] <= v} | {
            p for p, v in rule.high.items() if rows[0, p] > v
        }
        assert set(rule.violated) == wrong
        assert rule.length == len(rule.low.keys() | rule.high.keys())


@pytest.mark.parametrize("name", ["Adult", "StatlogGC", "Wine"])
def test_rules_come_in_the_order_of_the_conditions_that_the_factual_falsifies(study, name):
    """The order of the paper, counted by walking down the tree, split by split: nf(q, x) of section 5.

    A tree of the network's predictions, on rows of mixed and of numeric tables of CF-tabular.
    """
    rows = np.concatenate([study.factuals(name, label) for label in (0, 1)]).astype(np.float32).astype(float)
    model, encoding = study.network(name), study.encoding(name)
    labels = model.predict_proba(rows).argmax(axis=1)
    tree = DecisionTreeClassifier(criterion="entropy", random_state=0).fit(rows, labels).tree_

    def falsified(row, node=0, columns=frozenset()):
        if tree.children_left[node] < 0:
            yield node, columns
            return
        place, below = tree.feature[node], row[tree.feature[node]] <= tree.threshold[node]
        column = next(c for c, block in enumerate(encoding.blocks) if block.start <= place < block.stop)
        for child, agrees in ((tree.children_left[node], below), (tree.children_right[node], not below)):
            yield from falsified(row, child, columns if agrees else columns | {column})

    for row in rows[::25]:
        expected = dict(falsified(row))
        assert sorted(map(len, expected.values()))[:1] == [0]  # its own leaf
        found = rules_of(tree, np.array(sorted(expected)), row, encoding)
        assert {rule.leaf: set(rule.violated) for rule in found} == expected
        lengths = [len(expected[rule.leaf]) for rule in found]
        assert lengths == sorted(lengths)


def test_what_the_short_search_misses_is_searched_longer(study):
    """On BCW many columns must change at once."""
    rows, background = study.factuals("BCW", 1)[:20], study.factuals("BCW", 0)
    model, encoding = study.network("BCW"), study.encoding("BCW")
    found = {again: explained(model, encoding, rows, background, again=again)[0] for again in (False, True)}
    given = {again: ~np.isnan(result.counterfactuals[:, 0]) for again, result in found.items()}
    assert given[False].sum() < given[True].sum()
    same = given[False]
    assert np.array_equal(found[True].counterfactuals[same], found[False].counterfactuals[same])


def test_the_longer_search_has_the_numbers_of_the_paper():
    published = presets_of(SPEC)["as-published"].options
    assert {name: LONG_SEARCH[name] for name in ("population", "generations")} == {
        name: published[name] for name in ("population", "generations")
    }
