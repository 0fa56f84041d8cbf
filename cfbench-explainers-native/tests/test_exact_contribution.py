from __future__ import annotations

import numpy as np
import pytest

from cfbench_explainers_native.exact_contribution import Config, ExactContribution
from cfbench_recsys.edits import Edits
from cfbench_recsys.scoring import score_once


def test_an_interaction_counts_its_weight_for_the_item(world, linear):
    W = [[0, 0, 0.5, 0.1], [0, 0, -1.0, 0.3], [0, 0, 0, 0], [0, 0, 0, 0]]
    setting = world(linear(W), [[0, 1], [1]], 4)
    explainer = ExactContribution(Config())
    by_item = explainer.importances(setting.targets([0, 1, 0], [2, 2, 3]), setting.context)
    assert by_item.tolist() == [[0.5, -1.0], [-1.0, 0.0], [0.1, 0.3]]
    by_list = explainer.importances(setting.targets([0], [[2, 3]], k=2), setting.context)
    assert by_list[0] == pytest.approx([0.3, -0.35])


@pytest.mark.parametrize("count", [1, 3])
def test_it_is_the_drop_of_the_logit(world, linear, count):
    setting = world(linear(), [[0, 2, 5], [1], range(9)], 12)
    targets = setting.targets([0, 1, 2], [[9, 10, 11][:count]] * 3, k=count)
    importances = ExactContribution(Config()).importances(targets, setting.context)
    for unit in range(3):
        for place in np.flatnonzero(~targets.padding[unit]):
            removed = np.zeros_like(targets.padding[unit : unit + 1])
            removed[0, place] = True
            user = targets.users[unit : unit + 1]
            without = Edits.removals(user, targets.history[unit : unit + 1], removed)
            before = score_once(setting.model, Edits.nothing(user), setting.profiles)
            after = score_once(setting.model, without, setting.profiles)
            drop = (before - after)[0, targets.items[unit]].mean()
            assert importances[unit, place] == pytest.approx(drop, abs=1e-9)


def test_no_other_order_deletes_or_inserts_better(world, linear):
    """DEL@c is the logit without the c most important, INS@c with only them: over all sets of c items."""
    from itertools import combinations

    setting = world(linear(seed=3), [[0, 2, 5, 6, 8]], 12)
    W, history = setting.model.W, [0, 2, 5, 6, 8]
    importances = ExactContribution(Config()).importances(setting.targets([0], [11]), setting.context)[0]
    order = [history[place] for place in np.argsort(-importances)]
    for count in range(1, 5):
        with_only = {retained: W[list(retained), 11].sum() for retained in combinations(history, count)}
        assert with_only[tuple(sorted(order[:count]))] == pytest.approx(max(with_only.values()))
        without = {gone: W[list(set(history) - set(gone)), 11].sum() for gone in combinations(history, count)}
        assert without[tuple(sorted(order[:count]))] == pytest.approx(min(without.values()))


def test_awkward_users_stand_alone(awkward, assert_each_unit_stands_alone):
    targets = awkward.targets(range(6), [419] * 6)
    assert_each_unit_stands_alone(ExactContribution(Config()), targets, awkward.context)
