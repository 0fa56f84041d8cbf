from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from cfbench_tabular.classifiers.mlp import MLP
from cfbench_tabular.classifiers.mlp import Config as MLPConfig
from cfbench_tabular.explainers.sedc import SEDC, Config
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of, fitted

AS_TYPICAL = Config(replacements="typical")


def changed(factual, result):
    return frozenset(np.flatnonzero(factual != result).tolist())


def explaining_sets(model, factual, typical):
    """Every set of columns whose replacement changes the class, by trying them all."""
    label = model.predict_proba(factual[None])[0].argmax()
    found = []
    for size in range(1, len(factual) + 1):
        for columns in combinations(range(len(factual)), size):
            row = factual.copy()
            row[list(columns)] = typical[list(columns)]
            if model.predict_proba(row[None])[0].argmax() != label:
                found.append(frozenset(columns))
    return found


def test_the_one_column_that_matters_is_set_to_the_mean(explain, linear, numbers):
    background = [[0.0, 0.0, 1.0], [0.0, 2.0, 3.0]]
    results = explain(
        SEDC(AS_TYPICAL), linear([1.0, 1.0, 1.0], -5.5), numbers(3), [[4.0, 2.0, 2.0]], background
    )
    assert results.tolist() == [[0.0, 2.0, 2.0]]


@pytest.mark.parametrize("seed", range(25))
def test_for_a_linear_model_the_set_is_the_smallest(explain, linear, numbers, seed):
    draw = np.random.default_rng(seed)
    model = linear(draw.normal(size=6), draw.normal())
    background, factuals = draw.normal(size=(30, 6)), draw.normal(scale=2, size=(4, 6))
    results = explain(
        SEDC(Config(replacements="typical", iterations=1000)), model, numbers(6), factuals, background
    )
    for factual, result in zip(factuals, results, strict=True):
        sets = explaining_sets(model, factual, background.mean(axis=0))
        if not sets:
            assert np.isnan(result).all()
        else:
            assert changed(factual, result) in sets
            assert len(changed(factual, result)) == min(map(len, sets))


@pytest.mark.parametrize("cost", ["none", "change"])
@pytest.mark.parametrize("seed", range(15))
def test_the_set_is_irreducible(explain, network, numbers, seed, cost):
    draw = np.random.default_rng(seed)
    model = network(7, seed=seed)
    background, factuals = draw.normal(size=(30, 7)), draw.normal(scale=2, size=(4, 7))
    results = explain(
        SEDC(Config(replacements="typical", iterations=1000, cost=cost)),
        model,
        numbers(7),
        factuals,
        background,
    )
    for factual, result in zip(factuals, results, strict=True):
        sets = explaining_sets(model, factual, background.mean(axis=0))
        assert np.isnan(result).all() == (not sets)
        if sets:
            mine = changed(factual, result)
            assert mine in sets
            assert not any(other < mine for other in sets)


def test_what_was_tried_is_what_is_returned(explain, linear, numbers):
    """The mean 0.6, not 0: the threshold lies between the two."""
    background = [[0.2], [1.0]]
    results = explain(SEDC(AS_TYPICAL), linear([1.0], -0.7), numbers(1), [[3.0]], background)
    assert results.tolist() == [[0.6]]


def test_costs_prefer_the_smaller_change(explain, linear, numbers):
    factual = [[5.0, 1.0]]
    model = linear(
        [1.0, 4.0], -4.5
    )  # either column alone is enough; the first gains more, the second is nearer
    assert explain(SEDC(AS_TYPICAL), model, numbers(2), factual, [[0.0, 0.0]]).tolist() == [[0.0, 1.0]]
    model = linear([1.0, 4.5], -5.2)
    cheap = explain(
        SEDC(Config(replacements="typical", cost="change")), model, numbers(2), factual, [[0.0, 0.0]]
    )
    assert cheap.tolist() == [[5.0, 0.0]]


def test_a_category_is_set_to_its_most_frequent_level():
    data = example_data()
    model = fitted(MLP(MLPConfig()), data)
    factuals = factuals_of(model, data)
    results = SEDC(AS_TYPICAL).counterfactuals(model, factuals, context_of(data))
    given = ~np.isnan(results).any(axis=1)
    rows = data.encoding.decode(results[given])  # raises unless each is a row
    before = data.encoding.decode(factuals.vectors[given])
    train = data.rows("train")
    colours, counts = np.unique(data.table.values["colour"][train].astype(str), return_counts=True)
    moved = rows["colour"] != before["colour"]
    assert given.sum() > 20
    assert moved.any()
    assert set(rows["colour"][moved]) == {colours[counts.argmax()]}


def test_sets_are_no_larger_than_allowed(explain, linear, numbers):
    model = linear([1.0, 1.0, 1.0], -2.5)
    factual, background = [[2.0, 2.0, 2.0]], [[0.0, 0.0, 0.0]]
    assert (explain(SEDC(AS_TYPICAL), model, numbers(3), factual, background) == [[0.0, 0.0, 2.0]]).sum() == 3
    assert np.isnan(
        explain(SEDC(Config(replacements="typical", max_features=1)), model, numbers(3), factual, background)
    ).all()


def test_a_factual_with_only_typical_values_has_no_counterfactual(explain, linear, numbers):
    assert np.isnan(
        explain(SEDC(AS_TYPICAL), linear([1.0, 1.0], 1.0), numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    ).all()


def test_without_an_enemy_there_is_no_counterfactual():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    assert np.isnan(SEDC(AS_TYPICAL).counterfactuals(Constant(), factuals, context_of(data))).all()


def test_a_large_set_is_reduced_too(explain, linear, numbers):
    """Sixteen equal columns of which thirteen must go; the search stops there, and none can be spared."""
    results = explain(
        SEDC(Config(iterations=400)), linear([1.0] * 16, -3.5), numbers(16), [[1.0] * 16], [[0.0] * 16]
    )
    assert (results[0] == 0).sum() == 13


def test_columns_that_must_not_become_typical_are_in_no_set(explain, linear, numbers):
    """The first column alone would do, the second too, but only the third may go down."""
    encoding = numbers(3)
    columns = (
        replace(encoding.columns[0], immutable=True),
        replace(encoding.columns[1], direction="up"),
        encoding.columns[2],
    )
    factual, background = [[3.0, 3.0, 2.0]], [[0.0, 0.0, 0.0]]
    model = linear([1.0, 1.0, 1.0], -7.0)
    results = explain(SEDC(AS_TYPICAL), model, replace(encoding, columns=columns), factual, background)
    assert results.tolist() == [[3.0, 3.0, 0.0]]


def test_where_typical_values_do_not_help_those_of_the_other_class_replace_them(explain, linear, numbers):
    """Three of four training rows are in the class of the factual, and so is their mean (.75, 0)."""
    model = linear([1.0, 0.0], -0.5)
    background, factual = [[2.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], [[3.0, 5.0]]
    assert np.isnan(explain(SEDC(AS_TYPICAL), model, numbers(2), factual, background)).all()
    assert explain(SEDC(Config()), model, numbers(2), factual, background).tolist() == [[-1.0, 5.0]]


def test_where_the_other_class_has_no_typical_row_its_nearest_row_is_used(explain, numbers):
    """The other class lies on both sides of the factuals, and its mean among them."""

    class Outside:
        def predict_proba(self, rows):
            other = (np.abs(rows[:, 0]) > 1).astype(float)
            return np.stack([1 - other, other], axis=1)

    background, factual = [[-4.0, 1.0], [3.0, 1.0], [0.5, 0.0], [0.2, 0.0]], [[0.4, 7.0]]
    result = explain(SEDC(Config()), Outside(), numbers(2), factual, background)
    assert result.tolist() == [[3.0, 7.0]]


@pytest.mark.parametrize("seed", range(10))
def test_every_factual_with_an_enemy_has_an_irreducible_counterfactual(explain, network, numbers, seed):
    """Whatever the typical row is: at worst, all columns of the nearest row in the other class; one iteration alone."""
    draw = np.random.default_rng(seed)
    model = network(12, seed=seed)
    background, factuals = draw.normal(size=(30, 12)), draw.normal(scale=2, size=(6, 12))
    results = explain(SEDC(Config(iterations=1)), model, numbers(12), factuals, background)
    if len(set(model.predict_proba(background).argmax(axis=1).tolist())) == 2:
        assert not np.isnan(results).any()
        before, after = (model.predict_proba(rows).argmax(axis=1) for rows in (factuals, results))
        assert (before != after).all()
