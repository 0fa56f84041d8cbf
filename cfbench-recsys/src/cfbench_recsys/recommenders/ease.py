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
tie. Memory: 8 items^2 bytes, three times that while fitting (the Gram matrix, the solution and the best one so far), once
with ``l2`` given, where the solution takes the place of the Gram matrix; 20,000 items need 9.6 GB, or 3.2 GB. Where a
process may use less, fitting ends with a message that says so.

With ``rank`` r, X is replaced by its best approximation of rank r, X_r = U diag(s) V^T with V (items, r), its r largest
singular values and their vectors. The same solution is then known without a matrix of all items: by the Woodbury identity

    P = (V diag(s^2) V^T + l2 I)^-1 = (I - V diag(g) V^T) / l2,       g = s^2 / (s^2 + l2),
    B[i, j] = (V diag(g) V^T)[i, j] / (1 - c_j)  (i != j),            c_j = (V diag(g) V^T)[j, j],
    s(x)_j = ((x V) diag(g) V^T)_j / (1 - c_j) - x_j c_j / (1 - c_j).

Memory: 8 items r bytes. With r the rank of X it is EASE; docs/results/ease-rank.csv has its distance from EASE for others.
It departs from the paper, which has no such form.
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
from cfbench_core.usable_memory import require_memory
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

COPIES = {True: 3, False: 1}
"""Matrices (items, items) at a time while fitting: with a search for ``l2``, and without."""

ADVICE = "set its option 'rank' (500, for example), which needs 8 bytes for each item and rank, or take item-knn or als"

GRID = (10.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)


@dataclass(frozen=True, kw_only=True)
class Config:
    l2: Annotated[
        float | None,
        Range(above=0),
        Search(1, 5000, log=True),
        Help("none: the best of 10..2000 on validation data"),
    ] = None
    rank: Annotated[
        int | None,
        Range(minimum=1),
        Help(
            "singular vectors of the interactions to use, for more items than memory has room for; none: all"
        ),
    ] = None
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None


class EASE:
    link: Link = "identity"

    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(self, split: Split, generator: Streams, report: Progress = ignore_progress, /) -> dict[str, Any]:
        """Solves for B on ``split.train``. Returns the ``l2`` taken, and the validation quality of each.

        Raises:
            UserError: if this needs more memory than there is, see :func:`require_memory`.
        """
        grid = (self.config.l2,) if self.config.l2 is not None else GRID
        if self.config.rank is None:
            items = split.train.shape[1]
            needed = COPIES[len(grid) > 1] * 8 * items**2
            require_memory(needed, f"ease: while it is fitted, {items:,} items", ADVICE)
            solutions = _solutions(split, grid)
        else:
            solutions = _solutions_of_rank(split, grid, self.config.rank, generator("ease", "fit"))
        state, summary = fit_best("ease", split, generator, report, solutions, len(grid))
        self.load_state(state, split.profiles)
        return summary

    def state(self) -> State:
        """weight (items, items) float64, B; of a low rank r vectors (items, r) and shares (r,), V and g."""
        return self._state

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if the weights are missing or have another shape.
        """
        items, rank = interactions.shape[1], self.config.rank
        if rank is None:
            check_shapes("ease", state, {"weight": (items, items)})
            self._solution: _Exact | _LowRank = _Exact(_contiguous(state["weight"]))
        else:
            found = state["shares"].shape[-1] if "shares" in state else rank
            check_shapes("ease", state, {"vectors": (items, found), "shares": (found,)})
            self._solution = _LowRank(_contiguous(state["vectors"]), _contiguous(state["shares"]))
        self._state = self._solution.state()

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items)."""
        return self._solution.scores(profiles)

    def score_dense(self, profiles: Any) -> Any:
        """The same as a torch tensor, for a float64 tensor (B, items), and differentiable in it."""
        return self._solution.scores_of_dense(profiles)

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """B[rows, columns], broadcast."""
        return self._solution.weights(rows, columns)


@dataclass(frozen=True)
class _Exact:
    """weight: (items, items) float64, B."""

    weight: FloatArray

    def state(self) -> State:
        return {"weight": self.weight}

    def scores(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items). A sparse product: each row for itself."""
        return _scores(self.weight, profiles)

    def scores_of_dense(self, profiles: Any) -> Any:
        import torch

        return profiles @ torch.from_numpy(self.weight).to(profiles.device)

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        found: FloatArray = self.weight[rows, columns]
        return found


@dataclass(frozen=True)
class _LowRank:
    """vectors: (items, r) float64, V; shares: (r,) float64, g."""

    vectors: FloatArray
    shares: FloatArray

    def state(self) -> State:
        return {"vectors": self.vectors, "shares": self.shares}

    @functools.cached_property
    def own(self) -> FloatArray:
        """(items,) c"""
        found: FloatArray = np.square(self.vectors) @ self.shares
        return found

    def scores(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items)."""
        profiles = profiles.astype(np.float64)
        found: FloatArray = ((profiles @ self.vectors) * self.shares) @ self.vectors.T
        rows, columns = profiles.nonzero()
        np.subtract.at(found, (rows, columns), profiles.data * self.own[columns])
        found /= 1.0 - self.own
        return found

    def scores_of_dense(self, profiles: Any) -> Any:
        import torch

        vectors, shares, own = (
            torch.from_numpy(array).to(profiles.device) for array in (self.vectors, self.shares, self.own)
        )
        return (((profiles @ vectors) * shares) @ vectors.T - profiles * own) / (1.0 - own)

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        products = np.einsum("...k,...k->...", self.vectors[rows] * self.shares, self.vectors[columns])
        found: FloatArray = np.where(rows == columns, 0.0, products / (1.0 - self.own[columns]))
        return found


def _contiguous(values: np.ndarray) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)


def gram_matrix(interactions: scipy.sparse.csr_matrix) -> FloatArray:
    """X^T X (items, items), some rows at a time: as a sparse matrix it would take more memory than as a dense one."""
    x = interactions.astype(np.float64)
    transposed, items = x.T.tocsr(), x.shape[1]
    gram = np.empty((items, items))
    for start in range(0, items, BLOCK):
        rows = slice(start, start + BLOCK)
        gram[rows] = (transposed[rows] @ x).toarray()
    return gram


def item_weights(gram: FloatArray, l2: float, overwrite: bool = False) -> FloatArray:
    """B (items, items) from the Gram matrix X^T X (items, items); in its memory if it may be overwritten."""
    # in the order of LAPACK, for which all below is done in this one array; the Gram matrix is symmetric
    inverse = gram.T if overwrite else gram.copy(order="F")
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
    gram = gram_matrix(split.train)
    for n, l2 in enumerate(grid, start=1):
        yield _solution(l2, item_weights(gram, l2, overwrite=n == len(grid)))


def _solution(l2: float, weight: FloatArray) -> Candidate:
    return Candidate({"l2": l2}, {"weight": weight}, functools.partial(_scores, weight))


def _solutions_of_rank(
    split: Split, grid: Sequence[float], rank: int, random: np.random.Generator
) -> Iterator[Candidate]:
    squares, vectors = right_singular_vectors(split.train, rank, random)
    for l2 in grid:
        found = _LowRank(vectors, squares / (squares + l2))
        yield Candidate({"l2": l2}, found.state(), found.scores)


def right_singular_vectors(
    interactions: scipy.sparse.csr_matrix, rank: int, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The r = min(rank, users, items) largest squared singular values (r,) of a matrix, and V (items, r).

    Lanczos' method (ARPACK) from a random start, without a dense matrix; where all values are wanted, the
    eigenvectors of the Gram matrix of the shorter side.
    """
    x = interactions.astype(np.float64)
    shorter = min(x.shape)
    if rank < shorter:
        _, values, transposed = scipy.sparse.linalg.svds(x, k=rank, v0=random.standard_normal(shorter))
        # in new arrays: what comes back is a view with negative strides, which torch refuses
        return np.array(values**2, order="C"), np.array(transposed.T, order="C")
    if x.shape[1] == shorter:
        squares, vectors = np.linalg.eigh((x.T @ x).toarray())
        return np.maximum(squares, 0.0), _contiguous(vectors)
    squares, users = np.linalg.eigh((x @ x.T).toarray())
    some = (
        squares > squares[-1] * len(squares) * np.finfo(np.float64).eps
    )  # the others are 0 but for rounding
    return squares[some], _contiguous((x.T @ users[:, some]) / np.sqrt(squares[some]))


def _scores(weight: FloatArray, profiles: scipy.sparse.csr_matrix) -> FloatArray:
    """(B, items) logits. A sparse product: each row for itself."""
    scores: FloatArray = profiles.astype(np.float64) @ weight
    return scores
