"""BARTScore (Yuan et al. 2021): the log-likelihood of one text given the other, by an encoder-decoder model.

    s(a -> b) = mean_t log p(b_t | b_<t, a)    over all tokens of b, including the special ones, as published

``-P`` = s(reference -> text), ``-R`` = s(text -> reference), ``-F`` = their arithmetic mean (the published definition,
not a harmonic mean). Values are at most 0 and comparable within one model only. An empty text has only end tokens; a
missing reference gives NaN. Texts beyond the model's limit are truncated, and a warning counts them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.devices.batches import halved
from cfbench_core.errors import ResultWarning
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.loading import Loaded, Source, batches, load, padded, signature
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/bartscore",
    summary="How likely is one text, given the other?",
    target=f"{__name__}:BARTScore",
    config=f"{__name__}:Config",
    papers=("yuan2021bartscore",),
    details={"default": False, "pretrained": True},
)


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of an encoder-decoder model")] = (
        "facebook/bart-large-cnn"
    )
    batch: Annotated[int, Range(minimum=1), Help("pairs computed at once")] = 8


class BARTScore:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column("BARTScore-P", "higher", None, "How likely is the text, given the reference? Mean log p"),
            Column("BARTScore-R", "higher", None, "How likely is the reference, given the text? Mean log p"),
            Column("BARTScore-F", "higher", None, "Their arithmetic mean"),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        pairs = list(zip(observed.texts, observed.references, strict=True))
        known = [(text, reference) for text, reference in pairs if reference.strip()]
        ways = list(dict.fromkeys([*((r, t) for t, r in known), *known]))
        found = dict(zip(ways, self.log_likelihoods(ways), strict=True))
        p = np.array([found.get((reference, text), np.nan) for text, reference in pairs])
        r = np.array([found.get((text, reference), np.nan) for text, reference in pairs])
        r[[not reference.strip() for _, reference in pairs]] = np.nan
        return {"BARTScore-P": p, "BARTScore-R": r, "BARTScore-F": (p + r) / 2}

    def signature(self) -> Mapping[str, str]:
        direction = "P: reference to text; R: text to reference; F: arithmetic mean"
        return {"metric": "BARTScore", "direction": direction, **signature(self.config)}

    @functools.cached_property
    def _loaded(self) -> Loaded:
        return load("AutoModelForSeq2SeqLM", self.config)

    def log_likelihoods(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Mean log probability of the tokens of the second text, given the first."""
        import torch

        sources, targets = self._tokens([a for a, _ in pairs]), self._tokens([b for _, b in pairs])
        values = np.empty(len(pairs))
        lengths = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]

        def means(some: Sequence[int]) -> FloatArray:
            given = padded(self._loaded, [sources[place] for place in some])
            wanted = padded(self._loaded, [targets[place] for place in some])
            real = wanted["attention_mask"].bool()
            labels = wanted["input_ids"].masked_fill(~real, -100)
            with torch.inference_mode():
                logits = self._loaded.model(**given, labels=labels).logits.float()
                log_probabilities = (
                    torch.log_softmax(logits, dim=-1).gather(2, wanted["input_ids"].unsqueeze(2)).squeeze(2)
                )
            mean = (log_probabilities * real).sum(dim=1) / real.sum(dim=1)
            found: FloatArray = mean.cpu().numpy()
            return found

        for some, found in halved(batches(lengths, self.config.batch), means):
            values[some] = found
        return values

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        rows: list[list[int]] = self._loaded.tokenizer(
            list(texts), truncation=True, max_length=self._loaded.limit
        )["input_ids"]
        cut = sum(len(row) >= self._loaded.limit for row in rows)
        if cut:
            warnings.warn(
                f"{cut} texts fill all {self._loaded.limit} tokens that {self.config.model} reads; longer ones are cut",
                ResultWarning,
                stacklevel=2,
            )
        return rows
