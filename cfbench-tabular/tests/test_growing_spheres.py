from dataclasses import replace

import numpy as np
import pytest

from cfbench_tabular.explainers.growing_spheres import Config, GrowingSpheres
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of


class Recorder:
    """A linear classifier that records what it was queried."""

    def __init__(self, model):
        self.model = model
        self.queries = []

    def predict_proba(self, vectors):
        self.queries.append(vectors.copy())
        return self.model.predict_proba(vectors)


def test_only_the_coordinate_that_matters_is_changed(explain, linear, numbers):
    results = explain(
        GrowingSpheres(Config()), linear([1.0, 0.0], -1.0), numbers(2), [[0.0, 3.0]], [[0.0, 0.0]]
    )
    assert results[0, 1] == 3.0
    assert 1.0 < results[0, 0] < 1.3


def test_the_shells_have_equal_thickness_as_published(explain, linear, numbers):
    model = Recorder(linear([1.0, 0.0], -1.0))
    config = Config(samples=400, radius=0.1, layers=50)
    explain(GrowingSpheres(config), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    thickness = 0.1 * np.sqrt(2)
    shells = [np.linalg.norm(points, axis=1) for points in model.queries if len(points) == 400]
    assert len(shells) == 8  # the ball, then shells until one reaches the line at 1
    for layer, radii in enumerate(shells):
        assert radii.min() >= layer * thickness - 1e-12
        assert radii.max() <= (layer + 1) * thickness + 1e-12
    assert shells[0].min() < 0.3 * thickness  # the first is a ball


def test_points_are_uniform_in_the_shell(explain, linear, numbers):
    model = Recorder(linear([0.0, 0.0, 0.0], 1.0))
    explain(
        GrowingSpheres(Config(samples=20_000, radius=1.0, layers=1)),
        model,
        numbers(3),
        [[0.0] * 3],
        [[0.0] * 3],
    )
    points = model.queries[-1]
    inner, outer = np.sqrt(3), 2 * np.sqrt(3)
    share = (np.linalg.norm(points, axis=1) ** 3 - inner**3) / (outer**3 - inner**3)  # uniform in [0, 1]
    assert np.quantile(share, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.015)
    assert np.abs(points.mean(axis=0)).max() < 0.06


def test_the_radius_is_halved_until_the_ball_holds_no_enemy(explain, linear, numbers):
    model = Recorder(linear([1.0, 0.0], -0.05))
    config = Config(samples=500, radius=1.0)
    results = explain(GrowingSpheres(config), model, numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    largest = [np.linalg.norm(points, axis=1).max() for points in model.queries if len(points) == 500]
    halved = [np.sqrt(2) / 2**step for step in range(6)]
    assert largest[:5] == pytest.approx(halved[:5], rel=0.02)
    assert 0.05 < results[0, 0] < 0.1


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7])
def test_it_is_as_near_as_the_best_point_of_a_dense_grid(explain, network, numbers, seed):
    """In two dimensions: no nearer than the boundary, and at most two shells beyond it."""
    model = network(2, hidden=8, seed=seed)
    axis = np.linspace(-4, 4, 801)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    found = model.predict_proba(grid)
    classes = found[:, 1] > found[:, 0]
    factuals = np.random.default_rng(seed).uniform(-1.5, 1.5, size=(12, 2))
    config = Config(samples=1000, radius=0.05)
    results = explain(GrowingSpheres(config), model, numbers(2), factuals, factuals)
    assert 0.05 < classes.mean() < 0.95
    own = model.predict_proba(factuals)
    for factual, label, result in zip(factuals, own[:, 1] > own[:, 0], results, strict=True):
        nearest = np.linalg.norm(grid[classes != label] - factual, axis=1).min()
        distance = np.linalg.norm(result - factual)
        there = model.predict_proba(result[None])[0]
        assert (there[1] > there[0]) != label
        assert distance >= nearest - 0.01 * np.sqrt(2)
        assert distance <= nearest + 2 * 0.05 * np.sqrt(2)


def test_undoing_one_more_change_would_lose_the_class(explain, network, numbers):
    model = network(6, seed=3)
    factuals = np.random.default_rng(0).normal(size=(20, 6))
    results = explain(GrowingSpheres(Config()), model, numbers(6), factuals, factuals)
    own = model.predict_proba(factuals)
    for factual, label, result in zip(factuals, own[:, 1] > own[:, 0], results, strict=True):
        if np.isnan(result).any():
            continue
        changes = np.abs(result - factual)
        changes[changes == 0] = np.inf
        undone = result.copy()
        undone[changes.argmin()] = factual[changes.argmin()]
        there = model.predict_proba(undone[None])[0]
        assert (there[1] > there[0]) == label


def test_projected_counterfactuals_are_rows_and_ignoring_categories_gives_vectors_that_are_none():
    data = example_data()
    encoding = data.encoding
    # Only the colour counts, so every counterfactual must change it.
    weights = np.zeros(encoding.width)
    weights[encoding.groups[0].start] = 1.0

    class Colour:
        def predict_proba(self, vectors):
            one = (vectors @ weights > 0.5).astype(float)
            return np.stack([1 - one, one], axis=1)

    factuals = factuals_of(Colour(), data, slice(0, 20))
    projected = GrowingSpheres(Config(one_hot="project")).counterfactuals(
        Colour(), factuals, context_of(data)
    )
    encoding.decode(projected)  # raises unless each is a row
    ignored = GrowingSpheres(Config(one_hot="ignore")).counterfactuals(Colour(), factuals, context_of(data))
    assert not np.isnan(ignored).any()
    with pytest.raises(ValueError, match="'colour' is not exactly one level"):
        encoding.decode(ignored)


def test_without_an_enemy_it_ends_without_a_counterfactual():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    results = GrowingSpheres(Config(samples=50, layers=5)).counterfactuals(
        Constant(), factuals, context_of(data)
    )
    assert np.isnan(results).all()


def test_a_row_on_the_boundary_has_a_counterfactual(explain, linear, numbers):
    results = explain(GrowingSpheres(Config(samples=100)), linear([1.0]), numbers(1), [[0.0]], [[0.0]])
    assert 0 < results[0, 0] < 1e-6


def test_numbers_stay_as_observed_unless_ranges_are_ignored(explain, linear, numbers):
    """The first column alone would have to leave its range (-9 to 9), so both move."""
    model, factual = linear([1.0, 0.3], -10.0), [[8.0, 0.0]]
    clipped = explain(GrowingSpheres(Config()), model, numbers(2), factual, factual)
    assert clipped[0, 0] <= 9.0
    assert clipped[0, 1] > 3.0
    free = explain(GrowingSpheres(Config(ranges="ignore")), model, numbers(2), factual, factual)
    assert free[0, 0] > 9.0


def test_immutable_columns_never_move_and_one_way_columns_go_one_way(explain, linear, numbers):
    encoding = numbers(3)
    columns = (
        replace(encoding.columns[0], immutable=True),
        replace(encoding.columns[1], direction="down"),
        encoding.columns[2],
    )
    encoding = replace(encoding, columns=columns)
    factuals = np.random.default_rng(0).normal(scale=0.5, size=(20, 3))
    model = linear([5.0, 1.0, 1.0], 0.5)
    results = explain(GrowingSpheres(Config()), model, encoding, factuals, factuals)
    found = model.predict_proba(results)
    assert (found.argmax(axis=1) != model.predict_proba(factuals).argmax(axis=1)).all()
    assert (results[:, 0] == factuals[:, 0]).all()
    assert (results[:, 1] <= factuals[:, 1]).all()
    fixed = replace(encoding, columns=tuple(replace(column, immutable=True) for column in columns))
    assert np.isnan(explain(GrowingSpheres(Config()), model, fixed, factuals, factuals)).all()
