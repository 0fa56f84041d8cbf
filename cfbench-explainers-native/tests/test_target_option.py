"""The option ``target`` of leave-one-out, exact contribution, LIME-RS and SHAP."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.api import plan
from cfbench_core.errors import UserError
from cfbench_explainers_native.exact_contribution import Config as ExactConfig
from cfbench_explainers_native.exact_contribution import ExactContribution
from cfbench_explainers_native.leave_one_out import Config as LeaveOneOutConfig
from cfbench_explainers_native.leave_one_out import LeaveOneOut
from cfbench_explainers_native.lime_rs import Config as LimeConfig
from cfbench_explainers_native.lime_rs import LimeRS
from cfbench_explainers_native.shap import Config as ShapConfig
from cfbench_explainers_native.shap import Shap

BY_QUERIES = {
    "leave-one-out": lambda target: LeaveOneOut(LeaveOneOutConfig(target=target)),
    "lime-rs": lambda target: LimeRS(LimeConfig(target=target)),
    "shap": lambda target: Shap(ShapConfig(target=target, samples=64)),
}
CASES = [("sigmoid", "probability"), ("softmax", "probability")]
CASES += [(link, target) for link in ("sigmoid", "softmax", "identity") for target in ("logit", "margin")]
HISTORIES = [[0, 2, 5], [1], [0, 1, 3, 4, 6]]


class Linked:
    """A model with a link; ``shift`` adds a number that depends on the profile to the scores of all items."""

    def __init__(self, model, link, shift=0.0):
        self.model, self.link, self.shift = model, link, shift

    def score_profiles(self, profiles):
        sizes = np.asarray(profiles.sum(axis=1))
        return self.model.score_profiles(profiles) + self.shift * sizes**2

    def __getattr__(self, name):
        if name in ("weights", "W") and hasattr(self.model, "weights"):
            return getattr(self.model, name)
        raise AttributeError(name)


def function(model, link, target, k, profile, items, history, size):
    """The mean over the items of the target function of one profile, from its formula."""
    x = np.zeros((1, size))
    x[0, list(profile)] = 1.0
    scores = model.score_profiles(sparse.csr_matrix(x))[0]
    values = []
    for item in items:
        if target == "logit":
            values.append(scores[item])
        elif target == "margin":
            others = np.delete(scores, [item, *history])
            values.append(scores[item] - np.sort(others)[-k])
        elif link == "sigmoid":
            values.append(-math.log1p(math.exp(-scores[item])))
        else:
            values.append(scores[item] - math.log(np.exp(scores).sum()))
    return np.mean(values)


@pytest.fixture
def setting(world, curved):
    return lambda link, shift=0.0: world(Linked(curved(14, 0), link, shift), HISTORIES, 14)


def targets_of(setting, level):
    if level == "item":
        return setting.targets([0, 1, 2, 2], [9, 10, 11, 12], k=2)
    return setting.targets([0, 1, 2], [[9, 10], [11, 12], [7, 13]], k=2)


@pytest.mark.parametrize("level", ["item", "list"])
@pytest.mark.parametrize(("link", "target"), CASES)
def test_leave_one_out_is_the_decrease_of_the_target(setting, link, target, level):
    world = setting(link)
    targets = targets_of(world, level)
    found = BY_QUERIES["leave-one-out"](target).importances(targets, world.context)
    for unit, user in enumerate(targets.users):
        history = HISTORIES[user]
        case = (world.model, link, target, 2)
        whole = function(*case, history, targets.items[unit], history, 14)
        for place, item in enumerate(history):
            without = function(*case, set(history) - {item}, targets.items[unit], history, 14)
            assert found[unit, place] == pytest.approx(whole - without, abs=1e-8)


@pytest.mark.parametrize("level", ["item", "list"])
@pytest.mark.parametrize(("link", "target"), CASES)
def test_shap_is_the_mean_over_all_orders_of_what_an_interaction_adds_to_the_target(
    setting, link, target, level
):
    world = setting(link)
    targets = targets_of(world, level)
    found = BY_QUERIES["shap"](target).importances(targets, world.context)
    history = HISTORIES[0]
    added = np.zeros(len(history))
    orders = list(itertools.permutations(range(len(history))))
    for order in orders:
        for step, place in enumerate(order):
            before, after = ({history[p] for p in order[:n]} for n in (step, step + 1))
            low, high = (
                function(world.model, link, target, 2, part, targets.items[0], history, 14)
                for part in (before, after)
            )
            added[place] += (high - low) / len(orders)
    assert found[0, : len(history)] == pytest.approx(added, abs=1e-8)


@pytest.mark.parametrize("level", ["item", "list"])
@pytest.mark.parametrize(("link", "target"), CASES)
def test_lime_rs_with_all_subsets_is_the_plane_of_least_squares_through_the_target(
    setting, link, target, level
):
    world = setting(link)
    targets = targets_of(world, level)
    explainer = LimeRS(LimeConfig(target=target, kernel_width=1e6, ridge=1e-9))
    found = explainer.importances(targets, world.context)
    history = HISTORIES[0]
    subsets = list(itertools.product([0, 1], repeat=len(history)))
    responses = [
        function(
            world.model,
            link,
            target,
            2,
            [i for i, z in zip(history, subset, strict=True) if z],
            targets.items[0],
            history,
            14,
        )
        for subset in subsets
    ]
    design = np.column_stack([np.ones(len(subsets)), np.array(subsets)])
    plane = np.linalg.lstsq(design, np.array(responses), rcond=None)[0][1:]
    assert found[0, : len(history)] == pytest.approx(plane, abs=1e-6)


@pytest.mark.parametrize("level", ["item", "list"])
@pytest.mark.parametrize(("link", "target"), CASES)
def test_exact_contribution_is_leave_one_out_without_its_queries(world, linear, link, target, level):
    setting = world(Linked(linear(items=14), link), HISTORIES, 14)
    targets = targets_of(setting, level)
    exact = ExactContribution(ExactConfig(target=target)).importances(targets, setting.context)
    queried = BY_QUERIES["leave-one-out"](target).importances(targets, setting.context)
    assert exact == pytest.approx(queried, abs=1e-8)


@pytest.mark.parametrize("name", BY_QUERIES)
def test_with_the_link_sigmoid_the_default_is_the_logit_to_the_last_bit(setting, name):
    for link in ("sigmoid", "identity"):
        by_default = BY_QUERIES[name](None).importances(
            targets_of(setting(link), "item"), setting(link).context
        )
        logit = BY_QUERIES[name]("logit").importances(
            targets_of(setting(link), "item"), setting(link).context
        )
        assert np.array_equal(by_default, logit)


@pytest.mark.parametrize("level", ["item", "list"])
@pytest.mark.parametrize("target", [None, "probability", "margin"])
@pytest.mark.parametrize("name", BY_QUERIES)
def test_with_the_link_softmax_a_constant_for_each_profile_changes_no_importance(
    setting, name, target, level
):
    """Softmax probabilities and ranks do not depend on it; importances of the logit do."""
    plain, shifted = (setting("softmax", shift) for shift in (0.0, 0.7))
    found = [
        BY_QUERIES[name](target).importances(targets_of(one, level), one.context) for one in (plain, shifted)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-7)
    raw = [
        BY_QUERIES[name]("logit").importances(targets_of(one, level), one.context) for one in (plain, shifted)
    ]
    assert np.abs(raw[0] - raw[1]).max() > 0.1


@pytest.mark.parametrize("name", [*BY_QUERIES, "exact-contribution"])
def test_a_probability_of_scores_that_are_no_logits_is_an_error(world, linear, name):
    setting = world(Linked(linear(items=14), "identity"), HISTORIES, 14)
    explainer = BY_QUERIES.get(name, lambda target: ExactContribution(ExactConfig(target=target)))(
        "probability"
    )
    with pytest.raises(UserError, match=f"^{name}: target probability needs a recommender with the link"):
        explainer.importances(targets_of(setting, "item"), setting.context)


@pytest.mark.parametrize("target", ["probability", "margin"])
@pytest.mark.parametrize("name", [*BY_QUERIES, "exact-contribution"])
def test_awkward_users_stand_alone(awkward, assert_each_unit_stands_alone, name, target):
    setting = type(awkward)(Linked(awkward.model, "softmax"), awkward.profiles, awkward.training)
    explainer = BY_QUERIES.get(name, lambda target: ExactContribution(ExactConfig(target=target)))(target)
    targets = setting.targets([*range(6), 2, 2], [419] * 6 + [401, 402])
    assert_each_unit_stands_alone(explainer, targets, setting.context)


WITH_A_TARGET = ["lime-rs", "shap", "leave-one-out", "exact-contribution", "lxr"]


def skipped(recommender, explainers):
    study = {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": [recommender],
        "explainers": explainers,
        "protocol": {"k": 3, "users": 5, "level": "item", "format": "implicit", "scope": "user-only"},
    }
    return [cell.skipped for cell in plan(study).cells]


@pytest.mark.parametrize("name", ["ease", "item-knn", "diffrec"])
def test_a_probability_of_scores_that_are_no_logits_is_refused_by_the_plan(name):
    configured = [{"name": one, "target": "probability"} for one in WITH_A_TARGET]
    reasons = skipped(name, configured)
    if name == "diffrec":
        assert "needs access weights" in reasons.pop(WITH_A_TARGET.index("exact-contribution"))
    wanted = (
        "target probability needs a recommender with the link sigmoid or softmax, but the scores of "
        f"{name} are no logits (link identity); use target logit or margin"
    )
    assert reasons == [wanted] * len(reasons)


def test_the_plan_allows_every_target_that_the_link_has():
    configured = [{"name": name, "target": "probability"} for name in WITH_A_TARGET]
    assert skipped("mf", configured) == [""] * len(configured)
    for target in ("logit", "margin"):
        configured = [{"name": name, "target": target} for name in WITH_A_TARGET]
        assert skipped("ease", configured) == [""] * len(configured)


def test_the_published_lxr_is_refused_by_the_plan_where_there_is_no_probability():
    paper = {"name": "lxr", "variant": "paper"}
    (reason,) = skipped("ease", [paper])
    assert reason.endswith("the scores of ease are no logits (link identity); use variant cfbench")
    assert skipped("vae", [paper]) == [""]


def test_the_plan_reads_the_link_of_a_class_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "own_recommender.py").write_text(
        "from cfbench_recsys.recommenders.ease import EASE, Config\n"
        "class Counts(EASE):\n    pass\n"
        "class Logits(EASE):\n    link = 'sigmoid'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    configured = [{"name": "leave-one-out", "target": "probability"}]
    (reason,) = skipped({"import": "own_recommender:Counts"}, configured)
    assert "the scores of counts are no logits" in reason
    assert skipped({"import": "own_recommender:Logits"}, configured) == [""]
