"""What the scores of a recommender mean."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from cfbench_core.errors import UserError
from cfbench_recsys.links import link_of, linked_scores, log_normalizers, log_values, relative_values, values


class Model:
    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


def test_a_recommender_that_declares_no_link_has_the_identity() -> None:
    assert link_of(Model()) == "identity"
    assert link_of(Model(link="softmax")) == "softmax"


def test_another_link_is_an_error_of_one_line() -> None:
    with pytest.raises(
        UserError, match=r"^Model: link must be one of sigmoid, softmax, identity, not 'probit'$"
    ):
        link_of(Model(link="probit"))


def test_values_are_those_of_scipy() -> None:
    scores = np.random.default_rng(0).normal(0, 30, (7, 20))
    rows, items = np.array([0, 3, 3, 6]), np.array([[1, 2], [0, 19], [5, 5], [7, 8]])

    def found(link: str) -> np.ndarray:
        return values(linked_scores(scores, rows, items, link), link)

    assert found("sigmoid") == pytest.approx(expit(scores)[rows[:, None], items], rel=1e-12)
    assert found("softmax") == pytest.approx(softmax(scores, axis=1)[rows[:, None], items], rel=1e-12)
    assert found("identity") == pytest.approx(scores[rows[:, None], items])


def test_extreme_scores_neither_overflow_nor_lose_their_logarithm() -> None:
    scores = np.array([[1e4, 1e4 - 2000.0, -1e300], [-1e4, -1e4, -1e4]])
    assert log_normalizers(scores) == pytest.approx([1e4, -1e4 + np.log(3)])
    linked = linked_scores(scores, np.array([0, 1]), np.array([[1], [1]]), "softmax")
    assert linked[:, 0] == pytest.approx(log_softmax(scores, axis=1)[:, 1])
    assert log_values(linked, "softmax") is linked
    assert relative_values(linked - np.log(2), linked, "softmax") == pytest.approx(0.5)


def test_the_normalizer_of_a_row_does_not_depend_on_the_other_rows_or_the_layout() -> None:
    scores = np.random.default_rng(1).normal(size=(64, 1001))
    together = log_normalizers(scores)
    assert np.array_equal(together, log_normalizers(np.asfortranarray(scores)))
    assert np.array_equal(together, [log_normalizers(row[None])[0] for row in scores])


def test_a_share_of_a_score_that_is_not_positive_is_undefined() -> None:
    shares = relative_values(np.array([1.0, 1.0, -1.0, 0.0]), np.array([2.0, 0.0, -2.0, 4.0]), "identity")
    assert shares[[0, 3]].tolist() == [0.5, 0.0]
    assert np.isnan(shares[[1, 2]]).all()
