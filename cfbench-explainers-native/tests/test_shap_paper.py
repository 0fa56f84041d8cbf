"""SHAP over clusters of items, against all orders of its features."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.api import prepare
from cfbench_core.errors import UserError
from cfbench_explainers_native.shap import Config, Shap
from cfbench_explainers_native.shap_paper import (
    Background,
    PaperOptions,
    clusters_of,
    coalition_values,
    of_own_items,
    values_of_patterns,
)

PAIRS = [[0, 1], [0, 1], [2, 3], [2, 3, 4], [4, 5], [4, 5], [0, 1], [2, 3]]


def explain(setting, targets, **options):
    return Shap(Config(variant="paper", paper=PaperOptions(**options))).importances(targets, setting.context)


def rows_of(histories, items):
    rows = np.zeros((len(histories), items))
    for row, own in enumerate(histories):
        rows[row, own] = 1
    return sparse.csr_matrix(rows)


def test_items_of_the_same_users_are_in_one_cluster():
    found = clusters_of(rows_of(PAIRS, 6), 3, np.random.default_rng(0))
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[4] == found[5]
    assert len(set(found.tolist())) == 3


def test_there_may_be_fewer_items_than_clusters():
    found = clusters_of(sparse.csr_matrix(np.eye(3)), 10, np.random.default_rng(0))
    assert len(set(found.tolist())) == 3
    assert clusters_of(sparse.csr_matrix((4, 5)), 10, np.random.default_rng(0)).tolist() == [0] * 5


def test_the_clusters_are_as_compact_as_those_of_scikit_learn():
    cluster = pytest.importorskip("sklearn.cluster")
    training = (np.random.default_rng(1).random((40, 30)) < 0.3).astype(float)
    found = clusters_of(sparse.csr_matrix(training), 4, np.random.default_rng(0))
    means = np.array([training.T[found == c].mean(axis=0) for c in range(4)])
    inertia = ((training.T - means[found]) ** 2).sum()
    wanted = cluster.KMeans(4, n_init=10, random_state=0).fit(training.T).inertia_
    assert inertia <= 1.05 * wanted


def test_the_values_are_the_mean_over_all_orders_of_the_features(world, curved):
    """Literally: features of the user and of the background, profiles of whole clusters, one order after the other."""
    clusters, users = np.array([0, 1, 2, 0, 1, 2, 0, 1]), [[0, 1], [2], [1, 2, 4]]
    setting = world(curved(8, 3), [[0, 4]], 8, users)
    setting.model.link = "sigmoid"
    background = Background(np.array([[True, True, False], [False, False, True]]), np.array([6, 3]))
    own, item = np.array([True, True, False]), 5

    def f(on, target):
        profile = sparse.csr_matrix(on[clusters].astype(float)[None])
        return 1 / (1 + np.exp(-setting.model.score_profiles(profile)[0, target]))

    def v(members):
        found = []
        for on, target in zip(background.clusters, background.items, strict=True):
            mixed = np.array([own[c] if c + 1 in members else on[c] for c in range(3)])
            found.append(f(mixed, item if 0 in members else target))
        return np.mean(found)

    wanted = np.zeros(4)
    orders = list(itertools.permutations(range(4)))
    for order in orders:
        for place, player in enumerate(order):
            wanted[player] += v(set(order[: place + 1])) - v(set(order[:place]))
    coalitions = (np.arange(16)[:, None] >> np.arange(4)) % 2 == 1
    table = values_of_patterns(clusters, 3, setting.context)
    responses = coalition_values(own, np.array([item]), coalitions, background, table)
    for members, response in zip(coalitions, responses, strict=True):
        assert response == pytest.approx(v(set(np.flatnonzero(members).tolist())), abs=1e-12)
    from cfbench_explainers_native.shapley_values import Enumeration

    assert Enumeration(4).values(responses) == pytest.approx(wanted / len(orders), abs=1e-12)


def test_each_item_gets_the_value_of_its_cluster(world, linear):
    setting = world(linear(items=8), [[0, 1, 2, 5]], 8, PAIRS)
    found = explain(setting, setting.targets([0], [7]), clusters=3)[0]
    assert found[0] == found[1]
    assert len(set(found.tolist())) == 3


def test_it_is_skipped_on_a_graph():
    study = {"suite": "recsys", "data": "debian-python", "recommenders": ["lightgcn"]}
    cells = prepare({**study, "explainers": [{"name": "shap", "variant": "paper"}]}).plan.cells
    assert all("needs scope user-vector" in cell.skipped for cell in cells)


def test_options_of_one_variant_are_refused_by_the_other():
    with pytest.raises(UserError, match="samples: is an option of variant: cfbench"):
        Config(variant="paper", samples=64)
    with pytest.raises(UserError, match="paper: these are options of variant: paper"):
        Config(paper=PaperOptions(clusters=4))


def test_with_the_users_own_items_the_values_are_the_mean_over_all_orders_of_the_clusters(world, curved):
    """Literally: the user's items in the clusters that the user or the background has, all clusters as players."""
    clusters, history = np.array([0, 1, 2, 0, 3, 2, 0, 1]), [0, 2, 3, 5, 7]
    setting = world(curved(8, 3), [history], 8)
    setting.model.link = "sigmoid"
    background = np.array([[True, False, False, True], [False, False, True, False]])

    def v(members, target):
        found = []
        for on in background:
            joined = [item for item in history if clusters[item] in members or on[clusters[item]]]
            found.append(1 / (1 + np.exp(-setting.model.score_profiles(rows_of([joined], 8))[0, target])))
        return np.mean(found)

    def literal(target):
        orders = list(itertools.permutations(range(4)))
        wanted = np.zeros(4)
        for order in orders:
            for place, player in enumerate(order):
                wanted[player] += v(set(order[: place + 1]), target) - v(set(order[:place]), target)
        return wanted[clusters[history]] / len(orders)

    single = of_own_items(setting.targets([0, 0], [4, 6]), clusters, background, setting.context)
    assert single[0] == pytest.approx(literal(4), abs=1e-12)
    assert single[1] == pytest.approx(literal(6), abs=1e-12)
    listed = of_own_items(setting.targets([0], [[4, 6]], k=2), clusters, background, setting.context)
    assert listed[0] == pytest.approx((literal(4) + literal(6)) / 2, abs=1e-12)
    assert len(set(np.round(listed[0], 9))) == 3, "one value for each cluster of the user"


def test_a_user_whose_items_are_in_one_cluster_has_equal_importances(world, linear):
    setting = world(linear(items=8), [[0, 1], [0, 4]], 8, PAIRS)
    found = explain(setting, setting.targets([0, 1], [7, 7]), clusters=3, profile="history")
    assert found[0, 0] == found[0, 1]
    assert found[1, 0] != found[1, 1]


def test_profiles_of_whole_clusters_saturate_a_sigmoid_where_those_of_own_items_do_not(world):
    """Why SHAP as published has no order on Amazon Fashion: every background user has items of the largest cluster."""

    class Falling:
        link = "sigmoid"

        def score_profiles(self, profiles):
            return np.tile(-0.2 * profiles.toarray().sum(axis=1)[:, None], (1, 400))

    training = [[item] for item in range(396)] + [[item, 396, 397] for item in range(40)]
    setting = world(Falling(), [[0, 396]], 400, training)
    targets = setting.targets([0], [399])
    assert explain(setting, targets, clusters=2).tolist() == [[0.0, 0.0]]
    assert np.ptp(explain(setting, targets, clusters=2, profile="history")) > 0.01


@pytest.mark.parametrize("profile", ["catalogue", "history"])
@pytest.mark.parametrize("training", [[], [[], []], [range(6), range(6)]])
def test_without_anybody_to_compare_with_it_says_so(world, linear, training, profile):
    """All users are explained, or the others have every item."""
    setting = world(linear(items=6), [[0, 1], [2]], 6, training)
    with pytest.raises(UserError, match=r"users who are not explained, and there are none .*protocol\.users"):
        explain(setting, setting.targets([0, 1], [4, 5]), clusters=2, profile=profile)
