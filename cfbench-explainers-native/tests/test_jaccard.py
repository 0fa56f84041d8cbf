from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_explainers_native.jaccard import Config, Jaccard


def test_similar_items_share_their_users(world, linear):
    setting = world(linear(items=4), [[0, 1, 2]], 4, training=[[0, 3], [0, 3], [1, 3], [0], [3]])
    importances = Jaccard(Config()).importances(setting.targets([0], [3]), setting.context)
    assert importances[0] == pytest.approx([2 / 5, 1 / 4, 0.0])


@given(
    training=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=12),
    history=st.sets(st.integers(0, 7), min_size=1),
    items=st.lists(st.integers(0, 7), min_size=1, max_size=3),
)
def test_it_is_the_share_of_common_users_among_all(make_world, training, history, items):
    setting = make_world(None, [history], 8, training)
    targets = setting.targets([0], [items], k=len(items))
    importances = Jaccard(Config()).importances(targets, setting.context)[0]
    users = [{user for user, taken in enumerate(training) if item in taken} for item in range(8)]
    for place, item in enumerate(sorted(history)):
        indices = []
        for target in items:
            either = users[item] | users[target]
            indices.append(len(users[item] & users[target]) / len(either) if either else 0.0)
        assert importances[place] == pytest.approx(np.mean(indices))


def test_awkward_users_stand_alone(awkward, assert_each_unit_stands_alone):
    targets = awkward.targets([*range(6), 2, 2], [419] * 6 + [401, 402])
    assert_each_unit_stands_alone(Jaccard(Config()), targets, awkward.context)
    assert not Jaccard(Config()).importances(targets, awkward.context)[:6].any(), "no user has item 419"
