from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_explainers_native.personalised_pagerank import ItemProximity
from cfbench_explainers_native.prince import Config, Prince, smallest_sets, without_return
from cfbench_recsys.answers import count_displaced

ALPHA = 0.15


def pagerank_of_user(training, history, removed):
    """(items,) where walks from the user stop: the edges to ``removed`` are gone, those back to the user stay."""
    others, items = training.shape
    nodes = 1 + others + items  # the user, the training users, the items
    edges = np.zeros((nodes, nodes))
    edges[1 : 1 + others, 1 + others :] = training.toarray()
    edges[1 + others :, 1 : 1 + others] = training.toarray().T
    edges[1 + others + np.array(history), 0] = 1
    edges[0, [1 + others + i for i in history if i not in removed]] = 1
    step = edges / np.maximum(edges.sum(axis=1, keepdims=True), 1)
    return ALPHA * np.linalg.inv(np.eye(nodes) - (1 - ALPHA) * step)[0, 1 + others :]


def smallest_by_trying(training, history, item, rival):
    """The size of the smallest set with which the rival passes the item, 0 if it is ahead before, None if none."""
    for size in range(len(history) + 1):
        for removed in combinations(history, size):
            after = pagerank_of_user(training, history, removed)
            if after[rival] - after[item] > 1e-12:
                return size
    return None


def sets_of(training, history, item, rivals, by_lead=False):
    popularity = np.asarray(training.sum(axis=0)).ravel()[list(history)]
    wanted = np.array([item, *rivals])
    proximity = ItemProximity.exact(training, ALPHA)
    q = without_return(proximity, np.array(history), wanted, popularity, ALPHA)
    return smallest_sets(q[:, :1] - q[:, 1:], by_lead=by_lead)


def answer(setting, targets, **options):
    """The removed items of each unit, and the details."""
    given = Prince(Config(**options)).counterfactuals(targets, setting.context)
    edits = given.edits
    assert (edits.ops == -1).all()
    assert (edits.edge_users == targets.users[edits.rows]).all()
    removed = [sorted(edits.edge_items[edits.rows == unit].tolist()) for unit in range(len(targets))]
    return removed, given.details


def test_the_item_that_leads_to_the_explained_one_is_named(world, linear) -> None:
    # Items 0 and 2 are taken together, and 1 and 3. The user has 0 and 1, is recommended 2, and 3 comes next.
    weights = np.zeros((4, 4))
    weights[0, 2], weights[1, 3] = 2.0, 1.0
    training = [[0, 2], [0, 2], [1, 3]]
    setting = world(linear(weights), [[0, 1]], 4, training)
    assert answer(setting, setting.targets([0], [2])) == ([[0]], {"ppr_success": [1.0]})


draws = st.tuples(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 7))


@given(draws)
@settings(max_examples=60, deadline=None)
def test_no_smaller_set_makes_pagerank_prefer_the_replacement(make_world, make_models, given) -> None:
    seed, length, others = given
    draw = np.random.default_rng(seed)
    training = [draw.choice(8, draw.integers(1, 6), replace=False) for _ in range(others)]
    items = draw.permutation(8)
    history, item, rival = sorted(items[:length].tolist()), int(items[-1]), int(items[-2])
    setting = make_world(make_models(8, seed, False), [history], 8, training)
    found = sets_of(setting.training, history, item, [rival])
    smallest = smallest_by_trying(setting.training, history, item, rival)
    if not found:
        assert smallest in (0, None)
    else:
        assert len(found[0]) == smallest
        after = pagerank_of_user(setting.training, history, [history[p] for p in found[0]])
        assert after[rival] > after[item]


def test_smaller_sets_come_first_and_none_twice() -> None:
    differences = np.array([[3.0, 3.0, 1.0, -1.0], [2.0, -1.0, 1.0, 0.0], [-4.0, -1.0, -1.0, 0.0]])
    # Column 0 is 1 to begin with, and below 0 without the first row; so is column 1. Column 2 has a tie: the
    # lower row goes first, and it takes both. Column 3 is below 0 to begin with.
    assert [chosen.tolist() for chosen in smallest_sets(differences)] == [[0], [0, 1]]


@given(draws)
@settings(max_examples=40, deadline=None)
def test_the_published_set_is_the_smallest_with_the_largest_lead(make_world, make_models, given) -> None:
    """Among all sets of the smallest size and all replacements, found by trying them."""
    seed, length, others = given
    draw = np.random.default_rng(seed)
    training = [draw.choice(9, draw.integers(1, 6), replace=False) for _ in range(others)]
    items = draw.permutation(9)
    history, item, rivals = sorted(items[:length].tolist()), int(items[-1]), items[-3:-1].tolist()
    setting = make_world(make_models(9, seed, False), [history], 9, training)
    before = pagerank_of_user(setting.training, history, ())
    rivals = [rival for rival in rivals if before[rival] <= before[item] + 1e-12]
    found = sets_of(setting.training, history, item, rivals, by_lead=True) if rivals else []
    sizes = [smallest_by_trying(setting.training, history, item, rival) for rival in rivals]
    known = [size for size in sizes if size]
    assert bool(found) == bool(known)
    if found:
        size = min(known)
        leads = [
            (after := pagerank_of_user(setting.training, history, removed))[rival] - after[item]
            for removed in combinations(history, size)
            for rival in rivals
        ]
        own = pagerank_of_user(setting.training, history, [history[p] for p in found[0]])
        assert len(found[0]) == size
        assert max(own[rival] - own[item] for rival in rivals) == pytest.approx(max(leads), abs=1e-12)


@pytest.fixture
def shop(world, linear):
    """Sixty users of thirty items, and a recommender of random coefficients: PageRank is often wrong about it."""
    draw = np.random.default_rng(3)
    histories = [draw.choice(30, draw.integers(1, 12), replace=False) for _ in range(25)]
    training = [draw.choice(30, draw.integers(2, 12), replace=False) for _ in range(60)]
    return world(linear(items=30, seed=4), histories, 30, training)


def everything(setting, k):
    lists = setting.lists(k)
    users = np.repeat(np.arange(len(lists)), k)
    return setting.targets(users.tolist(), lists.ravel().tolist(), k)


def test_an_answer_works_on_the_recommender(shop) -> None:
    targets = everything(shop, 3)
    edits = Prince(Config()).counterfactuals(targets, shop.context).edits
    displaced = count_displaced(shop.model, targets, edits, np.arange(len(targets)), shop.profiles)
    assert 0.2 < displaced.mean() < 1
    assert np.array_equal(displaced > 0, edits.counts() > 0)


def test_the_published_set_is_an_answer_whether_it_works_or_not(shop) -> None:
    targets = everything(shop, 3)
    given = Prince(Config(variant="paper")).counterfactuals(targets, shop.context)
    answered = given.edits.counts() > 0
    displaced = count_displaced(shop.model, targets, given.edits, np.arange(len(targets)), shop.profiles) > 0
    assert np.array_equal(answered, given.details["ppr_success"] > 0)
    assert (answered & ~displaced).any()
    assert (answered & displaced).any()


def test_the_published_variant_has_no_attempts() -> None:
    with pytest.raises(UserError, match="attempts: is an option of variant: cfbench"):
        Config(variant="paper", attempts=3)


def test_more_attempts_and_candidates_answer_more(shop) -> None:
    targets = everything(shop, 3)

    def share(**options):
        return np.mean([len(removed) > 0 for removed in answer(shop, targets, **options)[0]])

    assert (
        share(attempts=1, candidates=5) < share(attempts=20, candidates=5) < share(attempts=20, candidates=20)
    )


def test_pagerank_may_succeed_where_the_recommender_does_not(shop) -> None:
    removed, details = answer(shop, everything(shop, 3))
    answered = np.array([len(own) > 0 for own in removed])
    assert (details["ppr_success"][answered] == 1).all()
    assert (details["ppr_success"][~answered] == 1).any()
    assert (details["ppr_success"] == 0).any()


def test_push_answers_as_exact_pagerank_does(shop) -> None:
    targets = everything(shop, 3)
    assert answer(shop, targets, eps=1e-12)[0] == answer(shop, targets)[0]


def test_awkward_users(awkward) -> None:
    targets = everything(awkward, 1)
    removed, details = answer(awkward, targets)
    assert removed[0] == []  # without its only interaction there is no walk
    assert details["ppr_success"][0] == 0
    assert all(set(own) <= set(awkward.profiles[user].indices) for user, own in enumerate(removed))
    assert removed[1] == []  # has everything but one item: nothing can replace it


def test_a_user_without_interactions_has_no_answer_and_changes_none(world, linear) -> None:
    """Alone, and between others, whose answers are those without this user."""
    training = [[0, 2], [0, 2], [1, 3]]
    weights = np.zeros((4, 4))
    weights[0, 2], weights[1, 3] = 2.0, 1.0
    setting = world(linear(weights), [[0, 1], []], 4, training)
    assert answer(setting, setting.targets([1], [2])) == ([[]], {"ppr_success": [0.0]})
    removed, details = answer(setting, setting.targets([1, 0], [2, 2]))
    assert removed == [[], [0]] and details["ppr_success"].tolist() == [0.0, 1.0]


def test_an_item_that_stays_has_no_answer(world, linear) -> None:
    setting = world(linear(bias=[0.0] * 11 + [100.0]), [[0, 1, 2]], 12, [[0, 11], [1, 3], [2, 4]])
    removed, details = answer(setting, setting.targets([0], [11]))
    assert removed == [[]]
    assert details["ppr_success"] == [1.0]


def test_items_that_no_training_user_has(world, linear) -> None:
    setting = world(linear(), [[0, 1, 2]], 12)
    assert answer(setting, setting.targets([0], [5])) == ([[]], {"ppr_success": [0.0]})


def test_each_unit_stands_alone(shop) -> None:
    targets = everything(shop, 3)
    together, details = answer(shop, targets)
    for unit in range(0, len(targets), 7):
        alone, own = answer(shop, targets.take(slice(unit, unit + 1)))
        assert alone[0] == together[unit]
        assert own["ppr_success"][0] == details["ppr_success"][unit]
