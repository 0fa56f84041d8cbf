"""Greedy edits: an addition that displaces by hand, the literal search, and what it may add."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cfbench_explainers_native.greedy_edits import Config, GreedyEdits
from cfbench_recsys.edits import ADD, REMOVE

GRID = 2.0**30


def targets_of(setting, users, items, k=1, additions=True):
    return replace(setting.targets(users, items, k), additions=additions)


def answer(setting, targets, config=None):
    """The edits of each unit as a list of (item, op)."""
    edits = GreedyEdits(config or Config()).counterfactuals(targets, setting.context).edits
    assert (edits.edge_users == targets.users[edits.rows]).all()
    pairs = list(zip(edits.rows.tolist(), edits.edge_items.tolist(), edits.ops.tolist(), strict=True))
    return [[(item, op) for row, item, op in pairs if row == unit] for unit in range(len(targets))]


def test_adding_one_item_displaces_what_two_removals_would(world, linear):
    # Item 3 scores 2 from items 0 and 1; item 4 scores 1.5; adding item 4 takes 5 from item 3.
    weights = np.zeros((5, 5))
    weights[0, 3] = weights[1, 3] = 1.0
    weights[2, 4] = 1.5
    weights[4, 3] = -5.0
    setting = world(linear(weights), [[0, 1, 2]], 5)
    assert answer(setting, targets_of(setting, [0], [3])) == [[(4, ADD)]]
    assert answer(setting, targets_of(setting, [0], [3], additions=False)) == [[(0, REMOVE)]]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bent", [False, True])
def test_it_is_the_literal_forward_search(make_world, make_models, seed, bent):
    items, k, extra = 9, 2, 3
    setting = make_world(make_models(items, seed, bent), [[0, 2, 3], [1, 4, 5, 6]], items)
    lists = setting.lists(k)
    targets = targets_of(setting, [0, 1], lists[:, 0], k)
    config = Config(additions=extra, width=50)
    found = answer(setting, replace(targets, max_edits=4), config)
    for user in (0, 1):
        assert sorted(found[user]) == sorted(literal(setting, user, int(lists[user, 0]), k, extra, 4))


def literal(setting, user, target, k, extra, steps):
    history = sorted(setting.profiles[user].indices.tolist())

    def scores(edits):
        profile = np.zeros(setting.profiles.shape[1])
        profile[history] = 1.0
        for item, op in edits:
            profile[item] = op == ADD
        found = np.rint(setting.model.score_profiles(type(setting.profiles)(profile[None]))[0] * GRID)
        found[history] = -np.inf
        return found

    def ranking(edits):
        found = scores(edits)
        return sorted((i for i in range(len(found)) if i not in history), key=lambda i: (-found[i], i))

    def margin(edits):
        found = scores(edits)
        return found[target] - sorted(np.delete(found, target), reverse=True)[k - 1]

    next_items = [item for item in ranking([])[k : k + extra] if item != target]
    candidates = [(item, REMOVE) for item in history] + [(item, ADD) for item in next_items]
    edits: list[tuple[int, int]] = []
    for _ in range(steps):
        left = [candidate for candidate in candidates if candidate not in edits]
        if not left:
            break
        edits = [*edits, min(left, key=lambda candidate: margin([*edits, candidate]))]
        if ranking(edits).index(target) >= k:
            return edits
    return []


def test_nothing_is_answered_where_no_edit_displaces(world, linear):
    setting = world(linear(np.zeros((4, 4)), bias=[0.0, 9.0, 0.0, 0.0]), [[0]], 4)
    assert answer(setting, targets_of(setting, [0], [1])) == [[]]


def test_where_the_considered_edits_do_not_lower_the_margin_all_that_are_left_are_tried(step_that_pools_miss):
    setting, targets = step_that_pools_miss
    assert answer(setting, targets, Config(width=1)) == [[(0, REMOVE), (2, REMOVE)]]


def test_a_list_is_displaced_as_far_as_possible(world, linear):
    # Items 2 and 3 lead; adding item 4 takes 9 from both, and items 5 and 6 then lead.
    weights = np.zeros((7, 7))
    weights[0, 2] = weights[0, 3] = 3.0
    weights[4, 2] = weights[4, 3] = -9.0
    weights[0, 4] = 1.0
    setting = world(linear(weights, bias=[0, 0, 0, 0, 0, 0.5, 0.5]), [[0, 1]], 7)
    assert answer(setting, targets_of(setting, [0], [[2, 3]], k=2)) in ([[(4, ADD)]], [[(0, REMOVE)]])
