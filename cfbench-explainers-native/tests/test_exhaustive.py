from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_explainers_native.exhaustive import Config, Exhaustive
from cfbench_explainers_native.greedy import Config as GreedyConfig
from cfbench_explainers_native.greedy import Greedy
from cfbench_recsys.recommenders.popularity import Config as PopularityConfig
from cfbench_recsys.recommenders.popularity import Popularity
from cfbench_recsys.scoring import counted


class OnlyScores:
    """The same recommender, which does not say that it is linear."""

    def __init__(self, model):
        self.score_profiles = model.score_profiles


def answer(setting, targets, config=None):
    """The removed items of each unit, and what is proven."""
    found = Exhaustive(config or Config()).counterfactuals(targets, setting.context)
    edits = found.edits
    assert (edits.ops == -1).all()
    assert (edits.edge_users == targets.users[edits.rows]).all()
    removed = [set(edits.edge_items[edits.rows == unit].tolist()) for unit in range(len(targets))]
    return removed, found.details["none_up_to"].tolist(), found.details["proven"].tolist()


@pytest.fixture(params=["linear", "scores"])
def pair(request, world, linear):
    """Item 3 leads item 4 by 1.4; removing 0, 1 or 2 takes 0.5, 0.75 or 0.75 from the lead."""
    W = np.zeros((5, 5))
    W[0, 3], W[1, 3], W[2, 3] = 1.0, 0.75, 0.75
    W[0, 4] = 0.5  # of the point that item 3 loses with 0, item 4 loses a half
    setting = world(linear(W, bias=[0, 0, 0, 0.0, 0.6]), [[0, 1, 2]], 5)
    return setting if request.param == "linear" else replace(setting, model=OnlyScores(setting.model))


def test_it_names_the_smallest_set_and_proves_it(pair):
    assert answer(pair, pair.targets([0], [3])) == ([{1, 2}], [1.0], [1.0])


def test_up_to_a_size_too_small_it_returns_no_answer_and_its_limit(pair):
    assert answer(pair, pair.targets([0], [3]), Config(max_size=1)) == ([set()], [1.0], [0.0])


def test_a_spent_budget_is_reported(pair):
    """Of the sets {0} {1} {2} {0 1} {0 2} {1 2} the last one works."""
    pair = replace(pair, model=OnlyScores(pair.model))
    targets = pair.targets([0], [3])
    assert answer(pair, targets, Config(budget=6)) == ([{1, 2}], [1.0], [1.0])
    assert answer(pair, targets, Config(budget=5)) == ([set()], [1.0], [0.0])
    assert answer(pair, targets, Config(budget=3)) == ([set()], [1.0], [0.0])
    assert answer(pair, targets, Config(budget=2)) == ([set()], [0.0], [0.0])


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 3),
    level=st.sampled_from(["item", "list"]),
    kind=st.sampled_from(["linear", "scores", "bent"]),
    max_size=st.integers(1, 5),
)
def test_it_is_brute_force(
    make_world, make_models, smallest_by_brute_force, count_gone, seed, k, level, kind, max_size
):
    draw = np.random.default_rng(seed)
    histories = [draw.choice(9, size, replace=False) for size in draw.integers(1, 6, size=3)]
    setting = make_world(make_models(9, seed, kind == "bent"), histories, 9)
    if kind == "scores":
        setting = replace(setting, model=OnlyScores(setting.model))
    lists = setting.lists(k)
    users = [0, 1, 2] if level == "list" else np.repeat([0, 1, 2], k)
    targets = setting.targets(users, lists if level == "list" else lists.ravel(), k)
    found, none_up_to, proven = answer(setting, targets, Config(max_size=max_size))
    for unit, user in enumerate(targets.users):
        items, length = targets.items[unit].tolist(), len(histories[user])
        most, size = smallest_by_brute_force(setting, user, items, k, max_size)
        at_all = smallest_by_brute_force(setting, user, items, k)
        assert len(found[unit]) == size
        assert count_gone(setting, user, found[unit], items, k) == most
        up_to = int(none_up_to[unit])
        better = smallest_by_brute_force(setting, user, items, k, up_to)
        assert better[0] <= most, "nothing of that size displaces more"
        assert up_to >= length or size == 0 or better[0] < most or better[1] >= size, "nor as many with fewer"
        if proven[unit]:
            assert (most, size) == at_all
        if most == len([item for item in items if item >= 0]):
            assert (up_to, proven[unit]) == (size - 1, 1)
        elif max_size >= length:
            assert proven[unit], "all sets were tested"


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), level=st.sampled_from(["item", "list"]), declared=st.booleans())
def test_an_attribute_called_weights_does_not_make_a_recommender_linear(
    make_world, strongest, smallest_by_brute_force, count_gone, seed, level, declared
):
    """Whether its access is known, as in a run, or follows from its methods, as in a test of a plugin."""
    draw = np.random.default_rng(seed)
    setting = make_world(strongest(8, seed), [draw.choice(8, 4, replace=False)], 8)
    context = replace(setting.context, access=frozenset({"scores"}) if declared else None)
    lists = setting.lists(2)
    targets = setting.targets([0, 0], lists[0], 2) if level == "item" else setting.targets([0], lists, 2)
    found = Exhaustive(Config(max_size=4)).counterfactuals(targets, context)
    for unit in range(len(targets)):
        items = targets.items[unit].tolist()
        removed = found.edits.edge_items[found.edits.rows == unit].tolist()
        most, size = smallest_by_brute_force(setting, 0, items, 2)
        assert (count_gone(setting, 0, removed, items, 2), len(removed)) == (most, size)
        assert found.details["proven"][unit] == 1.0


def test_a_method_called_weights_counts_only_if_the_recommender_declares_it(world, linear):
    """Linear sums need a query for each single removal and none for sets; of sets, each is one."""
    setting = world(linear(np.eye(5), bias=[0, 0, 0, 0.0, 0.6]), [[0, 1, 2]], 5)
    targets = setting.targets([0], [3])
    sets = {}
    for access in (frozenset({"scores"}), frozenset({"scores", "weights"}), None):
        context = replace(setting.context, access=access)
        sets[access] = "sets" in Exhaustive(Config()).counterfactuals(targets, context).details
    assert list(sets.values()) == [False, True, True]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), bent=st.booleans(), level=st.sampled_from(["item", "list"]))
def test_greedy_is_never_better(make_world, make_models, count_gone, seed, bent, level):
    draw = np.random.default_rng(seed)
    setting = make_world(make_models(12, seed, bent), [draw.choice(12, 7, replace=False)], 12)
    lists = setting.lists(2)
    targets = setting.targets([0, 0], lists[0], 2) if level == "item" else setting.targets([0], lists, 2)
    found, _, _ = answer(setting, targets, Config(max_size=7))
    greedy = Greedy(GreedyConfig()).counterfactuals(targets, setting.context).edits
    for unit in range(len(targets)):
        items = targets.items[unit].tolist()
        other = set(greedy.edge_items[greedy.rows == unit].tolist())
        ours, theirs = (count_gone(setting, 0, s, items, 2) for s in (found[unit], other))
        assert (ours, -len(found[unit])) >= (theirs, -len(other))


@pytest.mark.parametrize("level", ["item", "list"])
def test_awkward_users_stand_alone(awkward, curved, level):
    """One interaction, 150, and 419; whatever else is in the batch. The budget ends most searches."""
    setting = type(awkward)(curved(420, 1), awkward.profiles, awkward.training)
    targets = setting.targets([0, 1, 2, 2, 3, 4, 5], [419, 419, 401, 402, 419, 419, 410], k=3)
    if level == "list":
        targets = setting.targets(range(6), setting.lists(3), k=3)
    config = Config(budget=600)
    together = list(zip(*answer(setting, targets, config), strict=True))
    for unit in range(len(targets)):
        alone = list(zip(*answer(setting, targets.take([unit]), config), strict=True))
        assert alone == [together[unit]]


def test_an_item_that_stays_whatever_is_removed_is_proven_to(world, linear):
    setting = world(linear(bias=[0] * 11 + [1000.0]), [[0, 1, 2, 3, 4, 6], [5]], 12)
    targets = setting.targets([0, 1], [11, 11], k=3)
    assert answer(setting, targets) == ([set(), set()], [6.0, 1.0], [1.0, 1.0]), (
        "by the lower bound, at any size"
    )
    blind = replace(setting, model=OnlyScores(setting.model))
    assert answer(blind, targets) == ([set(), set()], [3.0, 1.0], [0.0, 1.0]), "up to max_size"


def test_all_items_of_a_user_share_the_sets(world, curved):
    class Counting:
        scored = 0

        def __init__(self, model):
            self.model = model

        def score_profiles(self, profiles):
            self.scored += profiles.shape[0]
            return self.model.score_profiles(profiles)

    costs = []
    for units in (1, 5):
        setting = world(Counting(curved(60, 3)), [range(12)], 60)
        targets = setting.targets([0] * units, list(setting.lists(5)[0][:units]), k=60)
        answer(setting, targets)
        costs.append(setting.model.scored)
    assert costs[0] == costs[1], "no item leaves a list of all items: each set is tested once"


@pytest.mark.parametrize("level", ["item", "list"])
def test_for_the_recommender_popularity_it_proves_without_a_search_that_there_is_no_answer(world, level):
    """A history of 60 has more than 36,000 sets of at most three; the weights are 0, so none need be tested."""
    model = Popularity(PopularityConfig())
    model.load_state({"count": np.arange(70.0)}, sparse.csr_matrix((1, 70)))
    setting = world(counted(model), [range(60)], 70)
    items = [69] if level == "item" else [[69, 68]]
    answer = Exhaustive(Config()).counterfactuals(setting.targets([0], items, k=2), setting.context)
    assert answer.edits.counts().tolist() == [0]
    assert answer.details["proven"].tolist() == [1.0]
    assert answer.details["none_up_to"].tolist() == [60.0]
    assert setting.model.queries <= 61
