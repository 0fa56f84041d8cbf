"""ItemKNN: an item is recommended for the items of the profile that are most like it.

Sarwar et al., "Item-based collaborative filtering recommendation algorithms", WWW 2001; with shrinkage as in
Ferrari Dacrema, Cremonesi & Jannach, "Are we really making much progress?", RecSys 2019, where it beats most
of what is newer. With n_i the number of training users of item i, n_ij that of both i and j,

    cosine:   sim(i, j) = n_ij / (sqrt(n_i n_j) + shrink)
    jaccard:  sim(i, j) = n_ij / (n_i + n_j - n_ij + shrink)

and N_j the ``neighbours`` items i != j most similar to j (ties to the lower item index; none of similarity 0):

    W[i, j] = sim(i, j) if i in N_j, else 0,        s(x)_j = sum_{i in N_j} x_i W[i, j].

The score is linear in the profile with weights W and no bias, so counterfactuals of ItemKNN are exactly known.
Link: identity. The scores are sums of similarities and no logits.
Departs from Sarwar et al. in that the sum is not divided by that of all similarities: theirs predicts a rating,
and for a ranking the division favours items with few, weak neighbours. Of ``neighbours`` and ``shrink``, those
not given are the ones of ``NEIGHBOURS`` and ``SHRINKS`` with the best NDCG@10 on validation data.

W is sparse: memory O(items * neighbours), and while fitting ``BLOCK`` rows of similarities (items each).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link, Progress, Streams
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.recommenders.closed_form import Candidate, fit_best, ignore_progress
from cfbench_recsys.recommenders.training import State, check_shapes
from cfbench_recsys.splits import Split

SPEC = ComponentSpec(
    id="recsys/recommender/item-knn",
    summary="Items like those of the profile; sparse, and its counterfactuals are exactly known",
    target=f"{__name__}:ItemKNN",
    config=f"{__name__}:Config",
    provides={"scope": {"user-vector"}, "access": {"scores", "weights", "gradients"}},
    papers=("sarwar2001itemknn",),
    presets="cfbench_recsys:presets/item-knn.yaml",
)

NEIGHBOURS = (10, 20, 50, 100, 200, 500)
SHRINKS = (0.0, 10.0, 100.0)
BLOCK = 256

Similarity = Literal["cosine", "jaccard"]


@dataclass(frozen=True, kw_only=True)
class Config:
    similarity: Annotated[
        Similarity, Search(choices=("cosine", "jaccard")), Help("of two items, by their users")
    ] = "cosine"
    neighbours: Annotated[
        int | None,
        Range(minimum=1),
        Search(5, 1000, log=True),
        Help("neighbours of each item; none: the best of 10..500 on validation data"),
    ] = None
    shrink: Annotated[
        float | None,
        Range(minimum=0),
        Search(0, 1000),
        Help("makes similarities of few users smaller; none: the best of 0..100 on validation data"),
    ] = None
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of counting")] = None


class ItemKNN:
    link: Link = "identity"

    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(self, split: Split, generator: Streams, report: Progress = ignore_progress, /) -> dict[str, Any]:
        """Counts on ``split.train``. Returns the options taken, and the validation quality of each choice."""
        config = self.config
        sizes = (config.neighbours,) if config.neighbours is not None else NEIGHBOURS
        shrinks = (config.shrink,) if config.shrink is not None else SHRINKS
        candidates = self._candidates(split, sizes, shrinks)
        total = len(shrinks) * len(sizes)
        state, summary = fit_best("item-knn", split, generator, report, candidates, total)
        self.load_state(state, split.profiles)
        return summary

    def _candidates(
        self, split: Split, sizes: Sequence[int], shrinks: Sequence[float]
    ) -> Iterator[Candidate]:
        for shrink in shrinks:
            similar, similarity = nearest(split.train, max(sizes), self.config.similarity, shrink)
            for size in sizes:
                self._take(similar[:, :size], similarity[:, :size])
                yield Candidate({"neighbours": size, "shrink": shrink}, self.state(), self.score_profiles)

    def state(self) -> State:
        """neighbours (items, k) int64, N_j in row j, the most similar first, -1 where there are fewer;
        similarity (items, k) float64."""
        return {"neighbours": self._neighbours, "similarity": self._similarity}

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if an array is missing or of another shape, or names an item that there is not.
        """
        items = interactions.shape[1]
        shape = (items, state["neighbours"].shape[-1] if "neighbours" in state else items)
        check_shapes("item-knn", state, {"neighbours": shape, "similarity": shape})
        neighbours = np.asarray(state["neighbours"]).astype(np.int64)
        whole = np.array_equal(neighbours, state["neighbours"])
        if not whole or neighbours.min(initial=0) < -1 or neighbours.max(initial=0) >= items:
            raise UserError(f"item-knn: weights: neighbours must be items 0..{items - 1}, or -1 for none")
        self._take(neighbours, np.asarray(state["similarity"], dtype=np.float64))

    def _take(self, neighbours: IntArray, similarity: FloatArray) -> None:
        self._neighbours, self._similarity = (
            np.ascontiguousarray(neighbours),
            np.ascontiguousarray(similarity),
        )
        columns, places = np.nonzero(neighbours >= 0)
        entries = (similarity[columns, places], (neighbours[columns, places], columns))
        self._weight = scipy.sparse.csr_matrix(entries, shape=(len(neighbours),) * 2)
        self._transposed: Any = None

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items). A sparse product: each row for itself."""
        scores: FloatArray = (profiles.astype(np.float64) @ self._weight).toarray()
        return scores

    def score_dense(self, profiles: Any) -> Any:
        """The same as a torch tensor, for a float64 tensor (B, items), and differentiable in it."""
        import torch

        if self._transposed is None or self._transposed.device != profiles.device:
            transposed = self._weight.T.tocoo()
            indices = torch.from_numpy(np.stack([transposed.row, transposed.col]).astype(np.int64))
            values = torch.from_numpy(transposed.data)
            tensor = torch.sparse_coo_tensor(indices, values, transposed.shape, check_invariants=True)
            self._transposed = tensor.coalesce().to(profiles.device)
        return torch.sparse.mm(self._transposed, profiles.T).T

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """W[rows, columns], broadcast."""
        row, column = np.broadcast_arrays(rows, columns)
        if not row.size:
            return np.zeros(row.shape)
        return np.asarray(self._weight[row.flatten(), column.flatten()]).reshape(row.shape)


def nearest(
    interactions: scipy.sparse.csr_matrix, count: int, similarity: Similarity, shrink: float
) -> tuple[IntArray, FloatArray]:
    """(items, k) the k = min(count, items) items most similar to each, -1 where fewer are, and (items, k)
    their similarities, 0 there."""
    items = interactions.shape[1]
    count = min(count, items)
    similar, values = np.empty((items, count), dtype=np.int64), np.empty((items, count))
    for rows, block in _similarities(interactions, similarity, shrink):
        own = np.arange(rows.start, rows.stop)[:, None]
        first = top_k(block, own, np.zeros(own.shape, dtype=np.bool_), count)
        value = np.take_along_axis(block, np.maximum(first, 0), axis=1)
        none = (first < 0) | (value <= 0)
        similar[rows], values[rows] = np.where(none, -1, first), np.where(none, 0.0, value)
    return similar, values


def _similarities(
    interactions: scipy.sparse.csr_matrix, similarity: Similarity, shrink: float
) -> Iterator[tuple[slice, FloatArray]]:
    """(rows, items) similarities of ``BLOCK`` items with all, from whole numbers: symmetric to the last bit."""
    by_item = interactions.T.tocsr().astype(np.float64)
    sizes = np.diff(by_item.indptr).astype(np.float64)
    for start in range(0, len(sizes), BLOCK):
        rows = slice(start, min(start + BLOCK, len(sizes)))
        both = (by_item[rows] @ interactions).toarray()
        own = sizes[rows, None]
        other = np.sqrt(own * sizes) if similarity == "cosine" else own + sizes - both
        yield rows, np.divide(both, other + shrink, out=np.zeros_like(both), where=both > 0)
