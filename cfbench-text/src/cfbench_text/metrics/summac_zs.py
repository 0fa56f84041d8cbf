"""SummaC-ZS (Laban et al. 2022): does the reference entail the text, sentence by sentence? Without training.

E_kl and C_kl = the NLI model's probabilities of entailment and contradiction for premise b_l and hypothesis a_k,
sentences of two texts.

    ZS(a | b) = mean_k ( max_l E_kl - max_l C_kl )   or, with ``score: difference``, mean_k max_l (E_kl - C_kl)

``-P``: the reference is the premise (a = text, b = reference); ``-R``: the text is the premise. The published code of
Statement factuality passes them in the opposite order and so reports recall as precision. Its library takes the maxima
separately, the paper's formula (X = E - C) does not; both are implemented, and the signature names the choice. An empty
text entails nothing and is entailed by nothing: the lowest value. A missing reference gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help
from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.pairs import Pairs, PairSource
from cfbench_text.reviews import FloatArray
from cfbench_text.sentence_segmentation import sentences

SPEC = ComponentSpec(
    id="text/metric/summac-zs",
    summary="Sentences that the other text entails",
    target=f"{__name__}:SummaCZS",
    config=f"{__name__}:Config",
    papers=("laban2022summac",),
    details={"default": False, "pretrained": True},
)


DIRECTION = "P: premise is the reference; R: premise is the text"


@dataclass(frozen=True, kw_only=True)
class Config(PairSource):
    score: Annotated[
        Literal["apart", "difference"], Help("max(E) - max(C), as the library; or max(E - C), as the paper")
    ] = "apart"


class SummaCZS:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._pairs = Pairs(config)

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column("SummaC-ZS-P", "higher", (-1.0, 1.0), "Does the reference entail the text's sentences?"),
            Column("SummaC-ZS-R", "higher", (-1.0, 1.0), "Does the text entail the reference's sentences?"),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        return both_ways("SummaC-ZS", observed, self._pairs, self._zero_shot)

    def signature(self) -> Mapping[str, str]:
        what = {"apart": "max(E) - max(C)", "difference": "max(E - C)"}[self.config.score]
        return {"metric": "SummaC-ZS", "score": what, "direction": DIRECTION, **self._pairs.signature()}

    def _zero_shot(self, matrix: FloatArray) -> float:
        if not matrix.size:
            return -1.0
        entailed, denied = matrix[..., 0], matrix[..., 1]
        if self.config.score == "apart":
            return float((entailed.max(axis=1) - denied.max(axis=1)).mean())
        return float((entailed - denied).max(axis=1).mean())


def both_ways(
    name: str, observed: ObservedTexts, pairs: Pairs, score: Callable[[FloatArray], float]
) -> dict[str, FloatArray]:
    """NAME-P and NAME-R: ``score`` of the (hypotheses, premises, 3) probabilities, NaN without a reference."""
    texts, references = map(sentences, observed.texts), map(sentences, observed.references)
    sides = list(zip(texts, references, strict=True))
    found = [score(matrix) for matrix in _matrices([*sides, *((one, other) for other, one in sides)], pairs)]
    known = [bool(reference) for _, reference in sides]
    values = np.where(
        [known, known], np.reshape(np.asarray(found, dtype=np.float64), (2, len(sides))), np.nan
    )
    return {f"{name}-P": values[0], f"{name}-R": values[1]}


def _matrices(sides: Sequence[tuple[list[str], list[str]]], pairs: Pairs) -> list[FloatArray]:
    """One for each (hypotheses, premises); all distinct pairs of both directions are computed in one call."""
    wanted = [(premise, hypothesis) for mine, others in sides for hypothesis in mine for premise in others]
    distinct = {pair: place for place, pair in enumerate(dict.fromkeys(wanted))}
    probabilities = pairs.probabilities(list(distinct))[[distinct[pair] for pair in wanted]]
    found, start = [], 0
    for mine, others in sides:
        end = start + len(mine) * len(others)
        found.append(probabilities[start:end].reshape(len(mine), len(others), 3))
        start = end
    return found
