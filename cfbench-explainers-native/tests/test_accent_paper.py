"""ACCENT as published, against autograd over both vectors, and sets that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from cfbench_core.errors import UserError
from cfbench_core.testing import Subject, check_component
from cfbench_explainers_native.accent import SPEC, Accent, Config
from cfbench_explainers_native.accent_paper import Examples, Influences, PaperOptions, shrink
from cfbench_recsys.edits import Edits
from cfbench_recsys.testing import checks

HISTORIES = [[0, 1, 2, 3], [1, 4, 6], [0, 5], [2, 4, 5, 7], [3, 6]]
OPTIONS = PaperOptions(damping=1e-3, weight_decay=0.05)


class Factors:
    """Logit p_u . q_i with free vectors of users, as a recommender on a graph."""

    def __init__(self, link="sigmoid", users=5, items=9, dimensions=3):
        draw = np.random.default_rng(3)
        self.P, self.Q = draw.normal(size=(users, dimensions)), draw.normal(size=(items, dimensions))
        self.link = link

    def user_embeddings(self):
        return self.P.copy()

    def item_embeddings(self):
        return self.Q.copy()

    def score_edits(self, edits: Edits):
        return self.P[edits.users] @ self.Q.T


def literal_influences(model, histories, user, candidate, options):
    """By autograd: the Hessian over (p_u, q_c) of the loss of all examples that touch them, and one gradient each."""
    pairs = [(user, item) for item in histories[user]]
    pairs += [(other, candidate) for other, own in enumerate(histories) if other != user and candidate in own]
    d = model.P.shape[1]
    P, Q = torch.from_numpy(model.P), torch.from_numpy(model.Q)
    theta = torch.cat([P[user], Q[candidate]])

    def logit(theta, pair):
        p = theta[:d] if pair[0] == user else P[pair[0]]
        q = theta[d:] if pair[1] == candidate else Q[pair[1]]
        return p @ q

    def total(theta, examples):
        logits = torch.stack([logit(theta, pair) for pair in examples])
        losses = softplus(-logits) if model.link != "identity" else (logits - 1) ** 2
        return losses.mean() + options.weight_decay / 2 * (theta @ theta)

    hessian = torch.autograd.functional.hessian(lambda theta: total(theta, pairs), theta)
    hessian = hessian + options.damping * torch.eye(2 * d, dtype=torch.float64)
    of_score = torch.autograd.functional.jacobian(lambda theta: logit(theta, (user, candidate)), theta)
    direction = torch.linalg.solve(hessian, of_score)
    gradients = [
        torch.autograd.functional.jacobian(lambda theta, pair=pair: total(theta, [pair]), theta)
        for pair in pairs[: len(histories[user])]
    ]
    return np.array([-float(direction @ gradient) / len(pairs) for gradient in gradients])


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "identity"])
def test_the_influences_are_those_of_the_hessian_over_both_vectors(make_world, link):
    model = Factors(link)
    setting = make_world(model, HISTORIES, 9, HISTORIES)
    history = np.array(HISTORIES[0])
    found = Influences.of(model.P[0], np.ones(3), history, Examples.of(setting.context), OPTIONS)
    for candidate in (4, 5, 8):
        wanted = literal_influences(model, HISTORIES, 0, candidate, OPTIONS)
        assert found.on(candidate) == pytest.approx(wanted, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize(
    ("gap", "gaps", "removed", "left"),
    [
        (1.0, [0.25, 2.0, 0.5], [1], -1.0),
        (2.25, [0.5, -1.0, 2.0, 0.0], [0, 2], -0.25),
        (3.0, [0.5, -1.0, 2.0, 0.0], [0, 2, 3], 0.5),
        (1.0, [1.0, -0.5], [0], 0.0),
    ],
)
def test_removals_stop_when_the_rival_passes_or_none_narrows_the_gap(gap, gaps, removed, left):
    found, chosen = shrink(gap, np.array(gaps))
    assert np.flatnonzero(chosen).tolist() == removed
    assert found == left


def by_all_rivals(model, histories, user, item, rivals, options):
    """The smallest set, of equal ones that with the lowest gap, by the literal influences."""
    scores = model.P[user] @ model.Q.T
    own = literal_influences(model, histories, user, item, options)
    found = []
    for rival in rivals:
        narrowing = own - literal_influences(model, histories, user, rival, options)
        gap, chosen = scores[item] - scores[rival], []
        for place in np.argsort(-narrowing):
            if narrowing[place] < 0:
                break
            chosen.append(histories[user][place])
            gap -= narrowing[place]
            if gap < 0:
                break
        if gap < 0:
            found.append((len(chosen), gap, sorted(chosen)))
    return min(found)[2] if found else []


def test_the_answer_is_the_smallest_set_over_the_items_behind_the_explained_one(make_world):
    model = Factors()
    setting = make_world(model, HISTORIES, 9, HISTORIES)
    answers = 0
    for user, k in ((0, 3), (1, 3), (3, 4), (4, 2)):
        scores = model.P[user] @ model.Q.T
        ranked = [i for i in np.argsort(-scores).tolist() if i not in HISTORIES[user]]
        for place, item in enumerate(ranked[:k]):
            behind = ranked[place + 1 : place + k]
            wanted = by_all_rivals(model, HISTORIES, user, item, behind, PaperOptions())
            targets = setting.targets([user], [item], k=k)
            edits = Accent(Config(variant="paper")).counterfactuals(targets, setting.context)
            assert sorted(edits.edge_items.tolist()) == wanted
            answers += bool(wanted)
    assert answers > 2


def test_options_of_one_variant_are_refused_by_the_other():
    with pytest.raises(UserError, match="paper: these are options of variant: paper"):
        Config(paper=PaperOptions(weight_decay=0.1))
    with pytest.raises(UserError, match="effect: is an option of variant: cfbench"):
        Config(variant="paper", effect="influence")


def test_each_unit_stands_alone(make_world, assert_each_unit_stands_alone):
    setting = make_world(Factors(), HISTORIES, 9, HISTORIES)
    targets = setting.targets([0, 1, 2, 3, 4, 0], [8, 8, 8, 8, 8, 5], k=3)
    assert_each_unit_stands_alone(Accent(Config(variant="paper")), targets, setting.context)


def test_it_conforms():
    report = check_component(Subject(SPEC, Config(variant="paper")), checks=checks["explainer"])
    assert report.passed, str(report)


def test_interactions_that_must_stay_are_examples_of_the_training_all_the_same(make_world):
    setting = make_world(Factors(), HISTORIES, 9, HISTORIES[1:])
    target = setting.targets([0], [4], 3)
    free = replace(target, history=target.history[:, 1:], padding=target.padding[:, 1:], fixed=(0,))
    method = Accent(Config(variant="paper", paper=PaperOptions(rivals=1)))
    whole, part = (method.importances(some, setting.context) for some in (target, free))
    np.testing.assert_allclose(part[0], whole[0, 1:], atol=1e-8)
