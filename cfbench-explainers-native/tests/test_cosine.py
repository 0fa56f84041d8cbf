from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_explainers_native.cosine import Config, Cosine


def test_similar_items_share_their_users(world, linear):
    setting = world(linear(items=4), [[0, 1, 2]], 4, training=[[0, 3], [0, 3], [1, 3], [0], [3]])
    importances = Cosine(Config()).importances(setting.targets([0], [3]), setting.context)
    assert importances[0] == pytest.approx([2 / np.sqrt(3 * 4), 1 / np.sqrt(1 * 4), 0.0])


@given(
    training=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=12),
    history=st.sets(st.integers(0, 7), min_size=1),
    items=st.lists(st.integers(0, 7), min_size=1, max_size=3),
)
def test_it_is_the_cosine_of_the_sets_of_users(make_world, training, history, items):
    setting = make_world(None, [history], 8, training)
    targets = setting.targets([0], [items], k=len(items))
    importances = Cosine(Config()).importances(targets, setting.context)[0]
    users = [{user for user, taken in enumerate(training) if item in taken} for item in range(8)]
    for place, item in enumerate(sorted(history)):
        cosines = []
        for target in items:
            sizes = len(users[item]) * len(users[target])
            cosines.append(len(users[item] & users[target]) / np.sqrt(sizes) if sizes else 0.0)
        assert importances[place] == pytest.approx(np.mean(cosines))


@pytest.mark.parametrize("bytes_for_all_items", [2**28, 0], ids=["all items once", "those of the batch"])
def test_many_users_and_items(world, linear, monkeypatch, bytes_for_all_items):
    monkeypatch.setattr("cfbench_explainers_native.shared.ALL_ITEMS", bytes_for_all_items)
    draw = np.random.default_rng(0)
    training = [draw.choice(150, draw.integers(30), replace=False) for _ in range(300)]
    setting = world(linear(items=150), [range(5)], 150, training)
    importances = Cosine(Config()).importances(setting.targets([0] * 140, range(10, 150)), setting.context)
    X = setting.training.toarray()
    norms = np.sqrt((X**2).sum(axis=0))
    expected = (X.T @ X / np.maximum(norms[:, None] * norms, 1e-12))[:5, 10:].T
    assert importances == pytest.approx(expected)


def test_awkward_users_stand_alone(awkward, assert_each_unit_stands_alone):
    targets = awkward.targets([*range(6), 2, 2], [419] * 6 + [401, 402])
    assert_each_unit_stands_alone(Cosine(Config()), targets, awkward.context)
    assert not Cosine(Config()).importances(targets, awkward.context)[:6].any(), "no user has item 419"
