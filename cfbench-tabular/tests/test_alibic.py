import numpy as np
import pytest

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.alibic import ALIBIC, Config
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.prototypes import shrunk
from cfbench_tabular.table import Column

COLOUR = Column("colour", "categorical", ("red", "green", "blue"))


def encoding_of(*columns):
    size = len(columns)
    return Encoding(columns, np.zeros(size), np.ones(size), np.full(size, -9.0), np.full(size, 9.0))


def classes_of(model, rows):
    found = model.predict_proba(rows)
    return (found[:, 1] > found[:, 0]).astype(int)


def reported(config, model, encoding, factuals, background):
    """Observed with their details."""
    vectors = np.asarray(factuals, dtype=float)
    given = Factuals(vectors, classes_of(model, vectors), tuple(map(str, range(len(vectors)))))
    context = Context(encoding, np.asarray(background, dtype=float), lambda unit: np.random.default_rng(0))
    return ALIBIC(config).counterfactuals(model, given, context)


def test_shrinking_stops_at_the_start():
    points, starts = np.array([[3.0, 0.95, -2.0]]), np.array([[1.0, 1.0, -1.0]])
    assert shrunk(points, starts, 0.1) == pytest.approx(np.array([[2.9, 1.0, -1.9]]))


def test_the_nearest_point_of_the_other_class_on_a_line(explain, linear, numbers):
    plain = Config(beta=0.0, theta=0.0, rounds=10, iterations=200)
    results = explain(ALIBIC(plain), linear([3.0, 4.0], -10.0), numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    assert results[0] == pytest.approx([1.2, 1.6], abs=0.05)


@pytest.mark.parametrize("seed", range(8))
def test_without_further_terms_it_is_the_nearest_point_there_is(explain, linear, numbers, seed):
    """x - z w / |w|^2 for a linear model, to within 5%, once the weight of the class is found."""
    draw = np.random.default_rng(seed)
    weights, bias, factuals = draw.normal(size=6), draw.normal(), draw.normal(size=(10, 6))
    plain = Config(beta=0.0, theta=0.0, rounds=10, iterations=200)
    results = explain(ALIBIC(plain), linear(weights, bias), numbers(6), factuals, factuals)
    nearest = np.abs(factuals @ weights + bias) / np.linalg.norm(weights)
    distances = np.linalg.norm(results - factuals, axis=1)
    assert (distances >= nearest).all()
    assert (distances <= 1.05 * nearest + 0.02).all()


def test_absolute_distance_leaves_weak_columns_alone(explain, linear, numbers):
    model = linear([1.0, 0.2], -1.0)
    dense = explain(ALIBIC(Config(beta=0.0, theta=0.0)), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    sparse = explain(ALIBIC(Config(beta=1.0, theta=0.0)), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    assert dense[0, 1] > 0.05
    assert sparse[0, 1] == 0.0 and sparse[0, 0] > 1.0


def test_the_prototype_has_weight(linear, numbers):
    """The adapter of CF-tabular gave it none. The row at (1.2, 4) is the nearest of the other class."""
    model, background = linear([1.0, 0.0], -1.0), [[0.0, 0.0], [1.2, 4.0], [8.0, 0.0]]
    second = {}
    for theta in (0.0, Config().theta, 1.0, 100.0):
        result = reported(Config(theta=theta), model, numbers(2), [[0.0, 0.0]], background)
        second[theta] = result.counterfactuals[0, 1]
        expected = np.hypot(*(result.counterfactuals[0] - [1.2, 4.0]))
        assert result.details["to_prototype"][0] == pytest.approx(expected)
    assert second[0.0] == 0.0
    assert 0.1 < second[Config().theta] < second[1.0] < second[100.0] == pytest.approx(4.0, abs=0.3)


def test_the_weight_of_the_class_is_searched(linear, numbers):
    """From far too little, and from far too much: the same counterfactual."""
    model, factual = linear([1.0, 1.0], -3.0), [[0.0, 0.0]]
    distances = []
    for cost in (0.001, 1.0, 300.0):
        config = Config(cost=cost, rounds=14, theta=0.0, iterations=150)
        result = reported(config, model, numbers(2), factual, factual)
        distances.append(np.linalg.norm(result.counterfactuals[0]))
        assert result.details["cost"][0] > 0
    assert distances == pytest.approx([3 / np.sqrt(2)] * 3, rel=0.1)


def test_kappa_requires_a_margin_beyond_the_boundary(explain, linear, numbers):
    results = explain(ALIBIC(Config(kappa=2.0)), linear([1.0], 0.0), numbers(1), [[-1.0]], [[0.0]])
    assert results[0, 0] > 2.0


@pytest.mark.parametrize("categories", ["mvdm", "abdm"])
def test_counterfactuals_are_rows(explain, linear, categories):
    encoding = encoding_of(Column("age"), COLOUR, Column("striped", "categorical", ("no", "yes")))
    draw = np.random.default_rng(1)
    rows = encoding.project(draw.normal(size=(60, encoding.width)))
    model = linear([0.5, -1.0, 0.0, 2.0, -1.0], 0.2)
    results = explain(ALIBIC(Config(categories=categories)), model, encoding, rows[:20], rows)
    assert (classes_of(model, results) != classes_of(model, rows[:20])).all()
    encoding.decode(results)
    changed = results[:, 1:] != rows[:20, 1:]
    assert changed.any()  # categories are walked, not only numbers


def test_ignoring_categories_gives_vectors_that_are_no_rows(explain, linear):
    encoding = encoding_of(COLOUR)
    rows = np.eye(3)
    results = explain(
        ALIBIC(Config(categories="ignore")), linear([0.0, 1.0, 0.0], -0.4), encoding, rows[:1], rows
    )
    with pytest.raises(ValueError, match="not exactly one level"):
        encoding.decode(results)


def test_immutable_columns_and_ranges(explain, linear):
    encoding = encoding_of(Column("a"), Column("b", immutable=True), Column("c", direction="down"), COLOUR)
    model = linear([1.0, 5.0, 5.0, 0.0, 0.0, 0.0], -2.0)
    factual = [[0.0, 0.0, 0.0, 1, 0, 0]]
    results = explain(
        ALIBIC(Config(theta=0.0)), model, encoding, factual, [[3.0, 3.0, 3.0, 0, 1, 0], *factual]
    )
    assert results[0, 1] == 0 and results[0, 2] <= 0 and results[0, 0] >= 2
    far = explain(ALIBIC(Config()), linear([1.0], -9.5), encoding_of(Column("a")), [[0.0]], [[0.0]])
    assert np.isnan(far).all()


def test_columns_that_stay_are_exactly_as_they_were(explain, linear, numbers):
    factual = [[0.1 + 0.2, 1 / 3, -0.7]]
    results = explain(ALIBIC(Config(theta=0.0)), linear([1.0, 0.0, 0.0], -1.0), numbers(3), factual, factual)
    assert results[0, 1:].tolist() == factual[0][1:]


def test_without_a_slope_there_is_no_counterfactual(explain, linear, numbers):
    assert np.isnan(explain(ALIBIC(Config()), linear([0.0], 1.0), numbers(1), [[0.0]], [[0.0]])).all()


@pytest.mark.parametrize("name", ["StatlogGC", "TicTacToe", "Iris"])
def test_every_factual_of_cf_tabular_has_a_counterfactual(study, explain, name):
    model, encoding = study.network(name), study.encoding(name)
    factuals = {label: study.factuals(name, label)[:15].astype(float) for label in (0, 1)}
    background = np.concatenate(list(factuals.values()))
    for label in (0, 1):
        results = explain(ALIBIC(Config()), model, encoding, factuals[label], background)
        assert (classes_of(model, results) != label).all()
        encoding.decode(results)


@pytest.mark.parametrize("theta", [0.0, 0.2, 2.0])
def test_refinement_lowers_the_objective_and_beats_the_prototype(explain, network, numbers, theta):
    draw = np.random.default_rng(3)
    rows, background, model = draw.normal(size=(30, 5)), draw.normal(size=(200, 5)), network(5, seed=3)
    classes, known = (model.predict_proba(part).argmax(axis=1) for part in (rows, background))

    def objective(found):
        nearest = [
            min(background[known != own], key=lambda other, x=x: np.linalg.norm(other - x))
            for x, own in zip(rows, classes, strict=True)
        ]
        away = found - rows
        return (
            0.5 * np.abs(away).sum(axis=1)
            + (away**2).sum(axis=1)
            + theta * ((found - np.array(nearest)) ** 2).sum(axis=1)
        ), np.array(nearest)

    refined, plain = (
        explain(ALIBIC(Config(theta=theta, refined=given)), model, numbers(5), rows, background)
        for given in (True, False)
    )
    assert (model.predict_proba(refined).argmax(axis=1) != classes).all()
    merit, nearest = objective(refined)
    assert (merit <= objective(nearest)[0] + 1e-12).all()
    given = ~np.isnan(plain[:, 0])
    assert (merit[given] <= objective(plain)[0][given] + 1e-12).all()
    assert merit[given].mean() < objective(plain)[0][given].mean()
