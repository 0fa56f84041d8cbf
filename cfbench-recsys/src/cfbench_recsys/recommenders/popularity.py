"""Popularity: the number of users of an item, the same ranking for every user.

    s(x)_j = sum_u X[u, j],    X (users, items) the training interactions, whatever the profile x.

Not published elsewhere. A baseline: a recommender that is no better has learned no preferences. No edit of a
profile moves its recommendations, so there is nothing to explain: the score is linear in the profile with weights 0,
which lets searches prove without a query that no counterfactual exists. Link: identity. The scores are counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, InputFile
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link, Progress, Streams
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.recommenders.closed_form import Candidate, fit_best, ignore_progress
from cfbench_recsys.recommenders.training import State, check_shapes
from cfbench_recsys.splits import Split

SPEC = ComponentSpec(
    id="recsys/recommender/popularity",
    summary="Most popular items for every user; independent of the profile",
    target=f"{__name__}:Popularity",
    config=f"{__name__}:Config",
    provides={"scope": {"user-vector"}, "access": {"scores", "weights"}},
    role="baseline",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of counting")] = None


class Popularity:
    link: Link = "identity"

    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(self, split: Split, generator: Streams, report: Progress = ignore_progress, /) -> dict[str, Any]:
        """Counts the interactions of ``split.train``. Returns the validation quality."""
        self._counts = np.asarray(split.train.sum(axis=0), dtype=np.float64).ravel()
        only = Candidate({}, self.state(), self.score_profiles)
        _, summary = fit_best("popularity", split, generator, report, [only], 1)
        return summary

    def state(self) -> State:
        """count (items,) float64."""
        return {"count": self._counts}

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if the counts are missing or are not those of so many items.
        """
        check_shapes("popularity", state, {"count": (interactions.shape[1],)})
        self._counts = np.asarray(state["count"], dtype=np.float64)

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items): the counts, B times."""
        return np.tile(self._counts, (profiles.shape[0], 1))

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Zeros, broadcast: no item of a profile contributes to any score."""
        return np.zeros(np.broadcast_shapes(np.shape(rows), np.shape(columns)))
