from __future__ import annotations

import numpy as np

from cfbench_explainers_native.popularity import Config, Popularity


def test_an_interaction_counts_the_training_users_of_its_item(world, linear):
    setting = world(linear(items=5), [[0, 1, 3], [2]], 5, training=[[0, 1], [1], [1, 4]])
    importances = Popularity(Config()).importances(setting.targets([0, 1], [4, 4]), setting.context)
    assert importances.tolist() == [[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]]


def test_the_explained_item_does_not_matter(world, linear):
    setting = world(linear(), [[0, 1, 2]], 12, training=[[0], [0, 1]])
    targets = setting.targets([0, 0], [[5, 6], [7, 8]], k=2)
    importances = Popularity(Config()).importances(targets, setting.context)
    assert np.array_equal(importances[0], importances[1])


def test_awkward_users_stand_alone(awkward, assert_each_unit_stands_alone):
    targets = awkward.targets(range(6), [419] * 6)
    assert_each_unit_stands_alone(Popularity(Config()), targets, awkward.context)
