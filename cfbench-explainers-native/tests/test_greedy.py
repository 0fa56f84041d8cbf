from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cfbench_explainers_native.greedy import Config, Greedy
from cfbench_explainers_native.leave_one_out import Config as LeaveOneOutConfig
from cfbench_explainers_native.leave_one_out import LeaveOneOut
from cfbench_recsys.scoring import BLOCK

GRID = 2.0**30


def scores_without(setting, user, removed):
    """Whole grid steps of all items; the original history is out of the running."""
    profile = setting.profiles[[user]].tolil()
    profile[0, list(removed)] = 0.0
    scores = np.rint(setting.model.score_profiles(profile.tocsr())[0] * GRID)
    scores[setting.profiles[user].indices] = -np.inf
    return scores


def margin(scores, item, k):
    """Score of the item less that of the K-th best other candidate."""
    return scores[item] - sorted(np.delete(scores, item), reverse=True)[k - 1]


def has_left(scores, item, k):
    ahead = [
        j for j in range(len(scores)) if scores[j] > scores[item] or (scores[j] == scores[item] and j < item)
    ]
    return len(ahead) >= k


def literal_order(setting, user, items, k, steps):
    """The items removed, one after the other, and how many targets are out after each."""
    left, removed, displaced = list(setting.profiles[user].indices), [], []
    while left and len(removed) < steps:

        def mean_margin(item, removed=removed):
            scores = scores_without(setting, user, [*removed, item])
            return sum(margin(scores, target, k) for target in items) / len(items)

        best = min(left, key=mean_margin)
        left.remove(best)
        removed = [*removed, best]
        scores = scores_without(setting, user, removed)
        displaced.append(sum(has_left(scores, target, k) for target in items))
    return removed, displaced


def answer(setting, targets, config=None):
    """The removed items of each unit."""
    edits = Greedy(config or Config()).counterfactuals(targets, setting.context).edits
    assert (edits.ops == -1).all()
    assert (edits.edge_users == targets.users[edits.rows]).all()
    return [set(edits.edge_items[edits.rows == unit].tolist()) for unit in range(len(targets))]


def test_it_removes_what_lowers_the_margin_most_until_the_item_is_out(world, linear):
    # removing 0 costs item 3 one point, and its rival 4 two; removing 1 costs item 3 one point; 2 nothing
    W = np.zeros((5, 5))
    W[0, 3], W[0, 4], W[1, 3] = 1.0, 2.0, 1.0
    setting = world(linear(W, bias=[0, 0, 0, 2.5, 0]), [[0, 1, 2]], 5)
    targets = setting.targets([0], [3])
    assert answer(setting, targets) == [set()], "2.5 against 2 and 0: item 3 cannot be overtaken"
    setting.model.bias[3] = 0.5
    assert answer(setting, targets) == [{1}], "0.5 + 1 against 2; without item 0 the rival would fall too"
    order = Greedy(Config()).importances(targets, setting.context)
    assert order.tolist() == [[0.0, 2.0, 1.0]], "1 first, then 2 (no effect), then 0 (in item 3's favour)"


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 3),
    level=st.sampled_from(["item", "list"]),
    bent=st.booleans(),
)
def test_it_is_the_literal_search(make_world, make_models, seed, k, level, bent):
    draw = np.random.default_rng(seed)
    histories = [draw.choice(9, size, replace=False) for size in draw.integers(1, 6, size=3)]
    setting = make_world(make_models(9, seed, bent), histories, 9)
    lists = setting.lists(k)
    users = [0, 1, 2] if level == "list" else np.repeat([0, 1, 2], k)
    targets = setting.targets(users, lists if level == "list" else lists.ravel(), k)
    steps = int(draw.integers(1, 6))
    found = answer(setting, replace(targets, max_edits=steps))
    importances = Greedy(Config(depth=steps)).importances(targets, setting.context)
    for unit, user in enumerate(targets.users):
        items = targets.items[unit].tolist()
        order, displaced = literal_order(setting, user, items, k, steps)
        most = max(displaced)
        assert found[unit] == (set(order[: displaced.index(most) + 1]) if most else set())
        history = setting.profiles[user].indices
        by_importance = history[np.argsort(-importances[unit, : len(history)], kind="stable")]
        assert by_importance[:steps].tolist() == order


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), bent=st.booleans())
@example(seed=76049, bent=False)  # several removals end in a tie with a rival, which one of them puts first
def test_it_never_beats_the_smallest_counterfactual(make_world, make_models, seed, bent):
    draw = np.random.default_rng(seed)
    setting = make_world(make_models(10, seed, bent), [draw.choice(10, 6, replace=False)], 10)
    item, k = int(setting.lists(2)[0, 1]), 2
    history = setting.profiles[0].indices
    smallest = next(
        (
            size
            for size in range(1, 7)
            if any(
                has_left(scores_without(setting, 0, gone), item, k) for gone in combinations(history, size)
            )
        ),
        None,
    )
    (found,) = answer(setting, setting.targets([0], [item], k))
    if found:
        assert has_left(scores_without(setting, 0, found), item, k)
        assert len(found) >= smallest
    alone = min(margin(scores_without(setting, 0, [gone]), item, k) for gone in history)
    if alone < 0:  # at 0 the margins of several removals may be equal, and the order of the items decides
        assert len(found) == 1, "all single removals are considered"


def test_after_the_last_step_the_order_is_that_of_single_removals(world, linear):
    setting = world(linear(items=30), [range(15)], 30)
    targets = setting.targets([0], [20])
    importances = Greedy(Config(depth=1)).importances(targets, setting.context)[0]
    margins = [margin(scores_without(setting, 0, [item]), 20, 1) for item in range(15)]
    assert np.argsort(-importances).tolist() == np.argsort(margins, kind="stable").tolist()
    assert sorted(importances) == list(range(15))


def test_width_bounds_the_cost_and_a_wide_search_is_the_full_one(world, linear):
    histories = [range(40)]
    costs = {}
    for width in (4, 40, 1000):
        setting = world(linear(items=60), histories, 60)
        targets = setting.targets([0], [50])
        found = Greedy(Config(depth=4, width=width)).importances(targets, setting.context)
        costs[width] = setting.model.scored
        if width >= 40:
            literal, _ = literal_order(setting, 0, [50], 1, 4)
            assert np.argsort(-found[0])[:4].tolist() == literal
    assert costs[4] == costs[40] == costs[1000] == 9 * BLOCK, (
        "the untouched profile; in each step a block, and one for what is reached"
    )


def test_where_the_considered_removals_do_not_lower_the_margin_all_that_are_left_are_tried(
    step_that_pools_miss,
):
    setting, targets = step_that_pools_miss
    assert answer(setting, targets, Config(width=1)) == [{0, 2}]


def test_steps_that_do_not_lower_the_margin_are_counted(world, linear):
    W = np.zeros((5, 5))
    W[[0, 1, 2], 4] = -1.0, -1.0, 0.5  # removing 2 lowers the margin of item 4, 0 and 1 raise it
    setting = world(linear(W, bias=[0, 0, 0, 0, 9.0]), [[0, 1, 2]], 5)
    found = Greedy(Config()).counterfactuals(setting.targets([0], [4]), setting.context)
    assert found.details["ascents"].tolist() == [2] and found.edits.counts().tolist() == [0]


def test_an_item_that_stays_whatever_is_removed_is_answered_with_none(world, linear):
    setting = world(linear(bias=[0] * 11 + [1000.0]), [[0, 1, 2], [5]], 12)
    edits = Greedy(Config()).counterfactuals(setting.targets([0, 1], [11, 11], k=3), setting.context).edits
    assert edits.counts().tolist() == [0, 0]


def test_a_list_that_cannot_leave_entirely_is_displaced_as_far_as_possible(world, linear):
    W = np.zeros((7, 7))
    W[0, 3], W[1, 4] = 5.0, 1.0
    setting = world(linear(W, bias=[0, 0, 0, 0, 3.0, 1.5, 1.0]), [[0, 1, 2]], 7)
    targets = setting.targets([0], [[3, 4]], k=2)
    assert setting.lists(2).tolist() == [[3, 4]]
    assert answer(setting, targets) == [{0}], "item 3 falls to 0, below item 5; item 4 falls to 3, and stays"
    setting.model.bias[5:] = -1.0
    assert answer(setting, targets) == [set()], "items 5 and 6 are below both, whatever is removed"


def test_fewer_candidates_than_places_can_never_push_an_item_out(world, linear):
    setting = world(linear(items=6), [range(4)], 6)
    targets = setting.targets([0], [5], k=3)
    assert answer(setting, targets) == [set()]
    assert np.isfinite(Greedy(Config()).importances(targets, setting.context)).all()


@pytest.mark.parametrize("method", ["importances", "counterfactuals"])
def test_awkward_users_stand_alone(awkward, curved, method):
    setting = type(awkward)(curved(420, 1), awkward.profiles, awkward.training)
    targets = setting.targets([0, 2, 2, 3, 4, 5], [419, 401, 402, 419, 419, 410], k=3)
    targets = replace(targets, max_edits=3)
    explainer = Greedy(Config(depth=3))
    if method == "importances":
        together = explainer.importances(targets, setting.context)
        for unit in range(len(targets)):
            alone = explainer.importances(targets.take(slice(unit, unit + 1)), setting.context)[0]
            assert np.array_equal(together[unit, : len(alone)], alone)
        return
    together = answer(setting, targets)
    assert [answer(setting, targets.take([unit]))[0] for unit in range(6)] == together
    assert together[3] == together[4], "the same interactions, the same answer"


def test_the_first_removal_of_a_long_history_is_the_best_single_one(awkward):
    targets = awkward.targets([1], [419])
    order = Greedy(Config(depth=2, width=2)).importances(targets, awkward.context)[0]
    drops = LeaveOneOut(LeaveOneOutConfig()).importances(targets, awkward.context)[0]
    assert order.argmax() == drops.argmax(), "item 419 is the only candidate, without a rival"
