from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_explainers_native.lime_rs import Config, LimeRS, _draws, flip_weights, subsets, weighted_ridge
from cfbench_explainers_native.lime_rs_paper import PaperOptions, coefficients
from cfbench_recsys.edits import REMOVE
from cfbench_recsys.scoring import BLOCK


def explain(setting, targets, **options):
    return LimeRS(Config(**options)).importances(targets, setting.context)


def test_two_interactions_by_hand(world):
    """All four subsets are taken; with equal weights and no ridge it is the least-squares plane."""

    class Both:
        def score_profiles(self, profiles):
            x = profiles.toarray()
            scores = np.zeros_like(x)
            scores[:, 2] = x[:, 0] + 2 * x[:, 0] * x[:, 1]
            return scores

    setting = world(Both(), [[0, 1]], 3)
    found = explain(setting, setting.targets([0], [2]), kernel_width=1e6, ridge=1e-9)
    assert found[0] == pytest.approx([2.0, 1.0], abs=1e-6)


@pytest.mark.parametrize("length", [1, 5, 40, 150])
def test_it_recovers_the_coefficients_of_a_linear_recommender(world, linear, length):
    setting = world(linear(items=160), [range(length)], 160)
    found = explain(setting, setting.targets([0], [155]), samples=512, ridge=1e-12)
    assert found[0] == pytest.approx(setting.model.W[:length, 155], abs=1e-6)


def test_at_list_level_it_recovers_the_mean_of_the_coefficients(world, linear):
    setting = world(linear(items=30), [range(20)], 30)
    found = explain(setting, setting.targets([0], [[25, 26, 29]], k=3), ridge=1e-9)
    assert found[0] == pytest.approx(setting.model.W[:20, [25, 26, 29]].mean(axis=1), abs=1e-6)


def test_with_fewer_samples_than_interactions_the_order_is_still_much_like_the_true_one(awkward):
    targets = awkward.targets([1], [419])
    found = explain(awkward, targets, samples=256)[0]
    assert np.corrcoef(found, awkward.model.W[:419, 419])[0, 1] > 0.5


def test_the_coefficients_minimise_the_weighted_penalised_squares():
    """The literal objective, minimised numerically, for a small problem."""
    from scipy.optimize import minimize

    draw = np.random.default_rng(0)
    features, response = draw.integers(0, 2, (12, 3)).astype(float), draw.normal(size=12)
    weights, ridge = draw.uniform(0.1, 1, 12), 0.7

    def objective(parameters):
        errors = response - parameters[0] - features @ parameters[1:]
        return (weights * errors**2).sum() + ridge * (parameters[1:] ** 2).sum()

    best = minimize(objective, np.zeros(4), tol=1e-12).x[1:]
    assert weighted_ridge(features, response[None], weights, ridge)[0] == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(30, 10), (10, 30), (20, 20)])
def test_the_primal_and_the_dual_solution_are_one(rows, columns):
    """Against the other form, by a plain inverse."""
    draw = np.random.default_rng(1)
    features = draw.integers(0, 2, (rows, columns)).astype(float)
    responses, weights = draw.normal(size=(4, rows)), draw.uniform(0.1, 1, rows)
    share = weights / weights.sum()
    centred = features - share @ features
    scaled, root = centred * np.sqrt(weights)[:, None], np.sqrt(weights)
    targets = (responses - (responses @ share)[:, None]) * root
    primal = targets @ scaled @ np.linalg.inv(scaled.T @ scaled + 0.3 * np.eye(columns))
    dual = targets @ np.linalg.inv(scaled @ scaled.T + 0.3 * np.eye(rows)) @ scaled
    found = weighted_ridge(features, responses, weights, 0.3)
    assert found == pytest.approx(primal, abs=1e-9)
    assert found == pytest.approx(dual, abs=1e-9)


def test_short_histories_get_all_their_subsets_and_long_ones_every_size():
    draw = np.random.default_rng(0)
    every = subsets(4, 16, draw)
    assert every[0].all()
    assert len({tuple(row) for row in every.tolist()}) == 16
    some = subsets(50, 4000, draw)
    assert some.shape == (4000, 50)
    assert some[0].all()
    sizes = np.bincount(some[1:].sum(axis=1), minlength=51)
    assert sizes[50] == 0, "the full history is there once"
    assert (np.abs(sizes[:50] - 3999 / 50) < 5 * np.sqrt(3999 / 50)).all(), (
        "every other size is equally likely"
    )
    assert (np.abs(some[1:].mean(axis=0) - 0.49) < 0.05).all(), "and every interaction"
    assert len(subsets(900, 256, draw)) == 256


def test_near_subsets_count_more_than_far_ones(world):
    """On a bent logit, a narrow kernel sees the slope at the full profile, a wide one the mean slope."""

    class Steep:
        """Item 9 gets nothing for the first five interactions of a profile, and one point for each more."""

        def score_profiles(self, profiles):
            scores = np.zeros(profiles.shape)
            scores[:, 9] = np.maximum(profiles.toarray().sum(axis=1), 5) - 5
            return scores

    setting = world(Steep(), [range(8)], 10)
    targets = setting.targets([0], [9])
    narrow = explain(setting, targets, kernel_width=0.03, ridge=1e-6)[0]
    wide = explain(setting, targets, kernel_width=100.0, ridge=1e-6)[0]
    assert narrow == pytest.approx(np.ones(8), abs=0.1)
    assert (wide < 0.6).all()


def test_all_items_of_a_user_share_the_samples_and_forward_passes(world, linear):
    setting = world(linear(items=200), [range(100)], 200)
    explain(setting, setting.targets([0] * 50, range(120, 170)), samples=2 * BLOCK)
    assert setting.model.scored == 2 * BLOCK


def test_a_recommender_that_ignores_the_profile_gives_exact_zeros(world, linear):
    setting = world(linear(np.zeros((40, 40)), bias=np.linspace(0, 1 / 3, 40)), [range(30)], 40)
    assert not explain(setting, setting.targets([0], [35])).any()


@pytest.mark.parametrize(
    "options",
    [{}, {"sampling": "draws"}, {"variant": "paper"}, {"samples": 40, "kernel_width": 0.5, "ridge": 0.1}],
)
def test_awkward_users_stand_alone(awkward, curved, assert_each_unit_stands_alone, options):
    setting = type(awkward)(curved(420, 1), awkward.profiles, awkward.training)
    targets = setting.targets([*range(6), 2, 2], [419] * 6 + [401, 402])
    assert_each_unit_stands_alone(LimeRS(Config(**options)), targets, setting.context)


def test_a_user_with_one_interaction_gets_its_effect(awkward):
    found = explain(awkward, awkward.targets([0], [419]), ridge=1e-12)
    assert found[0, 0] == pytest.approx(awkward.model.W[7, 419], abs=1e-6)


class Recorder:
    """Records the profiles that it scores; the logit of the last item is the size of the profile."""

    def __init__(self):
        self.profiles = []

    def score_profiles(self, profiles):
        self.profiles.append(profiles.toarray())
        return np.tile(profiles.toarray().sum(axis=1)[:, None], profiles.shape[1])


def test_draws_refuse_a_kernel():
    with pytest.raises(UserError, match="kernel_width: has no effect with sampling: draws"):
        Config(sampling="draws", kernel_width=0.2)


def test_neighbours_of_draws_weigh_by_their_share_of_all_flips():
    """By hand: one flip of four, then three of four."""
    assert flip_weights(np.array([0.0, 1.0, 3.0])) == pytest.approx([1.0, 1 - 1 / 4, 1 - 3 / 4])


# Sampled as in the code of LXR and CFExpRec
DRAWS = {"sampling": "draws", "samples": 2001, "ridge": 1.0}


def test_draws_from_the_history_remove_most_of_a_short_one(world):
    """d in 50..99, p = min(uniform in 0..d - 1, 4) removals with replacement: means by enumeration of d and p."""
    setting = world(Recorder(), [range(4)], 1000)
    explain(setting, setting.targets([0], [999]), **DRAWS)
    queries = np.concatenate(setting.model.profiles)[:2001]
    history = np.arange(1000) < 4
    assert (queries[0] == history).all()
    pairs = [(d, min(first, 4)) for d in range(50, 100) for first in range(d)]
    weight = np.array([1 / (50 * d) for d, _ in pairs])
    remaining = weight @ [4 * (3 / 4) ** own for _, own in pairs]
    added = weight @ [996 * (1 - (995 / 996) ** (d - own)) for d, own in pairs]
    assert queries[1:, :4].sum(axis=1).mean() == pytest.approx(remaining, rel=0.03)
    assert queries[1:, 4:].sum(axis=1).mean() == pytest.approx(added, rel=0.03)
    assert remaining < 1.4, "two thirds of the history are removed"


def test_with_draws_the_surrogate_is_a_ridge_regression_on_the_history(world, curved):
    """Against scikit-learn on the recorded queries, with the number of draws as distance."""
    linear_model = pytest.importorskip("sklearn.linear_model")

    class Recording(Recorder):
        def score_profiles(self, profiles):
            super().score_profiles(profiles)
            return curve.score_profiles(profiles)

    curve = curved(500, 3)
    setting = world(Recording(), [range(5)], 500)
    found = explain(setting, setting.targets([0], [450]), sampling="draws", samples=300, ridge=0.6)[0]
    queries = np.concatenate(setting.model.profiles)[:300]
    neighbours = _draws(0, np.arange(5), 300, 500, setting.context.generator("lime-rs", 0))
    assert (neighbours.features == queries[:, :5]).all()
    assert ((neighbours.distances[1:] >= 50) & (neighbours.distances[1:] <= 99)).all()
    assert ((queries != queries[0]).sum(axis=1) <= neighbours.distances).all(), "draws may be repeated"
    weights = 1 - neighbours.distances / neighbours.distances.sum()
    scores = curve.score_profiles(sparse.csr_matrix(queries))[:, 450]
    fitted = linear_model.Ridge(alpha=0.6).fit(queries[:, :5], scores, sample_weight=weights)
    assert found == pytest.approx(fitted.coef_, abs=1e-8)


def test_draws_need_no_unseen_item(world, linear):
    setting = world(linear(items=6), [range(6)], 6)
    neighbours = _draws(0, np.arange(6), 20, 6, setting.context.generator("lime-rs", 0))
    assert (neighbours.edits.ops == REMOVE).all()


# As published by its authors


@pytest.mark.parametrize("repeated", [False, True])
def test_the_published_surrogate_is_the_ridge_regression_on_one_hot_features(repeated):
    """Against scikit-learn's Ridge on the one-hot encodings of user and item, with the weights of the kernel."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = np.random.default_rng(0)
    scores, item = draw.normal(size=12), 3
    drawn = draw.permutation(np.setdiff1d(np.arange(12), [item, 7, 9]))[:6]
    drawn = np.append(drawn, item) if repeated else drawn
    rows = np.concatenate([[item], drawn])
    features = np.hstack([np.ones((len(rows), 1)), np.eye(12)[rows]])
    cosine = features @ features[0] / (np.linalg.norm(features, axis=1) * np.linalg.norm(features[0]))
    weights = np.sqrt(np.exp(-((1 - cosine) ** 2) / 0.7**2))
    fitted = linear_model.Ridge(alpha=1.3).fit(features, scores[rows], sample_weight=weights)
    found = coefficients(scores, item, drawn, PaperOptions(samples=7, kernel_width=0.7, ridge=1.3))
    assert found == pytest.approx(fitted.coef_[1:], abs=1e-10)


def test_the_published_variant_queries_the_untouched_profile_alone(world, linear):
    setting = world(linear(items=30), [range(10), range(5, 12)], 30, [range(30), range(12)])
    found = explain(setting, setting.targets([0, 0, 1], [20, 21, 20]), variant="paper")
    assert setting.model.scored <= BLOCK
    scores = setting.model.score_profiles(setting.profiles)
    assert np.corrcoef(found[0], scores[0, :10])[0, 1] == pytest.approx(1.0), "all items are drawn"


def test_items_that_are_not_drawn_have_no_importance(world, linear):
    setting = world(linear(items=60), [range(20)], 60, [range(60)])
    found = explain(setting, setting.targets([0], [30]), variant="paper", paper=PaperOptions(samples=16))[0]
    assert 0 < np.count_nonzero(found) <= 15


def test_the_published_variant_refuses_a_target():
    with pytest.raises(UserError, match="target: is an option of variant: cfbench"):
        Config(variant="paper", target="logit")


def test_draws_explain_the_probability_by_default(world, linear):
    class Sigmoid(type(linear(items=2))):
        link = "sigmoid"

    plain = linear(items=150)
    setting = world(Sigmoid(plain.W, plain.bias), [range(20)], 150)
    targets = setting.targets([0], [100])
    by_default = explain(setting, targets, sampling="draws")
    assert np.array_equal(by_default, explain(setting, targets, sampling="draws", target="probability"))
    assert not np.array_equal(by_default, explain(setting, targets, sampling="draws", target="logit"))


@pytest.mark.parametrize("level", ["item", "list"])
def test_draws_explain_a_recommender_that_masks_the_profile(world, curved, level):
    """The answers are those of the same recommender without a mask, to which the explained items are never added."""

    class Masked:
        def __init__(self, always=()):
            self.always = list(always)

        def score_profiles(self, profiles):
            seen = profiles.toarray() > 0
            unmasked = seen.copy()
            unmasked[:, self.always] = False
            scores = curved(12, 5).score_profiles(sparse.csr_matrix(unmasked.astype(float)))
            return scores if self.always else np.where(seen, -np.inf, scores)

    items = [6, 9] if level == "list" else [6]
    config = Config(sampling="draws", samples=60)
    found = []
    for model in (Masked(), Masked(always=items)):
        setting = world(model, [[0, 1, 2, 4]], 12)
        targets = setting.targets([0], [items] if level == "list" else items, k=2)
        found.append(LimeRS(config).importances(targets, setting.context))
    assert np.isfinite(found[0]).all() and np.ptp(found[0]) > 0
    assert np.array_equal(*found)


def test_scores_that_are_not_finite_without_additions_are_an_error_of_one_line(world):
    class Infinite:
        def score_profiles(self, profiles):
            return np.full(profiles.shape, np.inf)

    setting = world(Infinite(), [[0, 1]], 5)
    with pytest.raises(UserError, match="not finite"):
        LimeRS(Config()).importances(setting.targets([0], [3]), setting.context)
