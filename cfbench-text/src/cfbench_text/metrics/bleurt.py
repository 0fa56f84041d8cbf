"""BLEURT (Sellam et al. 2020): a BERT that was trained to rate a text against a reference as people did. Not truth.

    BLEURT = w . pooled([CLS] reference [SEP] text [SEP]) + b

The value is that of a regression, mostly between -2 and 1 for the models of 2020, and is compared within one model
only; it is no probability and has no bounds. The order is (reference, text), and matters.

Any model loads that ``transformers`` knows and that has one output: ``Elron/bleurt-base-512`` and its
``tiny``, ``large`` and ``-128`` (BERT, the checkpoints of 2020), or a RemBERT with one label. Those with
the model type ``bleurt`` (``lucadiliello/bleurt-base-512``, ``lucadiliello/BLEURT-20``, ...) bring code of their own,
which is not run, and do not load: so BLEURT-20, the later checkpoint, does not.

What is too long is cut as published: the longer of the two loses its end, and there is a warning that says how often.
The ``-128`` models were trained, and as published read, 128 tokens, though they have places for 512: ``limit: 128``.
Paper 004 names a library (``evaluate``) and no checkpoint; the default there is base-128, so of long pairs only the
beginnings. The published library fills every pair up to its limit; here padding is masked, which changes nothing but
time.

An empty text has the value that the model gives it; a missing reference gives NaN.
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
