from __future__ import annotations

import numpy as np
import pytest

from cfbench_explainers_native.exact_contribution import Config as ExactConfig
from cfbench_explainers_native.exact_contribution import ExactContribution
from cfbench_explainers_native.leave_one_out import Config, LeaveOneOut
from cfbench_recsys.scoring import BLOCK


def test_an_interaction_counts_how_far_the_logit_falls_without_it(world):
    class Both:
        """Item 2 gets one point for item 0, and two more if items 0 and 1 are both there."""

        def score_profiles(self, profiles):
            x = profiles.toarray()
            scores = np.zeros_like(x)
            scores[:, 2] = x[:, 0] + 2 * x[:, 0] * x[:, 1]
            return scores

    setting = world(Both(), [[0, 1], [0, 3]], 4)
    importances = LeaveOneOut(Config()).importances(setting.targets([0, 1], [2, 2]), setting.context)
    assert importances.tolist() == [[3.0, 2.0], [1.0, 0.0]]


@pytest.mark.parametrize("count", [1, 3])
def test_on_a_linear_logit_it_is_the_exact_contribution(awkward, count):
    users = [0, 1, 2, 2, 5, 3] if count == 1 else [0, 1, 2, 3]
    items = [[419, 418, 417][:count] if user != 1 else [419] * count for user in users]
    targets = awkward.targets(users, items, k=count)
    found = LeaveOneOut(Config()).importances(targets, awkward.context)
    exact = ExactContribution(ExactConfig()).importances(targets, awkward.context)
    assert np.abs(found - exact).max() < 1e-9


def test_an_interaction_without_effect_counts_exactly_nothing(world, linear):
    W = np.random.default_rng(0).normal(size=(12, 12))
    W[4] = 0.0
    setting = world(linear(W, bias=np.full(12, 1 / 3)), [range(10)], 12)
    importances = LeaveOneOut(Config()).importances(setting.targets([0], [11]), setting.context)
    assert importances[0, 4] == 0.0


def test_all_items_of_a_user_share_the_forward_passes(world, linear):
    setting = world(linear(items=200), [range(128)], 200)
    LeaveOneOut(Config()).importances(setting.targets([0] * 64, range(130, 194)), setting.context)
    assert setting.model.scored == 128 + BLOCK, "128 removals, and 64 units of the untouched profile"


def test_awkward_users_stand_alone(awkward, curved, assert_each_unit_stands_alone):
    targets = awkward.targets([*range(6), 2, 2], [419] * 6 + [401, 402])
    assert_each_unit_stands_alone(LeaveOneOut(Config()), targets, awkward.context)
    bent = type(awkward)(curved(420, 1), awkward.profiles, awkward.training)
    assert_each_unit_stands_alone(LeaveOneOut(Config()), targets, bent.context)
