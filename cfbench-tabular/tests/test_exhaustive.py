from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.exhaustive import Config, Exhaustive
from cfbench_tabular.explainers.nice import NICE
from cfbench_tabular.explainers.nice import Config as NICEConfig
from cfbench_tabular.explainers.random import Config as RandomConfig
from cfbench_tabular.explainers.random import Random
from cfbench_tabular.explainers.sedc import SEDC
from cfbench_tabular.explainers.sedc import Config as SEDCConfig
from cfbench_tabular.table import Column
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of


def categories(*levels):
    """An encoding of categorical columns with so many levels each."""
    columns = tuple(
        Column(f"c{place}", "categorical", tuple("abcdefgh"[:number])) for place, number in enumerate(levels)
    )
    zero = np.zeros(len(levels))
    return Encoding(columns, zero, zero + 1, zero, zero + 1)


def space(encoding):
    """(S, d) every row that there can be."""
    parts = [
        np.array([[0.0], [1.0]]) if len(column.levels) == 2 else np.eye(len(column.levels))
        for column in encoding.columns
    ]
    return np.array([np.concatenate(choice) for choice in product(*parts)])


def changes(encoding, one, other):
    return sum(bool((one[block] != other[block]).any()) for block in encoding.blocks)


def explained(model, encoding, rows, background=None, **options):
    found = model.predict_proba(rows)
    factuals = Factuals(rows, (found[:, 1] > found[:, 0]).astype(np.int64), tuple(map(str, range(len(rows)))))
    context = Context(
        encoding, rows if background is None else background, lambda unit: generator("test", unit)
    )
    return Exhaustive(Config(**options)).counterfactuals(model, factuals, context), factuals, context


def test_two_columns_where_one_is_not_enough(linear):
    """Class 1 needs both switches on."""
    result, _, _ = explained(linear([1.0, 1.0], -1.5), categories(2, 2), np.array([[0.0, 0.0], [0.0, 1.0]]))
    assert result.counterfactuals.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert result.details["proven"].tolist() == [1.0, 1.0]
    assert result.details["bound"].tolist() == [2.0, 1.0]


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_minimum_over_all_rows(network, seed):
    encoding = categories(3, 2, 4, 3)
    rows = space(encoding)
    model = network(encoding.width, seed=seed)
    result, factuals, _ = explained(model, encoding, rows[::5].copy())
    classes = model.predict_proba(rows).argmax(axis=1)
    for row, label, found in zip(factuals.vectors, factuals.classes, result.counterfactuals, strict=True):
        enemies = rows[classes != label]
        if len(enemies) == 0:
            assert np.isnan(found).all()
            continue
        fewest, nearest = min(
            (changes(encoding, row, enemy), round(float(np.linalg.norm(row - enemy)), 9)) for enemy in enemies
        )
        assert changes(encoding, row, found) == fewest
        assert np.linalg.norm(row - found) == pytest.approx(nearest)
        assert model.predict_proba(found[None])[0].argmax() != label


def test_ties_go_to_the_nearer_row(linear):
    """A level of three costs sqrt(2), a switch 1; both are enough."""
    encoding = categories(3, 2)
    result, _, _ = explained(linear([0.0, 1.0, 0.0, 1.0], -0.5), encoding, np.array([[1.0, 0.0, 0.0, 0.0]]))
    assert result.counterfactuals.tolist() == [[1.0, 0.0, 0.0, 1.0]]


def test_it_stops_at_the_limit_and_reports_the_bound(linear):
    encoding = categories(*[3] * 8)
    weights = np.tile([0.0, 1.0, 1.0], 8)
    row = np.tile([1.0, 0.0, 0.0], 8)[None]
    # Sets of one: 16 rows, of two: 112, of three: 448.
    result, _, _ = explained(linear(weights, -2.5), encoding, row, limit=200)
    assert np.isnan(result.counterfactuals).all()
    assert result.details["proven"].tolist() == [0.0]
    assert result.details["bound"].tolist() == [3.0]
    result, _, _ = explained(linear(weights, -2.5), encoding, row, limit=600)
    assert result.counterfactuals.sum(axis=1).tolist() == [8.0]
    assert changes(encoding, row[0], result.counterfactuals[0]) == 3


def test_that_there_is_none_is_proven_too():
    encoding = categories(3, 3)
    result, _, _ = explained(Constant(), encoding, space(encoding)[:2])
    assert np.isnan(result.counterfactuals).all()
    assert result.details["proven"].tolist() == [1.0, 1.0]
    assert np.isnan(result.details["bound"]).all()


def test_numbers_stay_unless_values_are_declared(linear, numbers):
    background = np.array([[0.0], [1.0], [2.0], [4.0]])
    row = np.array([[0.0]])
    result, _, _ = explained(linear([1.0], -1.5), numbers(1), row, background)
    assert np.isnan(result.counterfactuals).all()
    assert result.details["proven"].tolist() == [0.0]
    result, _, _ = explained(linear([1.0], -1.5), numbers(1), row, background, values=10)
    assert result.counterfactuals.tolist() == [[2.0]]
    result, _, _ = explained(linear([1.0], -1.5), numbers(1), row, background, values=2)
    assert result.counterfactuals.tolist() == [[4.0]]


def test_what_may_not_change_stays(linear):
    encoding = categories(3, 2, 2)
    columns = (
        replace(encoding.columns[0], immutable=True),
        replace(encoding.columns[1], direction="down"),
        encoding.columns[2],
    )
    row = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    model = linear([0.0, 3.0, 3.0, 2.0, 1.0], -0.5)
    result, _, _ = explained(model, replace(encoding, columns=columns), row)
    assert result.counterfactuals.tolist() == [[1.0, 0.0, 0.0, 0.0, 1.0]]


def test_no_other_method_changes_fewer_columns(network):
    encoding = categories(3, 2, 4, 3, 3)
    rows = space(encoding)
    background = rows[generator("rows").permutation(len(rows))[:60]]
    for seed in range(4):
        model = network(encoding.width, seed=seed)
        least, factuals, context = explained(model, encoding, rows[::7].copy(), background)
        for other in (NICE(NICEConfig()), Random(RandomConfig()), SEDC(SEDCConfig())):
            found = other.counterfactuals(model, factuals, context)
            for row, mine, theirs in zip(factuals.vectors, least.counterfactuals, found, strict=True):
                if not np.isnan(theirs).any():
                    assert changes(encoding, row, mine) <= changes(encoding, row, theirs)


@pytest.mark.parametrize("name", ["BalanceScale", "TicTacToe", "Nursery"])
def test_on_cf_tabular_each_counterfactual_is_proven(study, name):
    rows = np.concatenate([study.factuals(name, 0)[:10], study.factuals(name, 1)[:10]])
    model = study.network(name)
    result, factuals, _ = explained(model, study.encoding(name), rows)
    assert result.details["proven"].all()
    found = model.predict_proba(result.counterfactuals)
    assert ((found[:, 1] > found[:, 0]) != (factuals.classes == 1)).all()


def test_the_example_of_the_kit_is_explained_by_its_categories():
    data = example_data()

    class Blue:
        def predict_proba(self, vectors):
            one = (vectors[:, data.encoding.groups[0]].argmax(axis=1) == 2).astype(float)
            return np.stack([1 - one, one], axis=1)

    factuals = factuals_of(Blue(), data, slice(0, 10))
    result = Exhaustive(Config()).counterfactuals(Blue(), factuals, context_of(data))
    rows = data.encoding.decode(result.counterfactuals)
    assert ((rows["colour"] == "blue") == (factuals.classes == 0)).all()
