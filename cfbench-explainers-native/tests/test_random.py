from __future__ import annotations

import numpy as np
from scipy import stats

from cfbench_explainers_native.random import Config, Random


def test_a_unit_gets_the_stream_of_its_user_and_item(world, linear):
    setting = world(linear(), [[0, 1, 2], [3]], 12)
    targets = setting.targets([0, 1], [5, 6])
    importances = Random(Config()).importances(targets, setting.context)
    assert np.array_equal(importances[0], setting.context.generator("random", 0, 5).random(3))
    assert np.array_equal(importances[1, :1], setting.context.generator("random", 1, 6).random(1))


def test_importances_are_uniform(world, linear):
    setting = world(linear(items=500), [range(400)], 500)
    targets = setting.targets([0] * 50, range(400, 450))
    drawn = Random(Config()).importances(targets, setting.context)
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > 0.01
    assert np.abs(np.corrcoef(drawn)[np.triu_indices(50, 1)]).max() < 0.25, "units are independent"


def test_awkward_users_stand_alone(awkward, assert_each_unit_stands_alone):
    targets = awkward.targets(range(6), [419] * 6)
    assert_each_unit_stands_alone(Random(Config()), targets, awkward.context)


def test_at_list_level_the_stream_belongs_to_the_list(world, linear, assert_each_unit_stands_alone):
    setting = world(linear(), [[0, 1, 2], [3]], 12)
    targets = setting.targets([0, 1, 0], [[5, 6], [5, 6], [6, 7]], k=2)
    importances = Random(Config()).importances(targets, setting.context)
    assert not np.array_equal(importances[0], importances[2])
    assert_each_unit_stands_alone(Random(Config()), targets, setting.context)
