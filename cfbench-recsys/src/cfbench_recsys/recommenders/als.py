"""ALS: factors of items by weighted least squares; a user's factors follow from the profile in closed form.

Hu, Koren & Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008. With x_ui = 1 where user u
interacted with item i, c_ui = ``confidence`` there and 1 elsewhere, and lambda the ``regularization``, training minimises

    sum_ui c_ui (x_ui - p_u . q_i)^2 + lambda (sum_u |p_u|^2 + sum_i |q_i|^2)

by solving for all p, then for all q, and so on (equations 4 and 5 of the paper). The score of item j for a profile x is

    s(x)_j = q_j . p(x),    p(x) = (Q^T Q + lambda I + (c - 1) sum_{i in x} q_i q_i^T)^-1 c sum_{i in x} q_i

where c is ``confidence`` and Q (items, d) are the factors of the items: the step that training does for a user. So an edited
profile is scored as if the user's factors had been computed from it, with the items as they are. Models of the libraries
``implicit`` and LensKit score in this way too, and ``cfbench convert`` takes their factors over.

Link: identity. The scores are a least-squares fit of 0 and 1, and no logits.
The best of ``epochs`` by NDCG@10 on validation data is selected. Departs from the paper: the confidence is the same for all
interactions, since the suite's profiles are binary.

Without regularization the equations have one solution only if Q^T Q has full rank; factors of other ranks are refused.

Cost of scoring: O(n d^2 + d^3) for a profile of n items, and items x d.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.training import (
    CheckpointCallback,
    State,
    Stopping,
    check_shapes,
    sample_of,
    train,
)
from cfbench_recsys.splits import Split

SPEC = ComponentSpec(
    id="recsys/recommender/als",
    summary="Matrix factorisation by alternating least squares; a profile's factors in closed form",
    target=f"{__name__}:ALS",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-vector"},
        "checkpoints": {"yes"},
        "access": {"scores", "gradients", "embeddings"},
    },
    papers=("hu2008als",),
)

ITEMS = "item.factors"
PROFILES_AT_ONCE = 256
"""Profiles whose systems of equations are solved together."""


@dataclass(frozen=True, kw_only=True)
class Config:
    dimensions: Annotated[
        int, Range(minimum=1), Search(choices=(16, 32, 64, 128)), Help("number of factors")
    ] = 32
    confidence: Annotated[
        float,
        Range(minimum=1),
        Search(1, 100, log=True),
        Help("weight of an interaction, where a pair without one has 1"),
    ] = 10.0
    regularization: Annotated[
        float, Range(minimum=0), Search(0.01, 1000, log=True), Help("weight of the squares of the factors")
    ] = 30.0
    epochs: Annotated[int, Range(minimum=1), Help("at most; each solves for all users and all items")] = 30
    patience: Annotated[
        int, Range(minimum=1), Help("epochs without a better validation NDCG@10 before stopping")
    ] = 5
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None


class ALS:
    link: Link = "identity"

    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
        checkpoint: CheckpointCallback | None = None,
    ) -> dict[str, Any]:
        """Trains on ``split.train``. Returns a summary of the training."""
        by_user = split.train.astype(np.float64).tocsr()
        by_item = by_user.T.tocsr()
        start = generator("als", "fit").standard_normal((by_user.shape[1], self.config.dimensions))
        factors = {"items": 0.1 * start}
        validation = sample_of(split.validation, generator("als", "validation"))

        def epoch() -> float:
            users = self._solved(by_user, factors["items"])
            factors["items"] = self._solved(by_item, users)
            return self._loss(by_user, users, factors["items"])

        def validate() -> Mapping[str, float]:
            self.load_state(snapshot(), split.profiles)
            return ranking_quality(lambda rows: self.score_profiles(validation.inputs[rows]), validation)

        def snapshot() -> State:
            return {ITEMS: factors["items"].copy()}

        stopping = Stopping(self.config.epochs, self.config.patience)
        best, summary = train(epoch, validate, snapshot, stopping, report, checkpoint)
        self.load_state(best, split.profiles)
        return summary

    def state(self) -> State:
        """item.factors (items, d) float64, Q."""
        return {ITEMS: self._items}

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if the factors are missing, are not those of these items, or determine none of a profile.
        """
        dimensions = (
            state[ITEMS].shape[1] if ITEMS in state and state[ITEMS].ndim == 2 else self.config.dimensions
        )
        check_shapes("als", state, {ITEMS: (interactions.shape[1], dimensions)})
        items = np.ascontiguousarray(state[ITEMS], dtype=np.float64)
        self._base(items)
        self._items = items

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) scores for B profiles (B, items)."""
        scores: FloatArray = self.profile_embeddings(profiles) @ self._items.T
        return scores

    def profile_embeddings(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, d) factors p(x) of B profiles (B, items)."""
        return self._solved(profiles.astype(np.float64).tocsr(), self._items)

    def item_embeddings(self) -> FloatArray:
        """(items, d) factors of the items: a score is their product with those of a profile."""
        return np.array(self._items)

    def score_dense(self, profiles: Any) -> Any:
        """(B, items) scores for ``profiles`` (B, items), a float64 torch tensor; differentiable in it.

        Between 0 and 1 the terms of item i are multiplied by x_i.
        """
        import torch

        items = torch.from_numpy(self._items).to(profiles.device)
        gram = torch.stack([(items.T * profile) @ items for profile in profiles])
        systems = torch.from_numpy(self._base(self._items)).to(items) + (self.config.confidence - 1) * gram
        right = self.config.confidence * (profiles @ items)
        return torch.linalg.solve(systems, right) @ items.T

    def _base(self, other: FloatArray) -> FloatArray:
        """(d, d) what all systems of equations share: Q^T Q + lambda I.

        Raises:
            UserError: if it has no inverse, as may be without regularization. What a profile adds is positive semi-definite,
                so that its system has a solution where this has an inverse.
        """
        base: FloatArray = other.T @ other + self.config.regularization * np.eye(other.shape[1])
        if self.config.regularization == 0 and np.linalg.matrix_rank(base, hermitian=True) < len(base):
            raise UserError(
                f"als: regularization: 0 leaves the factors undetermined: {len(base)} dimensions, but the other side's "
                f"factors have the rank {np.linalg.matrix_rank(other)}; set one above 0"
            )
        return base

    def _solved(self, rows: scipy.sparse.csr_matrix, other: FloatArray) -> FloatArray:
        """(R, d) factors of the R rows (R, n), given those of the columns, ``other`` (n, d)."""
        confidence, base = self.config.confidence, self._base(other)
        found = np.empty((rows.shape[0], other.shape[1]))
        for start in range(0, rows.shape[0], PROFILES_AT_ONCE):
            block = rows[start : start + PROFILES_AT_ONCE]
            systems = np.empty((block.shape[0], *base.shape))
            for place in range(block.shape[0]):
                taken = slice(block.indptr[place], block.indptr[place + 1])
                own = other[block.indices[taken]]
                systems[place] = base + (confidence - 1) * (own.T * block.data[taken]) @ own
            right = confidence * (block @ other)
            found[start : start + PROFILES_AT_ONCE] = np.linalg.solve(systems, right[..., None])[..., 0]
        return found

    def _loss(self, rows: scipy.sparse.csr_matrix, users: FloatArray, items: FloatArray) -> float:
        """What training minimises, for each pair of a user and an item."""
        row, column = rows.nonzero()
        scores = np.einsum("nd,nd->n", users[row], items[column])
        everywhere = float(np.sum((users.T @ users) * (items.T @ items)))
        at_interactions = float(np.sum(self.config.confidence * (1 - scores) ** 2 - scores**2))
        squares = self.config.regularization * float(np.sum(users**2) + np.sum(items**2))
        pairs = max(1, rows.shape[0] * rows.shape[1])
        return float((everywhere + at_interactions + squares) / pairs)
