"""Popularity: how many users have an item, the same for everybody.

    s(x)_j = sum_u X[u, j],    X (users, items) the training interactions, whatever the profile x.

Ours; there is no paper. A floor: a recommender that finds no more than this has learned no tastes. No edit of a
profile moves its recommendations, so there is nothing to explain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy import sparse

from cfbench_core.config import Help, InputFile
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.training import State, check_shapes, sample_of
from cfbench_recsys.splits import Split

SPEC = ComponentSpec(
    id="recsys/recommender/popularity",
    summary="The same for everybody: what most have. No profile moves it",
    target=f"{__name__}:Popularity",
    config=f"{__name__}:Config",
    provides={"scope": {"user-vector"}, "access": {"scores"}},
    role="floor",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of counting")] = None


class Popularity:
    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Any]:
        """Counts the interactions of ``split.train``. Returns the validation quality."""
        self._counts = np.asarray(split.train.sum(axis=0), dtype=np.float64).ravel()
        validation = sample_of(split.validation, generator("popularity", "validation"))
        report(1, 1)
        return {
            "validation": ranking_quality(
                lambda rows: self.score_profiles(validation.inputs[rows]), validation
            )
        }

    def state(self) -> State:
        """count (items,) float64."""
        return {"count": self._counts}

    def load_state(self, state: Mapping[str, np.ndarray], interactions: sparse.csr_matrix) -> None:
        """Takes up what :meth:`state` gave, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if the counts are missing or are not those of so many items.
        """
        check_shapes("popularity", state, {"count": (interactions.shape[1],)})
        self._counts = np.asarray(state["count"], dtype=np.float64)

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        """(B, items): the counts, B times."""
        return np.tile(self._counts, (profiles.shape[0], 1))
