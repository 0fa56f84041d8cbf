import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.nearest_enemy import Config, NearestEnemy, _nearest
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of
from cfbench_tabular.testing.example import constrained_data


def test_the_nearest_training_row_beyond_the_line(explain, linear, numbers):
    background = [[1.0, 0.0], [3.0, 0.0], [2.0, 2.0], [-1.0, 0.0]]
    results = explain(
        NearestEnemy(Config()), linear([1.0, 0.0]), numbers(2), [[-2.0, 1.0], [4.0, 4.0]], background
    )
    assert results.tolist() == [[1.0, 0.0], [-1.0, 0.0]]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["respect", "ignore"]))
def test_it_is_that_of_a_search_by_hand(ask_seed, constraints):
    draw = np.random.default_rng(ask_seed)
    data, weights = constrained_data(), None
    background = np.round(draw.normal(size=(15, data.encoding.width)), 1)  # coarse, so that there are ties
    fixed = data.encoding.immutable | (np.arange(data.encoding.width) == 2)
    background[:10, fixed] = data.vectors[0, fixed]  # some are admissible for the first factual
    background = np.clip(background, *data.encoding.bounds)  # as the rows of the table are
    weights = draw.normal(size=data.encoding.width)

    class Linear:
        def predict_proba(self, vectors):
            one = (vectors @ weights > 0).astype(float)
            return np.stack([1 - one, one], axis=1)

    model = Linear()
    factuals = factuals_of(model, data, slice(0, 5))
    context = context_of(data)
    context = type(context)(context.encoding, background, context.generator)
    results = NearestEnemy(Config(constraints=constraints)).counterfactuals(model, factuals, context)
    lowest, highest = data.encoding.allowed(factuals.vectors)
    sides = dict(zip(factuals.units, zip(lowest, highest, strict=True), strict=True))
    for unit, factual, label, result in zip(
        factuals.units, factuals.vectors, factuals.classes, results, strict=True
    ):
        low, high = sides[unit]
        best, best_distance = None, np.inf
        for row in background:
            if constraints == "respect" and ((row < low) | (row > high)).any():
                continue
            if (row @ weights > 0) != (label == 1) and ((row - factual) ** 2).sum() < best_distance:
                best, best_distance = row, ((row - factual) ** 2).sum()
        if best is None:
            assert np.isnan(result).all()
        else:
            assert np.isclose(((result - factual) ** 2).sum(), best_distance)
            assert (result @ weights > 0) != (label == 1)


def test_without_an_enemy_there_is_no_counterfactual():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    assert np.isnan(NearestEnemy(Config()).counterfactuals(Constant(), factuals, context_of(data))).all()


def test_several_are_the_nearest_alternatives_in_order(linear, numbers):
    """Who can go from (-2, 1) to (3, 0) can also stop at (1, 0)."""
    background = np.array([[1.0, 0.0], [3.0, 0.0], [1.0, 0.0], [2.0, 2.0], [-1.0, 0.0]])
    rows = np.array([[-2.0, 1.0], [4.0, 4.0]])
    context = Context(numbers(2), background, np.random.default_rng, counterfactuals_per_instance=4)
    factuals = Factuals(rows, np.array([0, 1]), ("a", "b"))
    results = NearestEnemy(Config()).counterfactuals(linear([1.0, 0.0]), factuals, context)
    assert results[0, :2].tolist() == [[1.0, 0.0], [2.0, 2.0]]
    assert np.isnan(results[0, 2:]).all()
    assert results[1, 0].tolist() == [-1.0, 0.0] and np.isnan(results[1, 1:]).all()


@pytest.mark.parametrize("width", [3, 40])
def test_the_nearest_of_many_rows_is_found_also_among_equals(width):
    draw = np.random.default_rng(width)
    others = draw.integers(0, 2, size=(300, width)).astype(float)
    others[:, :2] += draw.normal(size=(300, 2)).round(1)
    others = np.concatenate([others, others[::-1]])  # each twice
    rows = draw.integers(0, 2, size=(50, width)).astype(float)
    expected = [int(((others - row) ** 2).sum(axis=1).round(9).argmin()) for row in rows]
    assert _nearest(rows, others).tolist() == expected
