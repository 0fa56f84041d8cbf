"""What an explainer explains about a recommended item: a function of the scores of an edited profile.

    probability:  log f(x)_y, f the sigmoid or the softmax that the recommender declares as its link (``links.py``)
    logit:        s(x)_y, the score itself
    margin:       s(x)_y - s(x)_r, r the K-th best candidate other than y under the same profile: positive as long as
                  y is among the top K

At list level the function is the mean over the listed items. Which one is right depends on the link:

- ``sigmoid``: the logit. It orders single removals as the probability does, and sums of effects do not saturate.
- ``identity``: the score, which is all that there is. Without a link to a probability ``probability`` is an error.
- ``softmax``: a score is defined up to a constant for each profile only, so that differences of one score between two
  profiles mean nothing. The margin does not depend on the constant, and neither does the probability.

The logarithm of the probability is taken since it does not saturate where the probability does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cfbench_core.errors import UserError
from cfbench_recsys.contracts import Link, ScoringModel
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.links import link_of, linked_scores, log_values
from cfbench_recsys.ranking import GRID, on_grid
from cfbench_recsys.targets import Targets

Target = Literal["probability", "logit", "margin"]

DEFAULT_TARGETS: dict[Link, Target] = {"sigmoid": "logit", "softmax": "margin", "identity": "logit"}


@dataclass(frozen=True)
class TargetFunction:
    """One of the functions above, for a recommender with a link."""

    target: Target
    link: Link

    @staticmethod
    def of(target: Target | None, model: ScoringModel, explainer: str) -> TargetFunction:
        """The function that is configured, or the default of the model's link; ``explainer`` names it in messages.

        Raises:
            UserError: if the target is a probability, and the model's scores have none.
        """
        link = link_of(model)
        chosen = target or DEFAULT_TARGETS[link]
        if chosen == "probability" and link == "identity":
            raise UserError(
                f"{explainer}: target probability needs a recommender with the link sigmoid or softmax, "
                "but the scores of this one are no logits (link identity); use logit or margin"
            )
        return TargetFunction(chosen, link)

    def values(self, scores: FloatArray, rows: IntArray, units: IntArray, targets: Targets) -> FloatArray:
        """(P, T) values of P pairs: of the items of unit ``units[p]`` of the targets in row ``rows[p]`` of the scores.

        scores (B, items) of edited profiles. The units that are paired with one row belong to one user.
        """
        items = targets.items[units]
        if self.target == "probability":
            return log_values(linked_scores(scores, rows, items, self.link), self.link)
        if self.target == "margin":
            return margins(scores, rows, units, targets) / GRID
        found: FloatArray = scores[rows[:, None], items]
        return found


def margins(scores: FloatArray, rows: IntArray, units: IntArray, targets: Targets) -> FloatArray:
    """(P, T) margins of P pairs (see :meth:`TargetFunction.values`) in grid steps (see ``ranking.py``).

    Steps are whole numbers, so that sums of margins are exact. Where there are not K other candidates the item cannot
    leave the list; the margin is then its score.
    """
    unit_of_row = np.zeros(len(scores), dtype=np.int64)
    unit_of_row[rows] = units
    seen, absent = targets.seen
    steps = on_grid(scores, seen[unit_of_row], absent[unit_of_row])
    own = steps[rows[:, None], targets.items[units]]
    last, next_one = _kth_and_next(steps, targets.k)
    rivals = np.where(own >= last[rows][:, None], next_one[rows][:, None], last[rows][:, None])
    found: FloatArray = own - np.where(np.isfinite(rivals), rivals, 0.0)
    return found


def _kth_and_next(steps: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """(B,) the k-th and (k+1)-th largest of each row, -inf where there are not so many. Overwrites ``steps``.

    For the k of a list, taking the largest k + 1 times is several times faster than a partition of the row.
    """
    rows = np.arange(len(steps))
    last = next_one = np.full(len(steps), -np.inf)
    for _ in range(k + 1):
        best = steps.argmax(axis=1)
        last, next_one = next_one, steps[rows, best]
        steps[rows, best] = -np.inf
    return last, next_one
