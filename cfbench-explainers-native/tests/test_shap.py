from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_explainers_native.shap import Config, Shap
from cfbench_explainers_native.shap_paper import PaperOptions
from cfbench_explainers_native.shapley_values import Enumeration, Kernel, Permutations, kernel_coalitions
from cfbench_recsys.scoring import BLOCK

ESTIMATORS = ("permutation", "kernel")


def explain(setting, targets, **options):
    return Shap(Config(**options)).importances(targets, setting.context)


def logits(setting, parts, items):
    """(parts, items) logits of profiles made of these items, scored by the model directly."""
    profiles = np.zeros((len(parts), setting.profiles.shape[1]))
    for row, part in enumerate(parts):
        profiles[row, list(part)] = 1.0
    return setting.model.score_profiles(sparse.csr_matrix(profiles))[:, items]


def by_definition(setting, history, items):
    """The sum over all orders, literally."""
    values = dict.fromkeys(history, 0.0)
    for order in itertools.permutations(history):
        for place, item in enumerate(order):
            before, after = logits(setting, [order[:place], order[: place + 1]], items).mean(axis=1)
            values[item] += (after - before) / math.factorial(len(history))
    return [values[item] for item in history]


class Together:
    """Item 3 gets 1 for item 0, and 2 more when items 0 and 1 are both there; nothing for item 2."""

    def score_profiles(self, profiles):
        x = profiles.toarray()
        scores = np.zeros_like(x)
        scores[:, 3] = 7.0 + x[:, 0] + 2 * x[:, 0] * x[:, 1]
        return scores


class Alike:
    """The logit of the last item is the root of how many of the even items there are, whichever."""

    def score_profiles(self, profiles):
        x = profiles.toarray()
        return np.tile(np.sqrt(x[:, ::2].sum(axis=1))[:, None], x.shape[1])


@pytest.mark.parametrize("exact", ["auto", "enumeration", "never"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_two_that_act_together_share_what_they_bring(world, exact, estimator):
    setting = world(Together(), [[0, 1, 2]], 4)
    found = explain(setting, setting.targets([0], [3]), exact=exact, estimator=estimator)
    assert found[0] == pytest.approx([2.0, 1.0, 0.0], abs=1e-8)


def test_all_parts_give_what_all_orders_give(world, curved):
    setting = world(curved(9, 3), [[0, 2, 3, 6, 7], [1]], 9)
    found = explain(setting, setting.targets([0, 1], [8, 8]))
    assert found[0] == pytest.approx(by_definition(setting, [0, 2, 3, 6, 7], [8]), abs=1e-8)
    assert found[1, 0] == pytest.approx(by_definition(setting, [1], [8])[0], abs=1e-8)
    listed = explain(setting, setting.targets([0], [[8, 4, 5]], k=3))
    assert listed[0] == pytest.approx(by_definition(setting, [0, 2, 3, 6, 7], [8, 4, 5]), abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(1, 30),
    samples=st.integers(2, 300),
    estimator=st.sampled_from(ESTIMATORS),
    count=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_the_values_add_up_to_what_the_profile_brings(
    make_world, make_models, length, samples, estimator, count, seed
):
    """Efficiency: of the estimates too, not only in the limit."""
    model = make_models(34, seed, True)
    setting = make_world(model, [range(length)], 34)
    items = [30, 33, 32][:count]
    options = {"samples": samples, "estimator": estimator, "exact": "never"}
    found = explain(setting, setting.targets([0], [items], k=count), **options)[0]
    full, empty = logits(setting, [range(length), []], items).mean(axis=1)
    assert np.sum(found) == pytest.approx(full - empty, abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"exact": "never"}, {"exact": "never", "estimator": "kernel"}])
def test_an_interaction_that_never_matters_gets_nothing(world, options):
    setting = world(Together(), [[0, 1, 2]], 4)
    assert explain(setting, setting.targets([0], [3]), **options)[0, 2] == pytest.approx(0, abs=1e-8)
    assert explain(setting, setting.targets([0], [3]))[0, 2] == 0.0


def test_interactions_that_do_the_same_get_the_same(world):
    setting = world(Alike(), [range(8)], 12)
    found = explain(setting, setting.targets([0], [11]))[0]
    assert (found[::2] == found[0]).all()
    assert found[0] == pytest.approx(0.5)
    assert not found[1::2].any()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_interactions_that_do_the_same_get_nearly_the_same_estimates(world, estimator):
    setting = world(Alike(), [range(16)], 20)
    found = explain(setting, setting.targets([0], [19]), exact="never", estimator=estimator, samples=4096)[0]
    assert found[::2] == pytest.approx(np.full(8, np.sqrt(8) / 8), abs=0.05)
    assert np.abs(found[1::2]).max() < 0.05


@pytest.mark.parametrize("options", [{}, *({"exact": "never", "estimator": e} for e in ESTIMATORS)])
@pytest.mark.parametrize("count", [1, 3])
def test_on_a_linear_logit_they_are_the_contributions(awkward, options, count):
    """The closed form, and both estimators whatever their number of samples."""
    users = [0, 1, 2, 5]
    items = [[419, 418, 417][:count] if user != 1 else [419] * count for user in users]
    found = explain(awkward, awkward.targets(users, items, k=count), **options)
    for unit, user in enumerate(users):
        history = awkward.profiles[user].indices
        weights = awkward.model.W[history][:, items[unit]].mean(axis=1)
        if options.get("estimator") != "kernel" or len(history) < 100:
            assert found[unit, : len(history)] == pytest.approx(weights, abs=1e-6)


def test_an_attribute_called_weights_does_not_make_a_logit_linear(world, strongest):
    """The values are those of the same recommender whose attribute has another name."""
    model = strongest(8, 3)
    renamed = type("Renamed", (), {"score_profiles": lambda self, profiles: model.score_profiles(profiles)})()
    found = []
    for recommender in (model, renamed):
        setting = world(recommender, [[0, 2, 3, 5]], 8)
        targets = setting.targets([0, 0], [1, 4])
        found.append(Shap(Config(exact="auto")).importances(targets, setting.context))
    assert np.array_equal(*found) and np.ptp(found[0]) > 0


def test_a_linear_logit_needs_no_queries(awkward):
    explain(awkward, awkward.targets([1, 2], [419, 419]))
    assert awkward.model.scored == 0


def responses_of(setting, design, history, item):
    parts = [np.array(history)[coalition] for coalition in design.coalitions]
    return logits(setting, parts, [item])[:, 0]


def test_the_permutation_estimate_is_within_its_standard_error(world, curved):
    """Of 60 estimates, z = (estimate - exact) / error is about standard normal."""
    history = list(range(10))
    setting = world(curved(12, 4), [history], 12)
    exact_design = Enumeration(10)
    exact = exact_design.values(responses_of(setting, exact_design, history, 11))
    scores = []
    for seed in range(60):
        design = Permutations(10, 362, np.random.default_rng(seed))
        responses = responses_of(setting, design, history, 11)
        assert len(responses) == 362
        scores.append((design.values(responses) - exact) / design.errors(responses))
    scores = np.array(scores)
    assert 0.85 < np.sqrt((scores**2).mean()) < 1.25
    assert abs(scores.mean()) < 0.15
    assert np.isnan(Permutations(10, 2, np.random.default_rng(0)).errors(np.zeros(20))).all(), "one pair only"


@pytest.mark.parametrize("make", [Permutations, Kernel])
def test_more_samples_bring_the_estimate_nearer(world, curved, make):
    history = list(range(10))
    setting = world(curved(12, 4), [history], 12)
    exact_design = Enumeration(10)
    exact = exact_design.values(responses_of(setting, exact_design, history, 11))

    def error(samples):
        found = []
        for seed in range(12):
            design = make(10, samples, np.random.default_rng(seed))
            assert len(design.coalitions) <= samples
            found.append(design.values(responses_of(setting, design, history, 11)) - exact)
        return np.sqrt(np.mean(np.square(found)))

    assert error(800) < 0.6 * error(120)
    assert error(120) < 0.15 * np.abs(exact).max()


def test_the_kernel_with_every_coalition_is_exact(world, curved):
    history = list(range(8))
    setting = world(curved(12, 2), [history], 12)
    kernel, every = Kernel(8, 256, np.random.default_rng(0)), Enumeration(8)
    assert len({tuple(row) for row in kernel.coalitions.tolist()}) == 256
    found = kernel.values(responses_of(setting, kernel, history, 11))
    assert found == pytest.approx(every.values(responses_of(setting, every, history, 11)), abs=1e-7)


@pytest.mark.parametrize(("players", "samples"), [(2, 2), (7, 126), (12, 200), (60, 300), (300, 50)])
def test_coalitions_of_the_kernel_come_with_their_complements_and_its_weights(players, samples):
    found, weights = kernel_coalitions(players, samples, np.random.default_rng(1))
    assert len(found) <= samples
    sizes = found.sum(axis=1)
    assert ((sizes > 0) & (sizes < players)).all()
    rows = sorted(map(tuple, found.tolist()))
    assert rows == sorted(map(tuple, (~found).tolist()))
    each = np.arange(1, players)
    mass = (players - 1) / (each * (players - each))
    assert weights.sum() == pytest.approx(mass.sum())
    if samples >= 2**players - 2:
        binomials = np.array([math.comb(players, int(size)) for size in sizes])
        assert weights == pytest.approx(mass[sizes - 1] / binomials)


def test_the_permutation_estimator_spends_what_it_may_and_never_less_than_one_pair(world, curved):
    assert len(Permutations(100, 1024, np.random.default_rng(0)).coalitions) == 2 + 5 * 198
    assert len(Permutations(600, 1024, np.random.default_rng(0)).coalitions) == 2 + 1198
    assert len(Permutations(1, 1024, np.random.default_rng(0)).coalitions) == 2


def test_all_items_of_a_user_share_the_evaluations(world, linear):
    setting = world(linear(items=200), [range(7)], 200)
    explain(setting, setting.targets([0] * 50, range(120, 170)), exact="enumeration")
    assert setting.model.scored == 2 * BLOCK == 2**7


def test_users_with_few_interactions_share_a_block(world, linear):
    setting = world(linear(items=40), [[0, 1, 2]] * 8, 40)
    explain(setting, setting.targets(range(8), [30] * 8), exact="enumeration")
    assert setting.model.scored == BLOCK == 8 * 2**3


def test_a_recommender_that_ignores_the_profile_gives_exact_zeros(world, linear):
    setting = world(linear(np.zeros((40, 40)), bias=np.linspace(0, 1000 / 3, 40)), [range(30)], 40)
    for estimator in ESTIMATORS:
        assert not explain(setting, setting.targets([0], [35]), exact="never", estimator=estimator).any()


# Awkward users


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"exact": "never", "samples": 200},
        {"exact": "never", "estimator": "kernel", "samples": 200},
        {"variant": "paper", "paper": PaperOptions(clusters=4, background=5)},
    ],
)
def test_awkward_users_stand_alone(awkward, curved, assert_each_unit_stands_alone, options):
    setting = type(awkward)(curved(420, 1), awkward.profiles, awkward.training)
    targets = setting.targets([*range(6), 2, 2], [419] * 6 + [401, 402])
    assert_each_unit_stands_alone(Shap(Config(**options)), targets, setting.context)
    assert_each_unit_stands_alone(Shap(Config(**options)), targets, awkward.context)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_history_of_eight_hundred_adds_up_too(world, curved, estimator):
    setting = world(curved(820, 1), [range(800)], 820)
    found = explain(setting, setting.targets([0], [810]), estimator=estimator)[0]
    full, empty = logits(setting, [range(800), []], [810])[:, 0]
    assert found.sum() == pytest.approx(full - empty, abs=1e-6)
