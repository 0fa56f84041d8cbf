from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_explainers_native.linear_sums import Sums
from cfbench_explainers_native.smallest import Config, Smallest
from cfbench_explainers_native.smallest_sets import smallest_set


def answer(setting, targets, **options):
    """The removed items of each unit, and what is proven."""
    found = Smallest(Config(**options)).counterfactuals(targets, setting.context)
    edits = found.edits
    assert (edits.ops == -1).all()
    assert (edits.edge_users == targets.users[edits.rows]).all()
    removed = [set(edits.edge_items[edits.rows == unit].tolist()) for unit in range(len(targets))]
    return removed, found.details["none_up_to"].tolist(), found.details["proven"].tolist()


def test_each_rival_bounds_the_size_and_two_together_may_need_more(world, linear):
    """K = 2: rival 5 gets ahead without 0, rival 6 without 1; both only without both."""
    W = np.zeros((7, 7))
    W[0, 5], W[1, 6] = -2.0, -2.0
    W[2, 5], W[3, 6] = -0.5, -0.5
    setting = world(linear(W, bias=[0, 0, 0, 0, 0.5, 1.5, 1.5]), [[0, 1, 2, 3]], 7)
    assert answer(setting, setting.targets([0], [4])) == ([{0}], [0.0], [1.0]), "K = 1: one rival will do"
    assert answer(setting, setting.targets([0], [4], k=2)) == ([{0, 1}], [1.0], [1.0])
    assert answer(setting, setting.targets([0], [4], k=3)) == ([set()], [4.0], [1.0]), "there are two rivals"


def test_rivals_that_exclude_each_other_are_proven_to(world, linear):
    """K = 2: what brings one rival ahead puts the other behind, so no set of any size brings both."""
    W = np.zeros((5, 5))
    W[0, 3], W[0, 4] = -2.0, 2.0
    setting = world(linear(W, bias=[0, 0, 1.0, 2.5, 0.5]), [[0, 1]], 5)
    assert answer(setting, setting.targets([0], [2], k=2)) == ([set()], [2.0], [1.0])


def test_a_rival_that_needs_many_removals_alone_may_be_the_second(world, linear):
    """K = 2: 6 removals bring rival 13 ahead, 6 others rival 14; rival 15 needs 9 of any, so that 9 do for two."""
    W = np.zeros((16, 16))
    W[0:6, 13], W[6:12, 14], W[0:12, 15] = -1.0, -1.0, -1.0
    setting = world(linear(W, bias=[0] * 12 + [2.5, 3.0, 3.0, 6.0]), [range(12)], 16)
    (removed,), none_up_to, proven = answer(setting, setting.targets([0], [12], k=2))
    assert (len(removed), none_up_to, proven) == (9, [8.0], [1.0])


class Nobody:
    """A recommender that need not be queried: nothing ties."""

    sets = 0

    queries = 0

    def displaces(self, places):
        raise AssertionError("queried, though the sums decide")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 4),
    budget=st.sampled_from([0, 30, 300_000]),
    nodes=st.sampled_from([0, 1_000]),
)
def test_large_sets_too_are_brute_force(seed, k, budget, nodes):
    """Eleven interactions that each do little, so that most sets are large."""
    draw = np.random.default_rng(seed)
    gains = draw.normal(loc=0.5, size=(9, 11))
    sums = Sums(gains, draw.uniform(1.0, 8.0, size=9), k, 1e-9)
    possible = np.maximum(gains, 0).sum(axis=1) >= sums.needed
    sums = sums.among(np.flatnonzero(possible))
    subsets = (np.arange(2**11)[:, None] >> np.arange(11)) % 2
    succeeds = (subsets @ sums.gains.T >= sums.needed).sum(axis=1) >= k
    size = subsets.sum(axis=1)[succeeds].min() if succeeds.any() else None
    found, none_up_to = smallest_set(sums, Nobody(), 11, budget, width=2, nodes=nodes)
    if found is not None:
        assert size is not None and len(found) >= size
    assert none_up_to < (12 if size is None else size), "a set that works was excluded"
    if budget == 300_000:
        assert (None if found is None else len(found)) == size
        assert none_up_to == (11 if size is None else size - 1)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), width=st.integers(1, 4), coarse=st.booleans())
def test_it_is_brute_force(
    make_world, make_models, smallest_by_brute_force, count_gone, seed, k, width, coarse
):
    """On weights in quarters ties abound; on normal ones there are none."""
    draw = np.random.default_rng(seed)
    histories = [draw.choice(12, size, replace=False) for size in draw.integers(1, 7, size=2)]
    model = make_models(12, seed, False)
    if not coarse:
        model.W = draw.normal(size=(12, 12))
    setting = make_world(model, histories, 12)
    targets = setting.targets(np.repeat([0, 1], k), setting.lists(k).ravel(), k)
    found, none_up_to, proven = answer(setting, targets, width=width)
    for unit, user in enumerate(targets.users):
        item = targets.items[unit].tolist()
        most, size = smallest_by_brute_force(setting, user, item, k)
        assert len(found[unit]) == size
        assert count_gone(setting, user, found[unit], item, k) == most
        assert proven[unit]
        assert none_up_to[unit] == (size - 1 if most else len(histories[user]))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.integers(0, 40))
def test_without_budget_its_certificate_is_still_true(
    make_world, make_models, smallest_by_brute_force, seed, budget
):
    draw = np.random.default_rng(seed)
    model = make_models(14, seed, False)
    model.W = draw.normal(size=(14, 14))
    setting = make_world(model, [draw.choice(14, 7, replace=False)], 14)
    targets = setting.targets([0] * 3, setting.lists(3)[0], 3)
    found, none_up_to, proven = answer(setting, targets, width=1, budget=budget, nodes=0)
    for unit in range(3):
        most, size = smallest_by_brute_force(setting, 0, targets.items[unit].tolist(), 3)
        assert none_up_to[unit] <= (size - 1 if most else 7)
        assert not found[unit] or len(found[unit]) >= size
        assert not proven[unit] or len(found[unit]) == size


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), coarse=st.booleans())
def test_the_integer_programme_is_brute_force_too(
    make_world, make_models, smallest_by_brute_force, seed, k, coarse
):
    """Without any search before it. What hangs on a tie it cannot prove, and does not claim to."""
    draw = np.random.default_rng(seed)
    model = make_models(12, seed, False)
    if not coarse:
        model.W, model.bias = draw.normal(size=(12, 12)), draw.normal(size=12)
    setting = make_world(model, [draw.choice(12, 6, replace=False)], 12)
    targets = setting.targets([0] * k, setting.lists(k).ravel(), k)
    found, none_up_to, proven = answer(setting, targets, width=1, budget=0)
    for unit in range(k):
        most, size = smallest_by_brute_force(setting, 0, targets.items[unit].tolist(), k)
        assert none_up_to[unit] <= (size - 1 if most else 6)
        assert proven[unit] or coarse
        if proven[unit]:
            assert len(found[unit]) == size


def test_ties_on_the_grid_are_left_to_the_recommender(world, linear):
    """Rival 2 comes to the same score as item 3, and is ahead by its index; rival 4 is behind by its own."""
    W = np.zeros((5, 5))
    W[0, 3] = 1.0
    setting = world(linear(W, bias=[0, 0, 0, 0, -1.0]), [[0, 1]], 5)
    assert answer(setting, setting.targets([0], [3])) == ([{0}], [0.0], [1.0])
    setting = world(linear(W, bias=[0, 0, -1.0, 0, 0.0]), [[0, 1]], 5)
    assert answer(setting, setting.targets([0], [3])) == ([set()], [2.0], [1.0])
    step = 2.0**-30
    setting = world(linear(W, bias=[0, 0, -1.0, 0, 0.4 * step]), [[0, 1]], 5)
    assert answer(setting, setting.targets([0], [3])) == ([set()], [2.0], [1.0]), (
        "less than half a step: a tie"
    )
    setting = world(linear(W, bias=[0, 0, -1.0, 0, step]), [[0, 1]], 5)
    assert answer(setting, setting.targets([0], [3])) == ([{0}], [0.0], [1.0])


def test_where_everything_ties_it_claims_nothing_that_it_did_not_see(world, linear):
    setting = world(linear(np.zeros((60, 60))), [range(20)], 60)
    (removed,), (none_up_to,), (proven,) = answer(setting, setting.targets([0], [22], k=5))
    assert not removed
    assert none_up_to < 20
    assert not proven
    assert setting.model.scored < 64 * 1000, "it soon stops querying"


def test_awkward_users_stand_alone(awkward):
    """One interaction, 150, and 419: the last has one candidate, which cannot leave."""
    targets = awkward.targets([0, 1, 2, 2, 3, 4, 5], [419, 419, 401, 402, 419, 419, 410], k=3)
    together = list(zip(*answer(awkward, targets, budget=2000, nodes=0), strict=True))
    for unit in range(len(targets)):
        alone = list(zip(*answer(awkward, targets.take([unit]), budget=2000, nodes=0), strict=True))
        assert alone == [together[unit]]
    assert together[1] == (set(), 419.0, 1.0)


def test_a_user_of_eight_hundred_interactions(world, linear):
    setting = world(linear(items=1000), [range(800)], 1000)
    targets = setting.targets([0] * 5, setting.lists(5)[0], 5)
    found, none_up_to, _ = answer(setting, targets, budget=20_000, nodes=0)
    for removed, none in zip(found, none_up_to, strict=True):
        assert removed
        assert none < len(removed)
