import numpy as np
import pytest

from cfbench_tabular.explainers.alibic import ALIBIC
from cfbench_tabular.explainers.alibic import Config as GradientConfig
from cfbench_tabular.explainers.alibic_nograd import ALIBICNoGrad, Config, differences
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.testing import Constant, context_of, example_data, factuals_of


def test_the_nearest_point_of_the_other_class_on_a_line(explain, linear, numbers):
    plain = Config(beta=0.0, theta=0.0, rounds=10, iterations=200)
    results = explain(ALIBICNoGrad(plain), linear([3.0, 4.0], -10.0), numbers(2), [[0.0, 0.0]], [[0.0, 0.0]])
    assert results[0] == pytest.approx([1.2, 1.6], abs=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_differences_are_the_gradient_of_a_smooth_model(linear, numbers, seed):
    draw = np.random.default_rng(seed)
    weights, points = draw.normal(size=4), draw.normal(size=(6, 4))
    classes = np.array([0, 1, 0, 1, 0, 1])
    found = differences(linear(weights), Space.of_places(numbers(4)), points, classes, 0.01)
    assert found == pytest.approx(np.where(classes == 0, 1, -1)[:, None] * weights, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_the_variant_with_gradients(explain, network, numbers, seed):
    draw = np.random.default_rng(seed)
    model, factuals, rows = (
        network(5, hidden=10, seed=seed),
        draw.normal(size=(8, 5)),
        draw.normal(size=(60, 5)),
    )
    with_them = explain(ALIBIC(GradientConfig()), model, numbers(5), factuals, rows)
    without = explain(ALIBICNoGrad(Config(step=1e-4)), model, numbers(5), factuals, rows)
    assert (np.isnan(with_them) == np.isnan(without)).all()
    given = ~np.isnan(without).any(axis=1)
    distances = [np.linalg.norm(results - factuals, axis=1)[given] for results in (with_them, without)]
    assert np.median(np.abs(distances[0] - distances[1])) < 0.02


class Stump:
    """A tree with one split: no slope anywhere."""

    def predict_proba(self, vectors):
        one = np.where(vectors[:, 0] > 0.4, 0.9, 0.2)
        return np.stack([1 - one, one], axis=1)


def test_the_steps_of_a_tree_are_seen_from_further_away(explain, numbers):
    factuals = [[0.0, 0.0], [1.0, 0.0]]
    results = explain(ALIBICNoGrad(Config(theta=0.0)), Stump(), numbers(2), factuals, [[0.0, 0.0]])
    assert results[0, 0] > 0.4 >= results[1, 0]
    assert results[:, 1].tolist() == [0.0, 0.0]


def test_only_probabilities_are_queried():
    data = example_data()

    class Bare:
        def predict_proba(self, vectors):
            one = 1 / (1 + np.exp(-vectors @ np.linspace(-1, 1, vectors.shape[1])))
            return np.stack([1 - one, one], axis=1)

    factuals = factuals_of(Bare(), data, slice(0, 10))
    result = ALIBICNoGrad(Config()).counterfactuals(Bare(), factuals, context_of(data))
    assert not np.isnan(result.counterfactuals).any()
    data.encoding.decode(result.counterfactuals)


def test_without_an_enemy_there_is_no_counterfactual():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    result = ALIBICNoGrad(Config(rounds=3)).counterfactuals(Constant(), factuals, context_of(data))
    assert np.isnan(result.counterfactuals).all()
