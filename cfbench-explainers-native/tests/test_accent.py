from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import spearmanr

from cfbench_core.api import prepare
from cfbench_core.errors import UserError
from cfbench_explainers_native.accent import Accent, Config
from cfbench_recsys.edits import Edits
from cfbench_recsys.scoring import BLOCK, target_ranks
from cfbench_recsys.targets import Targets
from cfbench_recsys.testing.models import kit_models
from cfbench_recsys.testing.world import interactions

EFFECTS = ("leave-one-out", "input-gradient", "influence", "refit")


class Towers:
    """Logit (x P + b) . q, as MF; ``bent``: tanh of the tower, and a bias of each item by a constant coordinate."""

    def __init__(self, items, dimensions=4, seed=0, bent=False):
        draw = np.random.default_rng(seed)
        self.P, self.b = draw.normal(size=(items, dimensions)), draw.normal(size=dimensions) / 4
        self.Q = draw.normal(size=(items, dimensions + bent))
        self.bent = bent

    def profile_embeddings(self, profiles):
        towers = profiles @ self.P + self.b
        return np.hstack([np.tanh(towers), np.ones((len(towers), 1))]) if self.bent else towers

    def item_embeddings(self):
        return self.Q.copy()

    def score_profiles(self, profiles):
        return self.profile_embeddings(profiles) @ self.Q.T

    def score_dense(self, profiles):
        import torch

        towers = profiles @ torch.from_numpy(self.P) + torch.from_numpy(self.b)
        if self.bent:
            towers = torch.cat([towers.tanh(), torch.ones(len(towers), 1, dtype=torch.float64)], dim=1)
        return towers @ torch.from_numpy(self.Q.T)


def explain(setting, targets, **options):
    return Accent(Config(**options)).importances(targets, setting.context)


def answer(setting, targets, **options):
    """The edits, and how many items of each target really leave the top K."""
    edits = Accent(Config(**options)).counterfactuals(targets, setting.context)
    units = np.arange(len(targets))
    ranks = target_ranks(setting.model, edits, targets, units, setting.profiles)
    return edits, (ranks > targets.k).sum(axis=1)


# Items 0-2 are the history; 3 is recommended, 4 and 5 are below it.
BY_HAND = np.zeros((6, 6))
BY_HAND[0, [3, 4]] = [4.0, 4.0]  # supports the target and its rival equally
BY_HAND[1, [3, 4]] = [2.0, 0.0]
BY_HAND[2, [3, 4]] = [1.0, 0.0]


def test_what_carries_the_rival_too_is_not_removed(world, linear):
    """Logits 7, 4.5 and 0. Item 0 matters most for item 3, but its removal changes nothing between 3 and 4."""
    setting = world(linear(BY_HAND, bias=[0, 0, 0, 0, 0.5, 0]), [[0, 1, 2]], 6)
    targets = setting.targets([0], [3])
    edits, left = answer(setting, targets)
    assert edits.edge_items.tolist() == [1, 2]  # 3 has 4, and 4 has 4.5
    assert left.tolist() == [1]
    assert explain(setting, targets)[0].tolist() == [0.0, 2.0, 1.0]


def test_members_of_the_list_are_no_rivals(world, linear):
    """K = 2, logits 7, 6 and 4.5: item 1 holds 3 above 4, which is in the list; item 0 holds it above 5."""
    W = np.zeros((6, 6))
    W[0, 3] = 3.0
    W[1, [3, 5]] = 4.0
    setting = world(linear(W, bias=[0, 0, 0, 0, 6.0, 0.5]), [[0, 1, 2]], 6)
    assert setting.lists(2).tolist() == [[3, 4]]
    targets = setting.targets([0], [3], k=2)
    edits, left = answer(setting, targets)
    assert edits.edge_items.tolist() == [0]
    assert left.tolist() == [1]
    assert explain(setting, targets)[0].tolist() == [3.0, 0.0, 0.0]


def test_overtaken_stops_where_the_paper_does(world, linear):
    """K = 2, logits 7.5, 7 and 4. Without item 0 they are 3.5, 0 and 4: overtaken, and at rank 2 still listed."""
    W = np.zeros((6, 6))
    W[:3, 3] = [4.0, 3.0, 1.0]
    W[0, 4] = 7.0
    setting = world(linear(W, bias=[0, 0, 0, -0.5, 0, 4.0]), [[0, 1, 2]], 6)
    assert setting.lists(2).tolist() == [[3, 4]]
    targets = setting.targets([0], [3], k=2)
    edits, left = answer(setting, targets, stopping_rule="overtaken")
    assert edits.edge_items.tolist() == [0]
    assert left.tolist() == [0]
    edits, left = answer(setting, targets)
    assert edits.edge_items.tolist() == [0, 1, 2], "in the order of the gap to 5; items 1 and 2 would do"
    assert left.tolist() == [1]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 500),
    length=st.integers(1, 9),
    k=st.integers(1, 4),
    rivals=st.sampled_from([1, 3, 50]),
    level=st.sampled_from(["item", "list"]),
)
def test_on_a_linear_logit_every_answer_is_right_and_none_is_too_long(
    make_world, make_models, seed, length, k, rivals, level
):
    """Predictions are exact there; with every candidate in sight, no shorter prefix displaces as many."""
    model = make_models(16, seed, False)
    setting = make_world(model, [range(length)], 16)
    best = setting.lists(k)[0]
    items = best[:, None] if level == "item" else [best]
    targets = setting.targets([0] * len(items), items, k=k)
    edits, left = answer(setting, targets, rivals=rivals)
    assert ((left > 0) == (edits.counts() > 0)).all()
    gaps = explain(setting, targets, rivals=rivals)
    for unit in range(len(targets)):
        removed = edits.edge_items[edits.rows == unit]
        order = np.argsort(-gaps[unit, :length], kind="stable")
        assert set(removed) == set(order[: len(removed)]), "a prefix of the order that is given"
        if rivals == 50:
            prefixes = np.tri(length, dtype=bool)[: max(0, len(removed) - 1)][:, np.argsort(order)]
            shorter = Edits.removals(
                np.zeros(len(prefixes), int), np.tile(np.arange(length), (len(prefixes), 1)), prefixes
            )
            ranks = target_ranks(model, shorter, targets, np.full(len(prefixes), unit), setting.profiles)
            assert ((ranks > k).sum(axis=1) < left[unit]).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 200), length=st.integers(1, 7), k=st.integers(1, 3))
def test_the_answer_is_the_shortest_of_all_rivals(make_world, make_models, seed, length, k):
    """Literally: for each rival in turn, remove by the gap to it, and query the model for the rank of the target."""
    model = make_models(14, seed, False)
    setting = make_world(model, [range(length)], 14)
    ranking = [item for item in setting.lists(14)[0] if item >= 0]
    targets = setting.targets([0] * k, np.array(ranking[:k])[:, None], k=k)
    edits, _ = answer(setting, targets, rivals=50)
    for unit, target in enumerate(ranking[:k]):
        sizes = [length + 1]
        for rival in ranking[k:]:
            order = sorted(
                range(length), key=lambda item: (model.W[item, rival] - model.W[item, target], item)
            )
            for size in range(1, length + 1):
                scores = model.bias + model.W[order[size:]].sum(axis=0)
                ahead = [item for item in ranking if (-scores[item], item) < (-scores[target], target)]
                if len(ahead) >= k:
                    sizes.append(size)
                    break
        assert edits.counts()[unit] == (min(sizes) if min(sizes) <= length else 0)


def test_verified_queries_the_model_where_the_prediction_is_wrong(world):
    """Each of two alone is dispensable, so that no removal is predicted to do anything."""

    class Either:
        """Item 3 gets 2 points for item 0 or item 1 or both; item 4 has one point."""

        def score_profiles(self, profiles):
            x = profiles.toarray()
            scores = np.zeros_like(x)
            scores[:, 3], scores[:, 4] = 2 * np.maximum(x[:, 0], x[:, 1]), 1.0
            return scores

    setting = world(Either(), [[0, 1, 2]], 6)
    targets = setting.targets([0], [3])
    edits, _ = answer(setting, targets)
    assert not edits.counts().any()
    edits, left = answer(setting, targets, stopping_rule="verified")
    assert edits.edge_items.tolist() == [0, 1]
    assert left.tolist() == [1]


# What a removal is estimated to do


def test_the_gradient_is_the_effect_of_removal_on_a_linear_logit(world):
    setting = world(Towers(30), [range(9), [3], range(20)], 30)
    targets = setting.targets([0, 1, 2, 2], [[25], [28], [29], [22]], k=2)
    exact = explain(setting, targets)
    assert explain(setting, targets, effect="input-gradient") == pytest.approx(exact, abs=1e-8)


def test_the_gradient_is_the_slope_at_the_profile(world):
    """Against differences of the logits of the target and of the only rival."""
    model = Towers(12, bent=True)
    setting = world(model, [[1, 4, 6]], 12)
    best = setting.lists(2)[0]
    found = explain(setting, setting.targets([0], [best[0]]), effect="input-gradient", rivals=1)[0]
    profile = setting.profiles.toarray()
    for place, item in enumerate([1, 4, 6]):
        moved = profile.copy()
        moved[0, item] -= 1e-6
        change = (model.score_profiles(profile) - model.score_profiles(moved))[0] / 1e-6
        assert found[place] == pytest.approx(change[best[0]] - change[best[1]], abs=1e-4)


def test_on_a_graph_the_gradient_is_the_slope_too():
    """By the weight of the user's edges, degrees included; against differences."""
    import torch

    from cfbench_core.lifecycle.streams import generator
    from cfbench_recsys.targets import Context

    graph = interactions()
    model = kit_models(graph)[1].recommender
    context = Context(model, graph, graph, generator)
    target, rival = np.argsort(
        -np.where(graph[[5]].toarray()[0] > 0, -np.inf, model.score_edits(Edits.nothing(np.array([5])))[0])
    )[:2]
    targets = Targets.of(graph, np.array([5]), np.array([[target]]), 1, "item", "user-only")
    found = Accent(Config(effect="input-gradient", rivals=1)).importances(targets, context)[0]
    for place, item in enumerate(targets.history[0]):
        scores = [
            model.score_weighted(
                *map(torch.tensor, ([5], [0], [5], [int(item)])), torch.tensor([delta], dtype=torch.float64)
            ).numpy()[0]
            for delta in (0.0, -1e-6)
        ]
        change = (scores[0] - scores[1]) / 1e-6
        assert found[place] == pytest.approx(change[target] - change[rival], abs=1e-4)


def loss_without(model, history, options, excluded):
    """The objective of ``accent.py``, literally, for a user who has ``history`` but not ``excluded``."""
    own = model.profile_embeddings(np.eye(len(model.Q))[history].sum(axis=0)[None])[0]
    free = np.ones(len(own)) if not model.bent else np.append(np.ones(len(own) - 1), 0.0)
    others = np.setdiff1d(np.arange(len(model.Q)), history)

    def data(p, weights):
        held = -(weights * np.log(1 / (1 + np.exp(-model.Q[history] @ p)))).sum() / len(history)
        return held + options["negatives"] * np.log1p(np.exp(model.Q[others] @ p)).mean()

    def slope(f, p):
        return np.array([(f(p + e) - f(p - e)) / 2e-5 for e in 1e-5 * np.eye(len(p))])

    all_of_it = np.ones(len(history))
    s = 1 / (1 + np.exp(-model.Q @ own))
    curvature = (s * (1 - s))[history] @ model.Q[history] ** 2 / len(history)
    curvature = curvature + options["negatives"] * ((s * (1 - s))[others] @ model.Q[others] ** 2) / len(
        others
    )
    ridge = options["damping"] * (curvature * free).sum()
    tilt = slope(lambda p: data(p, all_of_it), own) + ridge * own
    weights = (history != excluded).astype(float)

    def objective(moved):
        p = own + moved * free
        return data(p, weights) + ridge / 2 * p @ p - tilt @ p

    best = minimize(objective, np.zeros(len(own)), method="BFGS", options={"gtol": 1e-9}).x
    return own, own + best * free


@pytest.mark.parametrize("effect", ["leave-one-out", "input-gradient"])
@pytest.mark.parametrize("options", [{"damping": 0.1}, {"negatives": 0.0}], ids=str)
def test_options_of_the_fitted_user_are_refused_where_none_is_fitted(effect, options):
    with pytest.raises(UserError, match=f"{next(iter(options))}: has no effect with effect: {effect}"):
        Config(effect=effect, **options)


@pytest.mark.parametrize("bent", [False, True])
@pytest.mark.parametrize("negatives", [0.0, 1.0])
def test_refit_is_the_minimum_without_the_interaction(world, bent, negatives):
    options = {"damping": 0.3, "negatives": negatives}
    model = Towers(14, bent=bent)
    history = np.array([0, 2, 5, 7])
    setting = world(model, [history], 14)
    best = setting.lists(2)[0]
    found = explain(setting, setting.targets([0], [best[0]]), effect="refit", rivals=1, **options)[0]
    for place, item in enumerate(history):
        before, after = loss_without(model, history, options, item)
        fall = model.Q @ (before - after)
        assert found[place] == pytest.approx(fall[best[0]] - fall[best[1]], abs=1e-4)


@pytest.mark.parametrize(("dimensions", "negatives"), [(4, 0.0), (8, 1.0), (32, 0.0), (32, 1.0)])
def test_influence_orders_interactions_as_fitting_again_does(world, dimensions, negatives):
    """Rank correlation above 0.9 (the effects of 20 interactions on five gaps)."""
    setting = world(Towers(60, dimensions, bent=True), [range(20)], 60)
    targets = setting.targets([0] * 5, setting.lists(5)[0][:, None], k=5)
    options = {"damping": 0.05, "negatives": negatives}
    fast = explain(setting, targets, effect="influence", rivals=1, **options)
    true = explain(setting, targets, effect="refit", rivals=1, **options)
    for unit in range(5):
        assert spearmanr(fast[unit], true[unit]).statistic > 0.9


def test_influence_of_a_recommender_on_a_graph_uses_its_user_vectors(world):
    own = np.array([0.3, 0.1, 0.1, 2.0])

    class Fixed:
        """The vector of the explained user."""

        def __init__(self):
            self.Q = np.random.default_rng(0).normal(size=(10, 4))

        def item_embeddings(self):
            return self.Q

        def score_profiles(self, profiles):
            return np.tile(self.Q @ own, (profiles.shape[0], 1))

    class OfGraph(Fixed):
        def user_embeddings(self):
            return np.array([-own, own])

        def score_edits(self, edits):
            return np.tile(self.Q @ own, (len(edits), 1))

    class OfProfile(Fixed):
        user_embeddings = np.zeros((2, 4))  # data of its own, which says nothing

        def profile_embeddings(self, profiles):
            return np.where(np.asarray(profiles.sum(axis=1)) > 0, own, own + 1)

    found = []
    for model in (OfGraph(), OfProfile()):
        setting = world(model, [[0, 1], [2, 3, 4]], 10)
        found.append(explain(setting, setting.targets([1], [8]), effect="influence"))
    assert np.array_equal(*found)
    assert np.ptp(found[0]) > 0


@pytest.mark.parametrize(
    ("effect", "skipped"),
    [("leave-one-out", ""), ("influence", "embeddings"), ("refit", "embeddings"), ("input-gradient", "")],
)
def test_an_estimate_is_skipped_where_the_recommender_lacks_what_it_needs(effect, skipped):
    study = {"suite": "recsys", "data": "debian-python", "recommenders": ["ease"]}
    (cell,) = prepare({**study, "explainers": [{"name": "accent", "effect": effect}]}).plan.cells[:1]
    assert cell.skipped == (f"needs access {skipped}, which ease does not offer" if skipped else "")


# Awkward users


def test_an_item_that_stays_whatever_is_removed_gets_no_answer(world):
    class Stuck(Towers):
        def item_embeddings(self):
            items = np.hstack([self.Q, np.zeros((len(self.Q), 1))])
            items[15, -1] = 1000.0
            return items

        def profile_embeddings(self, profiles):
            towers = super().profile_embeddings(profiles)
            return np.hstack([towers, np.ones((len(towers), 1))])

        def score_profiles(self, profiles):
            return self.profile_embeddings(profiles) @ self.item_embeddings().T

        def score_dense(self, profiles):
            import torch

            scores = super().score_dense(profiles)
            return scores + torch.nn.functional.one_hot(torch.tensor(15), 20) * 1000.0

    setting = world(Stuck(20), [range(5), [3], [2, 4]], 20)
    targets = setting.targets([0, 1, 2], [15, 15, 15])
    for effect in EFFECTS:
        edits, left = answer(setting, targets, effect=effect)
        assert len(edits) == 3
        assert not edits.counts().any()
        assert not left.any()
        assert np.isfinite(explain(setting, targets, effect=effect)).all()


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("length", [1, 2, 800])
def test_short_and_long_histories(world, effect, length):
    if effect == "refit" and length == 800:
        pytest.skip("slow by design")
    setting = world(Towers(830), [range(length)], 830)
    targets = setting.targets([0] * 3, setting.lists(3)[0][:, None], k=3)
    edits, left = answer(setting, targets, effect=effect)
    assert explain(setting, targets, effect=effect).shape == (3, length)
    if effect in ("leave-one-out", "input-gradient"):
        assert ((left > 0) == (edits.counts() > 0)).all()


def test_without_a_candidate_below_the_list_there_is_no_answer(world, linear):
    setting = world(linear(items=6), [range(5), range(3)], 6)
    targets = setting.targets([0, 1], [5, 4], k=3)
    edits, _ = answer(setting, targets)
    assert not edits.counts().any()
    assert explain(setting, targets)[0, :5] == pytest.approx(setting.model.W[:5, 5])


def test_an_item_outside_the_list_can_be_explained(world, linear):
    setting = world(linear(items=60), [range(5)], 60)
    ranking = setting.lists(55)[0]
    found = explain(setting, setting.targets([0, 0], [ranking[3], ranking[50]], k=2), rivals=5)
    W, rival = setting.model.W, ranking[[2, 4, 5, 6]]
    assert any(found[0] == pytest.approx(W[:5, ranking[3]] - W[:5, other]) for other in rival)
    assert any(found[1] == pytest.approx(W[:5, ranking[50]] - W[:5, other]) for other in ranking[2:7])


@pytest.mark.parametrize(
    "options", [*({"effect": v} for v in EFFECTS), {"stopping_rule": "overtaken", "rivals": 3}]
)
def test_each_unit_stands_alone(world, assert_each_unit_stands_alone, options):
    draw = np.random.default_rng(3)
    histories = [[7], range(37), draw.choice(36, 15, replace=False), [1, 2, 3], [1, 2, 3], [4, 30]]
    setting = world(Towers(40, bent=True), histories, 40)
    targets = setting.targets([*range(6), 2, 2], [39] * 6 + [38, 37], k=2)
    assert_each_unit_stands_alone(Accent(Config(**options)), targets, setting.context)


def test_awkward_users_stand_alone_at_list_level(awkward, assert_each_unit_stands_alone):
    users = [0, 2, 3, 4, 5]
    targets = awkward.targets(users, awkward.lists(4)[users], k=4)
    assert_each_unit_stands_alone(Accent(Config()), targets, awkward.context)
    edits, left = answer(awkward, targets)
    assert (left[edits.counts() > 0] > 0).all()
    assert left.sum() > 10


def test_all_items_of_a_user_share_the_evaluations(world, linear):
    setting = world(linear(items=200), [range(64)], 200)
    explain(setting, setting.targets([0] * 5, setting.lists(5)[0][:, None], k=5))
    assert setting.model.scored == 2 * BLOCK + 1, (
        "64 removals, the profile itself, and the list for this test"
    )
