"""StMatch-P, -R, -F1 (defined by cfbench): StEnt where a statement of the reference supports only one of the text.

A vague reference statement then cannot support many predictions, and one prediction cannot cover much of the reference.
Statements are matched one to one such that the sum of E(premise s_l, hypothesis s'_k) is maximal; P is this sum divided
by n. R is the converse with its own matching. Pairs that ``same`` excludes have weight 0, but the denominators count all
statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from cfbench_core.config import Help
from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.base import ENTAILMENT
from cfbench_text.metrics.base import ObservedTexts, ratio_columns, with_f1
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

SPEC = ComponentSpec(
    id="text/metric/one-to-one",
    summary="Entailment where a statement supports one statement only",
    target=f"{__name__}:OneToOne",
    config=f"{__name__}:Config",
    needs={"judge": {"verdict": {"entailment"}}},
)


Triplets = Sequence[tuple[Triplet, ...]]


@dataclass(frozen=True, kw_only=True)
class Config:
    same: Annotated[
        tuple[Literal["topic", "sentiment"], ...], Help("what two statements must share to be matched")
    ] = ()


class OneToOne:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> Sequence[Column]:
        return ratio_columns(
            "StMatch",
            "How surely are the statements of the text entailed, each by a statement of the reference of its own?",
            "How surely are the statements of the reference entailed, each by a statement of the text of its own?",
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        verdicts = observed.verdicts
        predicted = self._matched(verdicts.of_predicted, observed.predicted, observed.evidence)
        evidence = self._matched(verdicts.of_evidence, observed.evidence, observed.predicted)
        return with_f1("StMatch", predicted, evidence, observed.empty)

    def _matched(
        self, matrices: Sequence[FloatArray], hypotheses: Triplets, premises: Triplets
    ) -> list[FloatArray]:
        """For each row (h,): what each hypothesis is matched with is worth, 0 for one that is left over."""
        found = []
        for matrix, mine, others in zip(matrices, hypotheses, premises, strict=True):
            allowed = [
                [
                    all(getattr(one, name) == getattr(other, name) for name in self.config.same)
                    for other in others
                ]
                for one in mine
            ]
            values = np.zeros(len(mine))
            if len(mine) and len(others):
                weights = matrix[..., ENTAILMENT] * np.array(allowed)
                rows, columns = linear_sum_assignment(weights, maximize=True)
                values[rows] = weights[rows, columns]
            found.append(values)
        return found
