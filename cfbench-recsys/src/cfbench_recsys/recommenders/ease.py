"""EASE: a linear item-item model in closed form, "embarrassingly shallow" and hard to beat.

Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019. With X (users, items) the training
interactions,

    B = argmin |X - X B|^2 + l2 |B|^2   such that  diag(B) = 0,
    P = (X^T X + l2 I)^-1,    B[i, j] = -P[i, j] / P[j, j]  (i != j),    scores s(x) = x B.

The score is linear in the profile with weights B and no bias, so counterfactuals of EASE are exactly known.
Link: identity. The scores are a least-squares fit of the interactions, 0 or 1, and no logits.
Where ``l2`` is not given, that of ``GRID`` with the best NDCG@10 on validation data is taken (the paper
selects it so, too).

B is stored in float64: items with mathematically equal scores differ only by the rounding of float64, and so
tie. Memory: 8 items^2 bytes, four times that while fitting (the Gram matrix, the solution, the best one so far and the one
before it); 20,000 items need 13 GB.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link, Progress, Streams
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.recommenders.closed_form import Candidate, fit_best, ignore_progress
from cfbench_recsys.recommenders.training import State, check_shapes
from cfbench_recsys.splits import Split

SPEC = ComponentSpec(
    id="recsys/recommender/ease",
    summary="Linear autoencoder in closed form; strong, and its counterfactuals are exactly known",
    target=f"{__name__}:EASE",
    config=f"{__name__}:Config",
    provides={"scope": {"user-vector"}, "access": {"scores", "weights", "gradients"}},
    papers=("steck2019ease",),
    presets="cfbench_recsys:presets/ease.yaml",
)

BLOCK = 512
"""Items whose rows are mirrored at a time."""
GRID = (10.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)


@dataclass(frozen=True, kw_only=True)
class Config:
    l2: Annotated[
        float | None,
        Range(above=0),
        Search(1, 5000, log=True),
        Help("none: the best of 10..2000 on validation data"),
    ] = None
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None


class EASE:
    link: Link = "identity"

    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(self, split: Split, generator: Streams, report: Progress = ignore_progress, /) -> dict[str, Any]:
        """Solves for B on ``split.train``. Returns the ``l2`` taken, and the validation quality of each."""
        grid = (self.config.l2,) if self.config.l2 is not None else GRID
        state, summary = fit_best("ease", split, generator, report, _solutions(split, grid), len(grid))
        self.load_state(state, split.profiles)
        return summary

    def state(self) -> State:
        """weight (items, items) float64, B."""
        return {"weight": self._weight}

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if the weights are missing or have another shape.
        """
        items = interactions.shape[1]
        check_shapes("ease", state, {"weight": (items, items)})
        self._weight = np.ascontiguousarray(state["weight"], dtype=np.float64)

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items). A sparse product: each row for itself."""
        return _scores(self._weight, profiles)

    def score_dense(self, profiles: Any) -> Any:
        """The same as a torch tensor, for a float64 tensor (B, items), and differentiable in it."""
        import torch

        return profiles @ torch.from_numpy(self._weight).to(profiles.device)

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """B[rows, columns], broadcast."""
        found: FloatArray = self._weight[rows, columns]
        return found


def item_weights(gram: FloatArray, l2: float) -> FloatArray:
    """B (items, items) from the Gram matrix X^T X (items, items)."""
    inverse = gram.copy(order="F")  # as LAPACK wants it: everything below is done in this one array
    inverse[np.diag_indices_from(inverse)] += l2
    factor, lower = scipy.linalg.cho_factor(inverse, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=lower, overwrite_c=True)
    for start in range(0, len(inverse), BLOCK):  # only the lower triangle is set
        rows = slice(start, start + BLOCK)
        own = np.tril(inverse[rows, rows])
        inverse[rows, rows] = own + np.tril(own, -1).T
        inverse[rows, start + BLOCK :] = inverse[start + BLOCK :, rows].T
    inverse /= -np.diag(inverse)[:, None]
    np.fill_diagonal(inverse, 0.0)
    weight: FloatArray = inverse.T  # P is symmetric: B^T in the order of columns is B in that of rows
    return weight


def _solutions(split: Split, grid: Sequence[float]) -> Iterator[Candidate]:
    gram = (split.train.T @ split.train).toarray().astype(np.float64)
    for l2 in grid:
        weight = item_weights(gram, l2)
        yield Candidate({"l2": l2}, {"weight": weight}, functools.partial(_scores, weight))


def _scores(weight: FloatArray, profiles: scipy.sparse.csr_matrix) -> FloatArray:
    """(B, items) logits. A sparse product: each row for itself."""
    scores: FloatArray = profiles.astype(np.float64) @ weight
    return scores
