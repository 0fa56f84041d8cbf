from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_explainers_native.beam import Beam, Config
from cfbench_explainers_native.greedy import Config as GreedyConfig
from cfbench_explainers_native.greedy import Greedy


def removed(edits, targets):
    """The removed items of each unit."""
    assert (edits.ops == -1).all()
    assert (edits.edge_users == targets.users[edits.rows]).all()
    return [set(edits.edge_items[edits.rows == unit].tolist()) for unit in range(len(targets))]


def answer(setting, targets, **options):
    return removed(Beam(Config(**options)).counterfactuals(targets, setting.context).edits, targets)


def greedy(setting, targets, **options):
    return removed(Greedy(GreedyConfig(**options)).counterfactuals(targets, setting.context).edits, targets)


def test_it_finds_sets_that_greedy_misses(world, linear):
    """Item 6 lacks 2.0 to item 5, and 1.0, 0.6 and 0.6 come by 0, 1 and 2; item 7 lacks 2.08, 1.05 by 3 or 4."""
    W = np.zeros((8, 8))
    W[[0, 1, 2], 6] = -1.0, -0.6, -0.6
    W[[3, 4], 7] = -1.05
    setting = world(linear(W, bias=[0, 0, 0, 0, 0, 0, 0.2, 0.02]), [[0, 1, 2, 3, 4]], 8)
    targets = setting.targets([0], [5])
    assert greedy(setting, targets) == [{0, 1, 2}], "0 lowers the margin most, and then 1"
    assert answer(setting, targets, width=2) == [{3, 4}]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 3),
    level=st.sampled_from(["item", "list"]),
    bent=st.booleans(),
)
def test_narrow_it_is_greedy_and_wide_it_is_exhaustive(
    make_world, make_models, smallest_by_brute_force, count_gone, seed, k, level, bent
):
    draw = np.random.default_rng(seed)
    histories = [draw.choice(9, size, replace=False) for size in draw.integers(1, 6, size=3)]
    setting = make_world(make_models(9, seed, bent), histories, 9)
    lists = setting.lists(k)
    users = [0, 1, 2] if level == "list" else np.repeat([0, 1, 2], k)
    targets = setting.targets(users, lists if level == "list" else lists.ravel(), k)
    steps = int(draw.integers(1, 6))
    limited = replace(targets, max_edits=steps)
    assert answer(setting, limited, width=1) == greedy(setting, limited)
    wide = answer(setting, limited, width=1000)
    for unit, user in enumerate(targets.users):
        items = targets.items[unit].tolist()
        most, size = smallest_by_brute_force(setting, user, items, k, steps)
        assert len(wide[unit]) == size
        assert count_gone(setting, user, wide[unit], items, k) == most


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 6), bent=st.booleans())
def test_its_answers_work(make_world, make_models, smallest_by_brute_force, count_gone, seed, width, bent):
    draw = np.random.default_rng(seed)
    setting = make_world(make_models(12, seed, bent), [draw.choice(12, 7, replace=False)], 12)
    item = int(setting.lists(2)[0, 1])
    (found,) = answer(setting, setting.targets([0], [item], 2), width=width)
    most, size = smallest_by_brute_force(setting, 0, [item], 2)
    if found:
        assert count_gone(setting, 0, found, [item], 2) == 1
        assert len(found) >= size
    if size == 1:
        assert len(found) == 1 or width < 7, "all single removals are considered"
    if not most:
        assert not found


def test_an_item_that_stays_whatever_is_removed_is_answered_with_none(world, linear):
    setting = world(linear(bias=[0] * 11 + [1000.0]), [[0, 1, 2], [5]], 12)
    assert answer(setting, setting.targets([0, 1], [11, 11], k=3)) == [set(), set()]


def test_fewer_candidates_than_places_can_never_push_an_item_out(world, linear):
    setting = world(linear(items=6), [range(4)], 6)
    assert answer(setting, setting.targets([0], [5], k=3)) == [set()]


def test_where_the_pool_does_not_lower_the_margin_all_that_is_left_is_tried(step_that_pools_miss):
    setting, targets = step_that_pools_miss
    assert answer(setting, targets, width=1, pool=1) == [{0, 2}]
    found = Beam(Config(width=1, pool=1)).counterfactuals(targets, setting.context)
    assert found.details["ascents"].tolist() == [0]


def test_awkward_users_stand_alone(awkward, curved):
    setting = type(awkward)(curved(420, 1), awkward.profiles, awkward.training)
    targets = setting.targets([0, 1, 2, 2, 3, 4, 5], [419, 419, 401, 402, 419, 419, 410], k=3)
    targets = replace(targets, max_edits=3)
    options = {"width": 3, "pool": 8}
    together = answer(setting, targets, **options)
    assert [answer(setting, targets.take([unit]), **options)[0] for unit in range(7)] == together
    assert together[4] == together[5], "the same interactions, the same answer"
