"""EASE: a linear item-item model in closed form, "embarrassingly shallow" and hard to beat.

Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019. With X (users, items) the training
interactions,

    B = argmin |X - X B|^2 + l2 |B|^2   such that  diag(B) = 0,
    P = (X^T X + l2 I)^-1,    B[i, j] = -P[i, j] / P[j, j]  (i != j),    scores s(x) = x B.

The logit is linear in the profile with weights B and no bias, so counterfactuals of EASE are exactly known.
Where ``l2`` is not given, that of ``GRID`` with the best NDCG@10 on validation data is taken (the paper
selects it so, too).

B is kept in float64: items that are alike on paper have equal scores up to the rounding of float64, and so
tie. Memory: 8 items^2 bytes, three times that while fitting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy import linalg, sparse

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.training import CRITERION, State, check_shapes, sample_of
from cfbench_recsys.splits import Holdout, Split

SPEC = ComponentSpec(
    id="recsys/recommender/ease",
    summary="Linear autoencoder in closed form; strong, and its counterfactuals are exactly known",
    target=f"{__name__}:EASE",
    config=f"{__name__}:Config",
    provides={"scope": {"user-vector"}, "access": {"scores", "weights", "gradients"}},
    papers=("steck2019ease",),
    presets="cfbench_recsys:presets/ease.yaml",
)

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
    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Any]:
        """Solves for B on ``split.train``. Returns the ``l2`` taken, and the validation quality of each."""
        started = time.perf_counter()
        validation = sample_of(split.validation, generator("ease", "validation"))
        grid = (self.config.l2,) if self.config.l2 is not None else GRID
        gram = (split.train.T @ split.train).toarray().astype(np.float64)
        best, looks = -np.inf, []
        for number, l2 in enumerate(grid, start=1):
            weight = item_weights(gram, l2)
            quality = _quality(weight, validation)
            looks.append({"l2": l2, **quality})
            if quality.get(CRITERION, 0.0) > best:
                best, chosen = quality.get(CRITERION, 0.0), looks[-1]
                self._weight = weight
            report(number, len(grid))
        elapsed = time.perf_counter() - started
        return {
            "l2": chosen["l2"],
            "validation": _metrics(chosen),
            "elapsed_seconds": elapsed,
            "history": looks,
        }

    def state(self) -> State:
        """weight (items, items) float64, B."""
        return {"weight": self._weight}

    def load_state(self, state: Mapping[str, np.ndarray], interactions: sparse.csr_matrix) -> None:
        """Takes up what :meth:`state` gave, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if the weights are missing or have another shape.
        """
        items = interactions.shape[1]
        check_shapes("ease", state, {"weight": (items, items)})
        self._weight = np.ascontiguousarray(state["weight"], dtype=np.float64)

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items). A sparse product: each row for itself."""
        scores: FloatArray = profiles.astype(np.float64) @ self._weight
        return scores

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
    regularised = gram.copy()
    regularised[np.diag_indices_from(regularised)] += l2
    factor, lower = linalg.cho_factor(regularised, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = linalg.lapack.dpotri(factor, lower=lower, overwrite_c=True)
    inverse = np.tril(inverse)
    inverse += np.tril(inverse, -1).T
    weight = inverse / -np.diag(inverse)
    np.fill_diagonal(weight, 0.0)
    return np.ascontiguousarray(weight)


def _quality(weight: FloatArray, holdout: Holdout) -> dict[str, float]:
    return ranking_quality(lambda rows: holdout.inputs[rows] @ weight, holdout)


def _metrics(look: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in look.items() if name != "l2"}
