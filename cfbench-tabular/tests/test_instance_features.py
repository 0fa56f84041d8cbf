import numpy as np
import pytest

from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.instance_features import instance_features
from cfbench_tabular.testing import Constant, example_data, factuals_of


def test_they_are_the_literal_definitions(network):
    data, model = example_data(), network(7, seed=3)
    factuals = factuals_of(model, data, slice(20, 40))
    found = instance_features(model, data, factuals, np.arange(20, 40))
    training = data.sample("train")[0]
    for place, row in enumerate(range(20, 40)):
        odds = model.predict_proba(data.vectors[row : row + 1])[0]
        label = int(odds[1] > odds[0])
        assert found["factual score"][place] == pytest.approx(odds[label]) and odds[label] >= 0.5
        assert found["misclassified"][place] == float(label != data.labels[row])
        assert found["factual share"][place] == pytest.approx(sum(data.labels == label) / 120)
        other = [
            r for r in training if (lambda p: int(p[1] > p[0]))(model.predict_proba(r[None])[0]) != label
        ]
        nearest = min(np.linalg.norm(r - data.vectors[row]) for r in other)
        assert found["enemy distance"][place] == pytest.approx(nearest)


def test_without_enemies_their_distance_is_missing():
    data = example_data()
    factuals = factuals_of(Constant(), data, slice(0, 3))
    assert np.isnan(instance_features(Constant(), data, factuals, np.arange(3))["enemy distance"]).all()


def test_no_factuals_give_no_features():
    data = example_data()
    none = Factuals(np.empty((0, 7)), np.empty(0, dtype=np.int64), ())
    assert all(
        len(v) == 0 for v in instance_features(Constant(), data, none, np.empty(0, dtype=np.int64)).values()
    )
