"""LettuceDetect: the parts of a text that its reference does not support (Kovács and Recski 2025), as character spans.

The published models are ModernBERT token classifiers with two classes, the second of which is "hallucinated". As in the
published code, the input is a pair: the reference in the prompt of a summary, and the text; the reference is truncated
if the pair is too long; a token of the text whose second class is the likelier is unsupported, and neighbouring ones are a
span. The score is the share of the characters of a text that are in spans; 0 for an empty text, NaN without a reference and
for a text that is too long for the model.

``spans.parquet`` of a run has the spans of each text, and the analysis ``examples`` marks them. No code of a model is
executed. We have not run the published weights, only tiny models in their layout.
"""

from __future__ import annotations

import functools
import itertools
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.devices.batches import halved
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.hashing import digest
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.loading import Loaded, Source, batches, load, padded, signature
from cfbench_text.models.response_cache import ResponseCache
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/lettucedetect",
    summary="Which share of the text does the reference not support? (character spans)",
    target=f"{__name__}:LettuceDetect",
    config=f"{__name__}:Config",
    papers=("kovacs2025lettucedetect",),
    details={"default": False, "pretrained": True},
)

NAME = "LettuceDetect"
PROMPT = "Summarize the following text:\npassage 1: {text}\noutput:"
"""How the models read a reference without a question."""
PLACE = "{text}"


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of a LettuceDetect model")] = (
        "KRLabsOrg/lettucedect-base-modernbert-en-v1"
    )
    tokens: Annotated[int, Range(minimum=8), Help("maximum length of reference and text together")] = 4096
    prompt: Annotated[str, Help("what the model reads before the text; {text}: the reference")] = PROMPT

    def __post_init__(self) -> None:
        if self.prompt.count(PLACE) != 1:
            raise ValueError(f"prompt: needs {PLACE} once")


class Span(NamedTuple):
    """The characters ``text[start:end]``. p: the largest probability of a token in it to be unsupported."""

    start: int
    end: int
    p: float


class LettuceDetect:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._cache = ResponseCache("lettucedetect")

    def columns(self, point: Point) -> Sequence[Column]:
        question = "Which share of the characters of the text does the reference not support?"
        return (Column(NAME, "lower", (0.0, 1.0), question),)

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        found = zip(observed.texts, observed.references, self.spans(observed), strict=True)
        shares = [
            np.nan
            if spans is None or not reference.strip()
            else sum(span.end - span.start for span in spans) / max(1, len(text))
            for text, reference, spans in found
        ]
        return {NAME: np.array(shares, dtype=np.float64)}

    def spans(self, observed: ObservedTexts) -> list[list[Span] | None]:
        """The unsupported spans of each text: [] for a blank text or reference, None for a text that is too long."""
        pairs = list(zip(observed.references, observed.texts, strict=True))
        judged = list(dict.fromkeys(pair for pair in pairs if all(one.strip() for one in pair)))
        identity = json.dumps(dict(self.signature()), sort_keys=True)

        def compute(places: Sequence[int]) -> Iterator[tuple[int, Any]]:
            for at, value in self._computed([judged[place] for place in places]):
                yield places[at], value

        values = self._cache.values([digest([identity, *pair]) for pair in judged], compute)
        known: dict[tuple[str, str], list[Span] | None] = {
            pair: None if found is None else [Span(int(start), int(end), float(p)) for start, end, p in found]
            for pair, found in zip(judged, values, strict=True)
        }
        return [known.get(pair, []) for pair in pairs]

    def signature(self) -> Mapping[str, str]:
        settings = digest([self.config.prompt, self.config.tokens])[:16]
        return {"metric": NAME, "input": settings, **signature(self.config)}

    @functools.cached_property
    def _loaded(self) -> Loaded:
        found = load("AutoModelForTokenClassification", self.config)
        if found.model.config.num_labels != 2:
            raise UserError(
                f"model {self.config.model!r} has {found.model.config.num_labels} labels: a model of LettuceDetect has"
                " two, supported and hallucinated"
            )
        if not found.tokenizer.is_fast:
            raise UserError(f"model {self.config.model!r} has no fast tokenizer, which places of tokens need")
        return found

    def _computed(self, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[int, list[Span]]]:
        import torch

        loaded, limit = self._loaded, min(self.config.tokens, self._loaded.limit)
        encoded = [self._encoded(reference, text, limit) for reference, text in pairs]
        cut = sum(one is None for one in encoded)
        if cut:
            warnings.warn(
                f"{cut} texts are longer than the {limit} tokens that {NAME} reads; they have no score",
                ResultWarning,
                stacklevel=2,
            )
        fits = [place for place, one in enumerate(encoded) if one is not None]
        rows = [encoded[place] for place in fits]
        lengths = [len(row["input_ids"]) for row in rows if row]

        def unsupported(some: Sequence[int]) -> FloatArray:
            chosen = [row["input_ids"] for row in (rows[at] for at in some) if row is not None]
            with torch.inference_mode():
                logits = loaded.model(**padded(loaded, chosen)).logits
            found: FloatArray = torch.softmax(logits.double(), dim=-1)[..., 1].cpu().numpy()
            return found

        for some, probabilities in halved(batches(lengths, self.config.batch), unsupported):
            for at, p in zip(some, probabilities, strict=True):
                row = rows[at]
                assert row is not None, "only those that fit are here"
                yield fits[at], spans_of(p, row["offset_mapping"], row.sequence_ids())

    def _encoded(self, reference: str, text: str, limit: int) -> Any:
        """Tokens of the pair, the reference truncated; None if the text alone is too long."""
        tokenizer = self._loaded.tokenizer
        special = tokenizer.num_special_tokens_to_add(pair=True)
        if len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]) + special >= limit:
            return None
        given = self.config.prompt.replace(PLACE, reference)
        return tokenizer(
            given, text, truncation="only_first", max_length=limit, return_offsets_mapping=True, verbose=False
        )


def spans_of(p: FloatArray, offsets: Sequence[tuple[int, int]], parts: Sequence[int | None]) -> list[Span]:
    """Runs of tokens of the second part of a pair that are likelier unsupported than not.

    Args:
        p: (at least T,) the probability of each token to be unsupported. offsets: (T,) its characters in its part.
        parts: (T,) 1 for tokens of the text, 0 for those of the reference, None for special tokens.
    """
    inside = [
        (start, end, float(value))
        for value, (start, end), part in zip(p, offsets, parts, strict=False)
        if part == 1 and end > start
    ]
    found = []
    for unsupported, run in itertools.groupby(inside, key=lambda token: token[2] > 0.5):
        tokens = list(run)
        if unsupported:
            found.append(Span(tokens[0][0], tokens[-1][1], max(token[2] for token in tokens)))
    return found
