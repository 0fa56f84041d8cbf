"""MovieLens 1M with a given two-tower MF: DEL@k and INS@k of Cosine and exact contribution are those on file,
and those of LXR lie between.

Needs the data and the reference weights; skipped where they are not to be had.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_explainers_native.cosine import Config as CosineConfig
from cfbench_explainers_native.cosine import Cosine
from cfbench_explainers_native.exact_contribution import Config as ExactConfig
from cfbench_explainers_native.exact_contribution import ExactContribution
from cfbench_explainers_native.lxr import LXR
from cfbench_explainers_native.lxr import Config as LXRConfig
from cfbench_recsys.ranking import top_k
from cfbench_recsys.targets import Context, Targets

DATA = Path(os.environ.get("CFBENCH_DATA_DIR") or Path(__file__).parents[3] / "shared" / "data")
ML_1M = DATA / "recsys" / "ml-1m.parquet"
GOLDEN = DATA.parent / "reference" / "golden_ml1m_mf"

pytestmark = pytest.mark.skipif(
    not (ML_1M.is_file() and GOLDEN.is_dir()),
    reason="no ml-1m.parquet, or no golden_ml1m_mf in the data folder",
)


class TwoTowerMF:
    """Logit (P x + c) . (Q + d); linear in x."""

    link = "sigmoid"

    def __init__(self, weights):
        self.profile, self.c = weights["profile.weight"].astype(float), weights["profile.bias"].astype(float)
        self.item = weights["item.weight"].astype(float) + weights["item.bias"].astype(float)[:, None]

    def score_profiles(self, profiles):
        return (profiles @ self.profile.T + self.c) @ self.item

    def score_dense(self, profiles):
        import torch

        weight, bias, items = map(torch.from_numpy, (self.profile, self.c, self.item))
        return (profiles @ weight.T + bias) @ items

    def weights(self, rows, columns):
        return np.einsum("d...,d...->...", self.profile[:, rows], self.item[:, columns])


@pytest.fixture(scope="module")
def ml1m():
    import pandas as pd
    from safetensors.numpy import load_file

    table = pd.read_parquet(ML_1M)
    user_ids, users = np.unique(table["user"], return_inverse=True)
    _, items = np.unique(table["item"], return_inverse=True)
    interactions = sparse.csr_matrix((np.ones(len(table)), (users, items)))
    model = TwoTowerMF(load_file(GOLDEN / "two_tower_mf_32.safetensors"))
    explained = np.searchsorted(user_ids, pd.read_csv(GOLDEN / "test_users.csv")["user"].to_numpy())
    others = np.ones(len(user_ids))
    others[explained] = 0.0
    context = Context(
        model, interactions, (sparse.diags(others) @ interactions).tocsr(), functools.partial(generator, 0)
    )
    history = Targets.of(
        interactions, explained, np.zeros((len(explained), 1), int), 1, "item", "user-vector"
    )
    best = top_k(model.score_profiles(interactions[explained]), history.history, history.padding, 1)
    return context, Targets.of(interactions, explained, best, 1, "item", "user-vector")


@pytest.mark.parametrize(
    ("name", "explainer"),
    [("cosine", Cosine(CosineConfig())), ("exact_contribution", ExactContribution(ExactConfig()))],
)
def test_deletion_and_insertion_scores_are_those_on_file(ml1m, name, explainer):
    import pandas as pd

    context, targets = ml1m
    golden = pd.read_csv(GOLDEN / "refined_metrics.csv").set_index(
        ["explainer", "scores", "normalized", "k_e", "metric"]
    )["value"]
    original, scores = insertion_and_deletion(context, targets, explainer)
    for (metric, k), values in scores.items():
        raw, normalized = values.mean(), (values / original).mean()
        assert raw == pytest.approx(golden[name, "logit64", False, k, metric], abs=1e-4)
        assert normalized == pytest.approx(golden[name, "logit64", True, k, metric], abs=1e-4)


@pytest.mark.slow
def test_lxr_lies_between_cosine_and_exact_contribution(ml1m):
    """User by user, the differences at 5 interactions are clear of chance. Six epochs are enough for that."""
    context, targets = ml1m
    lxr = LXR(LXRConfig(epochs=6))
    context = dataclasses.replace(context, state=lxr.prepare(context))
    explainers = (Cosine(CosineConfig()), lxr, ExactContribution(ExactConfig()))
    cosine, learned, exact = (insertion_and_deletion(context, targets, one)[1] for one in explainers)
    for metric, sign in (("INS", 1), ("DEL", -1)):
        for worse, better in ((cosine, learned), (learned, exact)):
            gain = sign * (better[metric, 5] - worse[metric, 5])
            assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))


def insertion_and_deletion(context, targets, explainer):
    """(B,) the score of each target, and (B,) what it is with only, and without, its k most important
    interactions, by ("INS" or "DEL", k)."""
    W = context.model.weights(targets.history[:, :, None], targets.items[:, None, :])[:, :, 0]
    W[targets.padding] = 0.0
    bias = context.model.c @ context.model.item[:, targets.items[:, 0]]
    importances = np.where(targets.padding, -np.inf, explainer.importances(targets, context))
    order = np.argsort(-importances, axis=1, kind="stable")
    cumulated = np.take_along_axis(W, order, axis=1).cumsum(axis=1)

    def sigmoid(logits):
        return 1 / (1 + np.exp(-logits))

    scores = {}
    for k in range(1, 6):
        scores["INS", k] = sigmoid(bias + cumulated[:, k - 1])
        scores["DEL", k] = sigmoid(bias + W.sum(axis=1) - cumulated[:, k - 1])
    return sigmoid(bias + W.sum(axis=1)), scores
