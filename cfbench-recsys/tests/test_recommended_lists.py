"""The lists that a recommender gives, and what is said where its scores are too small to be told apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_recsys.interactions import from_pairs
from cfbench_recsys.recommended_lists import recommended_lists, too_small

PAIRS = [("u0", "a"), ("u1", "b"), ("u2", "c"), ("u2", "d"), ("u2", "e")]
DATA = from_pairs("shop", [user for user, _ in PAIRS], [item for _, item in PAIRS])
ORDER = np.array([0.1, 0.2, 0.3, 0.4, 0.5])


class Scaled:
    """Scores of all users in the order of ``ORDER``; those of profiles with item ``a`` times ``scale``."""

    def __init__(self, scale: float, others: float = 1.0) -> None:
        self.scale, self.others = scale, others

    def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
        has_a = profiles.toarray()[:, :1] > 0
        return ORDER * np.where(has_a, self.scale, self.others)


def lists(model: Scaled) -> tuple[list[list[int]], list[int]]:
    found, lost = recommended_lists(model, DATA, DATA.matrix, np.arange(3), 2, "units of ours on shop")
    return found.tolist(), lost.tolist()


def test_lists_follow_the_scores_and_nothing_is_said() -> None:
    assert lists(Scaled(1.0)) == ([[4, 3], [4, 3], [1, 0]], [])
    assert lists(Scaled(1e-6)) == ([[4, 3], [4, 3], [1, 0]], [])


def test_users_whose_scores_are_too_small_are_counted() -> None:
    found, lost = lists(Scaled(1e-11))
    assert lost == [0] and found[1:] == [[4, 3], [1, 0]]
    assert found[0] == [1, 2], "by index: this is what the note is about"
    assert "scores of 1 of 3 users" in too_small(1, 3)


def test_a_recommender_with_small_scores_only_is_an_error_with_its_name_and_what_to_do() -> None:
    with pytest.raises(UserError, match=r"^units of ours on shop: .*3 of 3 users .*multiply its scores"):
        lists(Scaled(1e-11, 1e-11))
    assert lists(Scaled(0.0, 0.0))[1] == [], "equal scores are the recommender's own ties"


def test_a_user_without_numbers_is_named_as_in_the_data() -> None:
    with pytest.raises(UserError, match="the recommender gives user 'u0' scores that are NaN"):
        lists(Scaled(np.nan))
