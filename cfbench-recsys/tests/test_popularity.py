"""Popularity: the training counts, for every user."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.quality import evaluate
from cfbench_recsys.recommenders.popularity import Config, Popularity
from cfbench_recsys.splits import Holdout, Split
from cfbench_recsys.testing.world import split

no_users = Holdout(np.empty(0, dtype=np.int64), sparse.csr_matrix((0, 3)), sparse.csr_matrix((0, 3)))


def test_three_items_by_hand() -> None:
    train = sparse.csr_matrix([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    model = Popularity(Config())
    model.fit(Split(train, train, no_users, no_users, np.arange(2)), generator)
    assert model.score_profiles(train).tolist() == [[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]]


def test_only_training_data_count() -> None:
    data = split()
    model = Popularity(Config())
    model.fit(data, generator)
    scores = model.score_profiles(data.test.inputs)
    for item in range(data.train.shape[1]):
        users = [user for user in range(data.train.shape[0]) if data.train[user, item]]
        assert (scores[:, item] == len(users)).all()
    assert scores.dtype == np.float64


def test_no_profile_changes_the_scores() -> None:
    data = split()
    model = Popularity(Config())
    model.fit(data, generator)
    empty = sparse.csr_matrix((2, data.train.shape[1]))
    assert np.array_equal(model.score_profiles(empty), model.score_profiles(data.profiles[:2]))


def test_it_is_linear_in_the_profile_with_weights_zero() -> None:
    model = Popularity(Config())
    model.load_state({"count": np.array([2.0, 1.0, 0.0])}, sparse.csr_matrix((1, 3)))
    found = model.weights(np.array([[[0], [2]]]), np.array([[[1, 2, 1]]]))
    assert found.shape == (1, 2, 3)
    assert not found.any()


def test_the_summary_has_the_validation_quality() -> None:
    data = split()
    model = Popularity(Config())
    summary = model.fit(data, generator)
    assert summary["validation"] == evaluate(model, data.validation, data.profiles)


def test_a_loaded_model_scores_as_the_fitted_one_and_refuses_other_items() -> None:
    data = split()
    model, loaded = Popularity(Config()), Popularity(Config())
    model.fit(data, generator)
    loaded.load_state(model.state(), data.profiles)
    assert np.array_equal(model.score_profiles(data.profiles), loaded.score_profiles(data.profiles))
    with pytest.raises(UserError, match=r"count must be \(5,\), is \(18,\)"):
        loaded.load_state(model.state(), sparse.csr_matrix((1, 5)))
