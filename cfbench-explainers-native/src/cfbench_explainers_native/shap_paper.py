"""SHAP as papers on recommenders use it: KernelSHAP over clusters of items and the identity of the explained item.

Lundberg & Lee, "A unified approach to interpreting model predictions", NIPS 2017, as applied by Barkan et al., "A
counterfactual framework for learning and evaluating explanations for recommender systems", WWW 2024 (repository
DeltaLabTLV/LXR, commit 5b309d3, MLP_SHAP_clusters.ipynb).

The items are put into C clusters by k-means on the columns of the training interactions (Euclidean distance). The input
of the explained function g has C + 1 features: an item y, and for each cluster whether the user has any of its items. g
replaces the profile by *all* items of these clusters and returns f(x)_y, the value that the recommender gives to y
(``links.py``). Background: ``background`` random training users b, each with the first recommendation y_b. For a set S of
features, taken from the explained user, the others from the background,

    v(S) = mean_b g(features of the user in S, features of b outside of S)

and phi are the Shapley values of v. Each interaction has the value of its cluster; that of the item feature is unused.
With 10 clusters, 2^11 - 2 coalitions are fewer than KernelSHAP's budget of 2 * 11 + 2048: it enumerates all of them, so
that its weighted regression is solved by the Shapley values themselves. They are computed here from the definition, for up
to 12 clusters.

``profile: history`` (preset ``cfexprec``) is the function that the code of CFExpRec explains (repository L2R-UET/CFExpRec,
commit 85b876f, shap.py): the features are the C clusters, g keeps the user's *own* items of these clusters and returns
f(x)_y, and the background has no part but its clusters. A user whose items are in one cluster has importances that are all
equal. Profiles of whole clusters, as above, are of a thousand items where k-means puts nearly all items into one cluster;
a recommender with the sigmoid as its link, such as MF, gives 0 or 1 to each of them, so that all importances are 0.

Hyperparameters: 10 clusters, 50 background users, k-means with 10 starts.

Adaptations: training users are those who are not explained; the mean over the listed items at list level. The notebook for
VAE explains another function (the mean value of the items of each cluster, averaged over clusters, in which the explained
item has no part); here the function above is used for all recommenders. KernelSHAP's selection of features by a
regularised regression, which some versions of the package shap apply by default, is off. Needs a recommender that
scores profiles: g asks for profiles of no user.

Agreement with the authors' wrapper and KernelExplainer of the package shap, on the same clusters and background
(benchmarks/authors_native.py): on ml-100k with MF, 20 users, K = 5, the order of the importances and all 100 answers (the
smallest prefix, PN-S 0.92, 11.7 edits) are identical.

When it misleads: profiles of whole clusters are far from those of users, and all items of a cluster are tied.
Cost: 2^C model queries once for all users, and 2^(C + 1) * ``background`` values for each unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, cast

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError
from cfbench_explainers_native.shapley_values import Enumeration, enumeration
from cfbench_explainers_native.shared import mean_over_targets, rounded
from cfbench_recsys.contracts import ProfileRecommender
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.links import link_of, linked_scores, values
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Context, Targets

STARTS = 10
"""Of k-means; the one with the least sum of squared distances is used."""

ROUNDS = 300
"""Of k-means, at most."""

PROFILES_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code."""

    clusters: Annotated[int, Range(minimum=1, maximum=12), Help("clusters of items")] = 10
    background: Annotated[int, Range(minimum=1), Help("training users to compare with")] = 50
    profile: Annotated[
        Literal["catalogue", "history"],
        Help(
            "items that a cluster stands for: all of it, as in the code of LXR; the user's own, as in CFExpRec's"
        ),
    ] = "catalogue"


@dataclass(frozen=True)
class Background:
    """Features of n training users.

    Attributes:
        clusters: (n, C) whether the user has any of its items; items: (n,) the first recommendation.
    """

    clusters: BoolArray
    items: IntArray


class PaperShap:
    def __init__(self, options: PaperOptions) -> None:
        self.options = options

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) Shapley values of the clusters of the interactions."""
        count = self.options.clusters
        stream = context.generator("shap", "clusters")
        clusters = context.cached("clusters", lambda: clusters_of(context.training, count, stream))
        background = context.cached("background", lambda: self._background(clusters, context))
        if self.options.profile == "history":
            return rounded(of_own_items(targets, clusters, background.clusters, context))
        table = context.cached("table", lambda: values_of_patterns(clusters, count, context))
        design = Enumeration(count + 1)
        found = np.zeros(targets.history.shape)
        for unit, items in enumerate(targets.items):
            history = targets.history[unit, ~targets.padding[unit]]
            own = np.isin(np.arange(count), clusters[history])
            responses = coalition_values(own, items, design.coalitions, background, table)
            found[unit, : len(history)] = design.values(responses)[1:][clusters[history]]
        return rounded(found)

    def _background(self, clusters: IntArray, context: Context) -> Background:
        """Random training users to whom something can be recommended.

        Raises:
            UserError: if there is none.
        """
        known = np.flatnonzero(np.diff(context.training.indptr))
        size = min(self.options.background, len(known))
        users = np.sort(context.generator("shap", "background").choice(known, size=size, replace=False))
        blank = Targets.of(
            context.training, users, np.zeros((size, 1), dtype=np.int64), 1, "item", "user-vector"
        )
        first = np.empty(size, dtype=np.int64)
        for rows, scores in score_blocks(context.model, Edits.nothing(users), context.training):
            first[rows] = top_k(scores, blank.history[rows], blank.padding[rows], 1)[:, 0]
        members = np.eye(self.options.clusters)[clusters]
        some = first >= 0
        if not some.any():
            raise UserError(
                "shap: variant paper compares with users who are not explained, and there are none to whom something "
                "can be recommended; explain fewer ('protocol.users') or use variant cfbench"
            )
        has: BoolArray = context.training[users[some]] @ members > 0
        return Background(has, first[some])


def of_own_items(targets: Targets, clusters: IntArray, background: BoolArray, context: Context) -> FloatArray:
    """(B, H) Shapley values where g keeps the user's own items of the clusters (``profile: history``).

    background (n, C): the clusters of the background users. A cluster of which the user has no item changes no profile, so
    its value is 0 and it is no player.
    """
    found = np.zeros(targets.history.shape)
    users, owners = np.unique(targets.users, return_inverse=True)
    for owner, user in enumerate(users.tolist()):
        units = np.flatnonzero(owners == owner)
        history = targets.history[units[0], ~targets.padding[units[0]]]
        own, player = np.unique(clusters[history], return_inverse=True)
        design = enumeration(len(own))
        retained = design.coalitions[:, player]
        edited = np.full(len(retained), user)
        edits = Edits.removals(edited, np.broadcast_to(history, retained.shape), ~retained)
        outputs = _outputs(edits, [targets.items[unit] for unit in units], context)
        joined = (design.coalitions[:, None] | background[:, own]) @ (1 << np.arange(len(own)))  # (E, n)
        for unit, of_coalitions in zip(units, outputs, strict=True):
            shares = design.values(of_coalitions[joined].mean(axis=1))
            found[unit, : len(history)] = shares[player]
    return found


def _outputs(edits: Edits, items: Sequence[IntArray], context: Context) -> FloatArray:
    """(U, E) f(x)_y under E edits for U units, the mean over the items (T,) of each."""
    link = link_of(context.model)
    outputs = np.empty((len(items), len(edits)))
    for block, scores in score_blocks(context.model, edits, context.interactions):
        rows = np.arange(len(scores))
        for unit, explained in enumerate(items):
            linked = linked_scores(
                scores, rows, np.broadcast_to(explained, (len(rows), len(explained))), link
            )
            outputs[unit, block] = mean_over_targets(values(linked, link))
    return outputs


def values_of_patterns(clusters: IntArray, count: int, context: Context) -> FloatArray:
    """(2^C, items) f(x) for the profile x of all items of the clusters whose bits are set."""
    patterns = (np.arange(2**count)[:, None] >> np.arange(count)) % 2
    link, model = link_of(context.model), cast("ProfileRecommender", context.model)
    found = np.empty((len(patterns), len(clusters)))
    every = np.arange(len(clusters))
    for start in range(0, len(patterns), PROFILES_AT_ONCE):
        part = patterns[start : start + PROFILES_AT_ONCE]
        profiles = scipy.sparse.csr_matrix(part[:, clusters].astype(np.float64))
        scores = model.score_profiles(profiles)
        rows = np.arange(len(part))
        items = np.broadcast_to(every, scores.shape)
        found[start : start + len(part)] = values(linked_scores(scores, rows, items, link), link)
    return found


def coalition_values(
    own: BoolArray, items: IntArray, coalitions: BoolArray, background: Background, table: FloatArray
) -> FloatArray:
    """(E,) v(S) of coalitions (E, C + 1), whose first member is the item; the mean over ``items`` (T,).

    own (C,): the clusters of the explained user; table: see :func:`values_of_patterns`.
    """
    bits = 1 << np.arange(len(own))
    from_user = coalitions[:, 1:]
    patterns = (from_user & own) @ bits
    patterns = patterns[:, None] + ~from_user @ (background.clusters * bits).T  # (E, n)
    of_background = table[patterns, background.items].mean(axis=1)
    of_item = mean_over_targets(np.stack([table[patterns, item].mean(axis=1) for item in items], axis=-1))
    found: FloatArray = np.where(coalitions[:, 0], of_item, of_background)
    return found


def clusters_of(training: scipy.sparse.csr_matrix, clusters: int, generator: np.random.Generator) -> IntArray:
    """(items,) the cluster of each item: k-means on the columns of ``training`` (users, items), several starts."""
    points = training.T.tocsr().astype(np.float64)
    best, lowest = np.zeros(points.shape[0], dtype=np.int64), np.inf
    for _ in range(STARTS):
        found, inertia = _k_means(points, clusters, generator)
        if inertia < lowest:
            best, lowest = found, inertia
    return best


def _k_means(
    points: scipy.sparse.csr_matrix, clusters: int, generator: np.random.Generator
) -> tuple[IntArray, float]:
    """Cluster of each point, and the sum of squared distances. Starts as k-means++ does."""
    squares = np.asarray(points.multiply(points).sum(axis=1)).ravel()
    centres = points[[int(generator.integers(points.shape[0]))]].toarray()
    while len(centres) < clusters:
        nearest = np.maximum(_distances(points, squares, centres).min(axis=1), 0.0)
        if not nearest.sum() > 0:
            break  # there are fewer different points than clusters
        drawn = generator.choice(points.shape[0], p=nearest / nearest.sum())
        centres = np.concatenate([centres, points[[drawn]].toarray()])
    found = np.full(points.shape[0], -1)
    for _ in range(ROUNDS):
        distances = rounded(_distances(points, squares, centres))  # so that equally near centres tie
        before, found = found, distances.argmin(axis=1)
        if np.array_equal(before, found):
            break
        sizes = np.bincount(found, minlength=len(centres))
        members = scipy.sparse.csr_matrix(
            (np.ones(len(found)), (found, np.arange(len(found)))), (len(centres), len(found))
        )
        means = (members @ points).toarray() / np.maximum(sizes, 1)[:, None]
        centres = np.where(sizes[:, None] > 0, means, centres)
    return found.astype(np.int64), float(distances.min(axis=1).sum())


def _distances(points: scipy.sparse.csr_matrix, squares: FloatArray, centres: FloatArray) -> FloatArray:
    """(points, centres) squared Euclidean distances."""
    found: FloatArray = squares[:, None] - 2 * (points @ centres.T) + (centres**2).sum(axis=1)
    return found
