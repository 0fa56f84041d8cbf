"""BERTScore P, R, F (Zhang et al. 2020): each token against the most similar token of the other side. Not factuality.

    P = mean_{t in text} max_{r in reference} cos(t, r)     R: the converse     F = 2 P R / (P + R)

over the hidden states of one layer, without idf. As in the reference implementation, special tokens ([CLS], </s>) have
no weight in the means but other tokens may match them; ``special: leave-out`` removes them completely. Raw values of
unrelated texts are near 0.8 to 0.9 with most models, so raw BERTScore is not a measure of quality: with the model's
``baseline`` (a file as bert-score publishes them: LAYER,P,R,F) each value x becomes (x - b) / (1 - b).

An empty text has raw value 0. The paper uses layer 17 of roberta-large; each model has its own best layer.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.loading import Source, signature
from cfbench_text.models.tokens import Encoder, Vectors
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/bertscore",
    summary="Is each word similar to a word of the other text?",
    target=f"{__name__}:BERTScore",
    config=f"{__name__}:Config",
    papers=("zhang2020bertscore",),
    details={"default": False, "pretrained": True},
)


TOGETHER = 256
"""Rows whose token vectors are in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of an encoder")] = "roberta-large"
    layer: Annotated[int | None, Range(minimum=0), Help("whose hidden states; none: the last")] = 17
    special: Annotated[
        Literal["match", "leave-out"], Help("whether other tokens may match special ones, as in bert-score")
    ] = "match"
    baseline: Annotated[str | None, Help("file to rescale with; none: raw values")] = None


class BERTScore:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._encoder = Encoder(config, config.layer, as_inside=True)

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column("BERTScore-P", "higher", None, "Is each word of the text like one of the reference?"),
            Column("BERTScore-R", "higher", None, "Is each word of the reference like one of the text?"),
            Column("BERTScore-F", "higher", None, "Their harmonic mean"),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        pairs = list(zip(observed.texts, observed.references, strict=True))
        distinct = sorted(dict.fromkeys(pairs), key=lambda pair: (len(pair[0]) + len(pair[1]), pair))
        found: dict[tuple[str, str], FloatArray] = {}
        for start in range(0, len(distinct), TOGETHER):
            some = distinct[start : start + TOGETHER]
            found.update(zip(some, self._raw(some), strict=True))
        raw = np.array([found[pair] for pair in pairs]).reshape(len(pairs), 3)
        baseline = self._baseline()
        values = (raw - baseline) / (1 - baseline)
        return {column.name: values[:, place] for place, column in enumerate(self.columns({}))}

    def signature(self) -> Mapping[str, str]:
        rescaled = (
            "no"
            if self.config.baseline is None
            else file_digest(Path(self.config.baseline).expanduser())[:16]
        )
        about = {"layer": str(self.config.layer), "special tokens": self.config.special, "rescaled": rescaled}
        return {"metric": "BERTScore", "idf": "no", **about, **signature(self.config)}

    def _raw(self, pairs: Sequence[tuple[str, str]]) -> list[FloatArray]:
        texts = list(dict.fromkeys(text for pair in pairs for text in pair if text.strip()))
        vectors = {texts[place]: _unit(one) for place, one in self._encoder.vectors(texts)} if texts else {}
        return [self._of_pair(vectors, *pair) for pair in pairs]

    def _of_pair(self, vectors: Mapping[str, Vectors], text: str, reference: str) -> FloatArray:
        if not reference.strip():
            return np.full(3, np.nan)
        if not text.strip():
            return np.zeros(3)
        mine, other = vectors[text], vectors[reference]
        similar = mine.states @ other.states.T
        if self.config.special == "leave-out":
            similar = similar[np.ix_(~mine.special, ~other.special)]
            p, r = similar.max(axis=1).mean(), similar.max(axis=0).mean()
        else:
            p = similar.max(axis=1)[~mine.special].mean()
            r = similar.max(axis=0)[~other.special].mean()
        return np.array([p, r, 2 * p * r / (p + r) if p + r else 0.0])

    def _baseline(self) -> FloatArray:
        """(3,) of the layer; zeros without a file."""
        if self.config.baseline is None:
            return np.zeros(3)
        path = Path(self.config.baseline).expanduser()
        if not path.is_file():
            raise UserError(
                f"baseline {path}: no such file; bert-score publishes one for each model and language"
            )
        with path.open(newline="") as file:
            rows = {int(row["LAYER"]): row for row in csv.DictReader(file)}
        layer = max(rows) if self.config.layer is None else self.config.layer
        if layer not in rows:
            raise UserError(f"baseline {path}: has no layer {layer}; it has 0 to {max(rows)}")
        return np.array([float(rows[layer][name]) for name in "PRF"])


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors.states, axis=1, keepdims=True)
    return Vectors(vectors.states / lengths, vectors.special)
