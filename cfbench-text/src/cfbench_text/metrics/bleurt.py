"""BLEURT (Sellam et al. 2020): a BERT trained to predict human ratings of a text against a reference. Not factuality.

    BLEURT = w . pooled([CLS] reference [SEP] text [SEP]) + b

The value is that of a regression, mostly between -2 and 1 for the models of 2020. It is unbounded and comparable within
one model only. The order (reference, text) matters.

Any model with one output that ``transformers`` supports can be used: ``Elron/bleurt-base-512`` and its ``tiny``,
``large`` and ``-128`` variants (BERT, the checkpoints of 2020), or a RemBERT with one label. Models of type ``bleurt``
(``lucadiliello/bleurt-base-512``, ``lucadiliello/BLEURT-20``, ...) need code of their own, which is not executed, and do
not load; therefore BLEURT-20, the later checkpoint, is not supported.

Long pairs are truncated as published: the longer of the two texts loses its end, and a warning counts these pairs. The
``-128`` models were trained with, and as published read, 128 tokens, although they have 512 positions: ``limit: 128``.
Statement factuality names a library (``evaluate``) and no checkpoint; the library's default is base-128, which reads
only the beginnings of long pairs. The published library pads every pair to its limit; here padding is masked, which
only saves time.

An empty text has the value that the model computes for it; a missing reference gives NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.errors import UserError
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.loading import Loaded, Source, load, signature
from cfbench_text.models.pair_values import PairValues, longest_first
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/bleurt",
    summary="How would people rate the text compared with the reference?",
    target=f"{__name__}:BLEURT",
    config=f"{__name__}:Config",
    papers=("sellam2020bleurt",),
    details={"default": False, "pretrained": True},
)


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of a BLEURT model")] = "Elron/bleurt-base-512"
    limit: Annotated[
        int | None,
        Range(minimum=8),
        Help("tokens of both texts together; none: as many as the model has places"),
    ] = None


class BLEURT:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> Sequence[Column]:
        return (Column("BLEURT", "higher", None, "How would people rate the text, given the reference?"),)

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        pairs = list(zip(observed.references, observed.texts, strict=True))
        known = list(dict.fromkeys(pair for pair in pairs if pair[0].strip()))
        found = dict(zip(known, self._pairs.values(known), strict=True))
        values = [float(found[pair][0]) if pair in found else np.nan for pair in pairs]
        return {"BLEURT": np.asarray(values, dtype=np.float64)}

    def signature(self) -> Mapping[str, str]:
        limit = "the model's" if self.config.limit is None else str(self.config.limit)
        return {
            "metric": "BLEURT",
            "direction": "reference, then text",
            "limit": limit,
            **signature(self.config),
        }

    @functools.cached_property
    def _pairs(self) -> PairValues:
        c = self.config
        return PairValues(
            "bleurt", c.model, self.signature(), self._load, _rating, longest_first, c.limit, c.batch
        )

    def _load(self) -> Loaded:
        loaded = load("AutoModelForSequenceClassification", self.config)
        outputs = loaded.model.config.num_labels
        if outputs != 1:
            raise UserError(
                f"model {self.config.model!r} has {outputs} outputs: BLEURT needs one, a rating, as"
                " Elron/bleurt-base-512 has it"
            )
        return loaded


def _rating(loaded: Loaded, given: Mapping[str, Any]) -> Any:
    return loaded.model(**given).logits
