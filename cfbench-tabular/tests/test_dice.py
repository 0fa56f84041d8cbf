import importlib.util
from pathlib import Path

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.counterfactual_sets import (
    distances,
    diversity,
    diversity_gradient,
    inverse_deviations,
)
from cfbench_tabular.explainers.dice import Config, DiCE
from cfbench_tabular.table import Column


def several(explainer, model, encoding, vectors, background, results):
    """(B, k, d) the counterfactuals to ``vectors``."""
    vectors = np.asarray(vectors, dtype=float)
    found = model.predict_proba(vectors)
    classes = (found[:, 1] > found[:, 0]).astype(np.int64)
    factuals = Factuals(vectors, classes, tuple(str(row) for row in range(len(vectors))))
    context = Context(
        encoding,
        np.asarray(background, dtype=float),
        lambda unit: generator("test", unit),
        counterfactuals_per_instance=results,
    )
    return explainer.counterfactuals(model, factuals, context).counterfactuals


def classes_of(model, rows):
    found = model.predict_proba(rows)
    return (found[:, 1] > found[:, 0]).astype(int)


def test_the_column_that_matters_goes_to_the_boundary(linear, numbers):
    results = several(DiCE(Config()), linear([2.0, 0.0], -2.0), numbers(2), [[0.0, 3.0]], [[0.0, 0.0]], 1)
    assert results.shape == (1, 1, 2)
    assert results[0, 0] == pytest.approx([1.0, 3.0], abs=0.02)


def literal_determinant(points, weights):
    """By the sum over permutations."""
    from itertools import permutations

    k = len(points)
    kernel = [
        [
            1 / (1 + sum(w * abs(a - b) for w, a, b in zip(weights, points[i], points[j], strict=True)))
            + (1e-4 if i == j else 0)
            for j in range(k)
        ]
        for i in range(k)
    ]
    total = 0.0
    for order in permutations(range(k)):
        sign = 1
        for i in range(k):
            for j in range(i):
                sign *= -1 if order[j] > order[i] else 1
        total += sign * np.prod([kernel[i][order[i]] for i in range(k)])
    return total


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_diversity_is_the_determinant(k):
    draw = np.random.default_rng(k)
    sets, weights = draw.normal(size=(5, k, 3)), draw.uniform(0.5, 2, size=3)
    expected = [literal_determinant(points, weights) for points in sets]
    assert diversity(sets, weights) == pytest.approx(np.array(expected), abs=1e-10)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_its_gradient_agrees_with_finite_differences(k):
    draw = np.random.default_rng(k)
    sets, weights = draw.normal(size=(4, k, 3)), draw.uniform(0.5, 2, size=3)
    gradient = diversity_gradient(sets, weights)
    for place in range(k):
        for column in range(3):
            moved = np.zeros((k, 3))
            moved[place, column] = 1e-6
            slope = (diversity(sets + moved, weights) - diversity(sets - moved, weights)) / 2e-6
            assert gradient[:, place, column] == pytest.approx(slope, abs=1e-6)


def test_equal_counterfactuals_are_not_diverse():
    same, apart = np.zeros((1, 3, 2)), np.arange(6.0).reshape(1, 3, 2) * 10
    assert diversity(same, np.ones(2))[0] < 0.001
    assert diversity(apart, np.ones(2))[0] > 0.95


def test_weights_are_inverse_median_deviations_with_a_fall_back():
    columns = (Column("a"), Column("b"), Column("c"), Column("d", "categorical", ("no", "yes")))
    encoding = Encoding(columns, np.zeros(4), np.ones(4), np.zeros(4), np.ones(4))
    background = np.array(
        [[0, 0, 5, 0], [1, 0, 5, 1], [2, 0, 5, 1], [3, 0, 5, 1], [10, 5, 5, 1]], dtype=float
    )
    # |a - 2| = 2 1 0 1 8: median 1. b: median deviation 0, mean deviation 1. c: no spread.
    assert inverse_deviations(background, encoding).tolist() == [1.0, 1.0, 1.0, 1.0]
    background[:, 0] *= 4
    background[4, 1] = 20
    assert inverse_deviations(background, encoding).tolist() == [0.25, 0.25, 1.0, 1.0]


def test_several_are_valid_sorted_and_unlike_each_other(network, numbers):
    draw = np.random.default_rng(0)
    model, factuals = network(5, hidden=12, seed=4), draw.normal(size=(10, 5))
    results = several(DiCE(Config()), model, numbers(5), factuals, draw.normal(size=(50, 5)), 4)
    given = ~np.isnan(results).any(axis=(1, 2))
    assert given.mean() > 0.5
    weights = np.ones(5)
    for factual, found in zip(factuals[given], results[given], strict=True):
        assert (classes_of(model, found) != classes_of(model, factual[None])[0]).all()
        assert len(np.unique(found.round(6), axis=0)) == 4
    alike = several(
        DiCE(Config(diversity=0.0, minimum_distance=0.0, sparsity="none")),
        model,
        numbers(5),
        factuals,
        draw.normal(size=(50, 5)),
        4,
    )
    unlike = several(
        DiCE(Config(diversity=5.0, minimum_distance=0.0, sparsity="none")),
        model,
        numbers(5),
        factuals,
        draw.normal(size=(50, 5)),
        4,
    )
    assert diversity(unlike[given], weights).mean() > diversity(alike[given], weights).mean() + 0.1


def test_a_factual_has_the_same_several_counterfactuals_alone(network, numbers):
    draw = np.random.default_rng(1)
    model, factuals, rows = network(4, seed=1), draw.normal(size=(6, 4)), draw.normal(size=(30, 4))
    together = several(DiCE(Config()), model, numbers(4), factuals, rows, 3)
    alone = several(DiCE(Config()), model, numbers(4), factuals[:1], rows, 3)
    assert alone[0] == pytest.approx(together[0], abs=1e-9, nan_ok=True)


MIXED = Encoding(
    (
        Column("age"),
        Column("colour", "categorical", ("red", "green", "blue")),
        Column("striped", "categorical", ("no", "yes")),
        Column("dotted", "categorical", ("no", "yes")),
        Column("size"),
    ),
    np.zeros(5),
    np.ones(5),
    np.full(5, -9.0),
    np.full(5, 9.0),
)


@pytest.mark.parametrize("sparsity", ["linear", "binary", "none"])
@pytest.mark.parametrize("restored", ["numbers", "all"])
def test_counterfactuals_are_rows_and_two_valued_columns_are_not_forced_to_one(linear, sparsity, restored):
    """The adapter of CF-tabular edited single one-hot places, and returned 1 in every two-valued column."""
    draw = np.random.default_rng(3)
    rows = MIXED.project(draw.normal(size=(40, 7)))
    model = linear([0.5, 1.0, -1.0, 0.5, -1.0, 0.0, -0.5])
    config = Config(sparsity=sparsity, restored=restored)
    results = several(DiCE(config), model, MIXED, rows, rows, 2)
    assert not np.isnan(results[:, 0]).any() and np.isnan(results[:, 1, 0]).mean() < 0.4
    results = results[~np.isnan(results).any(axis=2)]
    MIXED.decode(results)  # raises unless each category is one level
    alone = several(DiCE(config), model, MIXED, rows, rows, 1)[:, 0]
    assert (alone[:, 5] == rows[:, 5]).all()  # what does not matter stays
    assert 0 < results[:, 4].mean() < 1


def test_resetting_does_not_make_counterfactuals_equal(linear):
    """Any of the three changes alone is enough, and each counterfactual could be brought back to the same one."""
    columns = tuple(Column(name, "categorical", ("no", "yes")) for name in "abcd")
    encoding = Encoding(columns, np.zeros(4), np.ones(4), np.zeros(4), np.ones(4))
    results = several(
        DiCE(Config()), linear([3.0, 2.0, 2.0, 1.0], -0.5), encoding, [[0.0] * 4], [[0.0] * 4], 3
    )[0]
    assert len(np.unique(results, axis=0)) == 3


def test_resetting_makes_counterfactuals_sparser_and_never_loses_the_class(network, numbers):
    draw = np.random.default_rng(5)
    model, factuals, rows = (
        network(8, hidden=20, seed=2),
        draw.normal(size=(30, 8)),
        draw.normal(size=(50, 8)),
    )
    changed = {}
    for sparsity in ("none", "linear", "binary"):
        results = several(DiCE(Config(sparsity=sparsity)), model, numbers(8), factuals, rows, 1)[:, 0]
        assert (classes_of(model, results) != classes_of(model, factuals)).all()
        changed[sparsity] = (results != factuals).mean(), distances(results, factuals, np.ones(8)).mean()
    assert changed["binary"][0] <= changed["linear"][0] < changed["none"][0]
    assert max(changed["binary"][1], changed["linear"][1]) < changed["none"][1]


def test_immutable_columns_stay(linear):
    columns = (Column("a"), Column("b", immutable=True), Column("c", direction="down"))
    encoding = Encoding(columns, np.zeros(3), np.ones(3), np.full(3, -9.0), np.full(3, 9.0))
    model = linear([1.0, 5.0, 5.0], -2.0)
    results = several(DiCE(Config()), model, encoding, [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]], 3)[0]
    results = results[~np.isnan(results).any(axis=1)]
    assert len(results)
    assert (results[:, 1] == 0).all() and (results[:, 2] <= 0).all() and (results[:, 0] >= 2).all()


def test_without_a_slope_there_is_no_counterfactual(linear, numbers):
    assert np.isnan(several(DiCE(Config()), linear([0.0], 1.0), numbers(1), [[0.0]], [[0.0]], 2)).all()


@pytest.mark.parametrize("name", ["Adult", "StatlogGC", "Iris"])
def test_the_published_networks(study, name):
    model, encoding = study.network(name), study.encoding(name)
    for label in (0, 1):
        factuals = study.factuals(name, label)[:15].astype(float)
        results = several(DiCE(Config()), model, encoding, factuals, factuals, 1)[:, 0]
        assert (classes_of(model, results) != label).all()
        encoding.decode(results)


def test_it_is_valid_as_often_as_the_authors_own_and_no_farther_away(study, monkeypatch):
    """Compared with ``dice-ml`` with the same weights, on German credit; more factuals, and Adult, in the benchmark."""
    pytest.importorskip("dice_ml", reason="the authors' library is not installed (pip install dice-ml)")
    pytest.importorskip("torch")
    file = Path(__file__).resolve().parents[2] / "benchmarks" / "dice_against_dice_ml.py"
    if not file.exists():
        pytest.skip("the benchmark that holds the comparison is not there")
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(study.data.parent))
    spec = importlib.util.spec_from_file_location("dice_against_dice_ml", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = module.compared("statlog-german-credit", 1, 1)
    theirs, published, ours = rows
    for mine in (published, ours):
        assert mine["validity"] >= theirs["validity"]
        assert mine["proximity"] <= theirs["proximity"]
        assert mine["sparsity"] >= theirs["sparsity"]


@pytest.mark.parametrize("minimum", [0.0, 0.5, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_counterfactuals_of_a_factual_are_the_minimum_distance_apart(network, numbers, minimum, seed):
    draw = np.random.default_rng(seed)
    model, rows = network(5, hidden=10, seed=seed), draw.normal(size=(20, 5))
    found = several(
        DiCE(Config(minimum_distance=minimum)), model, numbers(5), rows, draw.normal(size=(100, 5)), 4
    )
    pairs = np.linalg.norm(found[:, :, None] - found[:, None], axis=3)[:, *np.triu_indices(4, 1)]
    known = pairs[~np.isnan(pairs)]
    assert len(known) > 30
    assert (known > 0).all()
    assert (known >= minimum).all()


def test_sets_on_magic_are_diverse(study):
    """The median distance of two answers was .47 where they started a tenth of a standard deviation apart."""
    model, encoding = study.network("MagicGT"), study.encoding("MagicGT")
    rows = np.concatenate([study.factuals("MagicGT", label)[:20] for label in (0, 1)])
    background = np.concatenate([study.factuals("MagicGT", label) for label in (0, 1)])
    weights = inverse_deviations(background, encoding)
    worth = {}
    for weight in (0.0, 1.0):
        found = several(DiCE(Config(diversity=weight)), model, encoding, rows, background, 4)
        complete = ~np.isnan(found).any(axis=(1, 2))
        assert complete.mean() >= 0.75 and not np.isnan(found[:, 0]).any()
        found = found[complete]
        pairs = np.linalg.norm(found[:, :, None] - found[:, None], axis=3)[:, *np.triu_indices(4, 1)]
        worth[weight] = np.median(pairs), np.median(diversity(found, weights))
    assert worth[1.0][0] > 0.8
    assert worth[1.0][1] > 0.6
    assert worth[1.0] > worth[0.0]
