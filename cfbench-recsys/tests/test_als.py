"""ALS: against literal normal equations, its own optimality, and the library ``implicit`` where it is installed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.recommenders.als import ALS, ITEMS, Config
from cfbench_recsys.splits import Holdout, Split
from cfbench_recsys.testing.world import split

RANDOM = np.random.default_rng(5)
PROFILES = sparse.csr_matrix((RANDOM.random((30, 20)) < 0.25).astype(np.float64))
FACTORS = RANDOM.standard_normal((20, 4))


def given(**options: float) -> ALS:
    model = ALS(Config(dimensions=4, **options))
    model.load_state({ITEMS: FACTORS}, PROFILES)
    return model


def literal_factors(profile: np.ndarray, confidence: float, regularization: float) -> np.ndarray:
    """Equation 4 of the paper: (Y^T C Y + lambda I)^-1 Y^T C x, with the whole diagonal matrix C."""
    weights = np.diag(np.where(profile > 0, confidence, 1.0))
    left = FACTORS.T @ weights @ FACTORS + regularization * np.eye(4)
    found: np.ndarray = np.linalg.inv(left) @ FACTORS.T @ weights @ profile
    return found


@pytest.mark.parametrize(
    ("confidence", "regularization"), [(1.0, 0.5), (10.0, 2.0), (40.0, 0.01), (4.0, 0.0)]
)
def test_factors_of_a_profile_are_those_of_the_paper(confidence: float, regularization: float) -> None:
    found = given(confidence=confidence, regularization=regularization).profile_embeddings(PROFILES)
    for profile, factors in zip(PROFILES.toarray(), found, strict=True):
        np.testing.assert_allclose(
            factors, literal_factors(profile, confidence, regularization), rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("items", [np.ones((20, 4)), np.zeros((20, 4)), FACTORS[:, :1] * FACTORS[:1]])
def test_without_regularization_factors_that_determine_nothing_are_refused(items: np.ndarray) -> None:
    model = ALS(Config(dimensions=4, regularization=0))
    with pytest.raises(
        UserError, match="als: regularization: 0 leaves the factors undetermined: 4 dimensions"
    ):
        model.load_state({ITEMS: items}, PROFILES)


def test_an_empty_profile_has_the_score_zero_everywhere() -> None:
    assert not given().score_profiles(sparse.csr_matrix((2, 20))).any()


def test_a_profile_is_scored_alone_as_in_a_batch() -> None:
    model = given()
    together = model.profile_embeddings(PROFILES)
    alone = np.concatenate([model.profile_embeddings(PROFILES[row]) for row in range(PROFILES.shape[0])])
    assert np.array_equal(together, alone)


def test_dense_scores_are_the_same_and_have_the_gradient_of_differences() -> None:
    model = given(confidence=5.0)
    dense = torch.tensor(PROFILES[:3].toarray(), requires_grad=True)
    scores = model.score_dense(dense)
    np.testing.assert_allclose(scores.detach().numpy(), model.score_profiles(PROFILES[:3]), atol=1e-10)
    (gradient,) = torch.autograd.grad(scores[1, 7], dense)
    for item in (0, 7, 19):
        step = torch.zeros_like(dense)
        step[1, item] = 1e-6
        difference = model.score_dense(dense + step)[1, 7] - model.score_dense(dense - step)[1, 7]
        assert float(gradient[1, item]) == pytest.approx(float(difference.detach()) / 2e-6, abs=1e-6)


def trained(**options: float) -> tuple[ALS, dict[str, object]]:
    none = Holdout(np.empty(0, dtype=np.int64), PROFILES[:0], PROFILES[:0])
    model = ALS(Config(dimensions=4, **options))
    return model, model.fit(Split(PROFILES, PROFILES, none, none, np.arange(30)), generator)


def test_training_lowers_the_objective_in_every_epoch_to_a_point_without_slope() -> None:
    confidence, regularization = 2.0, 1.0
    model, summary = trained(confidence=confidence, regularization=regularization, epochs=600)
    losses = [look["loss"] for look in summary["history"]]  # type: ignore[attr-defined, index]
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(losses))

    users = torch.tensor(model.profile_embeddings(PROFILES), requires_grad=True)
    items = torch.tensor(model.item_embeddings(), requires_grad=True)
    x = torch.tensor(PROFILES.toarray())
    objective = (torch.where(x > 0, confidence, 1.0) * (x - users @ items.T) ** 2).sum()
    objective = objective + regularization * ((users**2).sum() + (items**2).sum())
    assert float(objective.detach()) / x.numel() == pytest.approx(losses[-1], rel=1e-6)
    for slope in torch.autograd.grad(objective, (users, items)):
        assert float(slope.abs().max()) < 1e-3


def test_it_learns_which_items_go_together() -> None:
    data = split()
    model = ALS(Config(dimensions=8, regularization=1.0))
    quality = model.fit(data, generator)["validation"]
    assert quality["NDCG@10"] > 0.1


def test_factors_of_other_items_are_refused() -> None:
    with pytest.raises(UserError, match=r"item\.factors must be \(21, 4\), is \(20, 4\)"):
        ALS(Config()).load_state({ITEMS: FACTORS}, sparse.csr_matrix((3, 21)))


@pytest.mark.filterwarnings("ignore")
def test_scores_equal_those_of_the_library_implicit() -> None:
    als = pytest.importorskip("implicit.als", reason="the library implicit is not installed")
    peer = als.AlternatingLeastSquares(
        factors=4, regularization=0.7, alpha=12.0, iterations=3, use_gpu=False, num_threads=1, random_state=1
    )
    peer.fit(PROFILES.astype(np.float32), show_progress=False)
    ours = ALS(Config(confidence=12.0, regularization=0.7))
    ours.load_state({ITEMS: np.asarray(peer.item_factors)}, PROFILES)

    everybody = np.arange(PROFILES.shape[0])
    factors = peer.recalculate_user(everybody, PROFILES.astype(np.float32).tocsr())
    np.testing.assert_allclose(ours.profile_embeddings(PROFILES), factors, atol=1e-4)
