"""``minicheck``: does a text support a statement, by MiniCheck (Tang et al. 2024), a model trained for that.

The published models are read by name or folder, without code of theirs: MiniCheck-RoBERTa-Large and
MiniCheck-DeBERTa-v3-Large (two classes, the second is "supported") and MiniCheck-Flan-T5-Large (the answer 0 or 1; its
probability is that of "1" against "0" as the first token). As in the published code,

- the input is the text, the end token and the statement; before it "predict: " for Flan-T5;
- a long text is split at sentences into chunks of 400 tokens (Flan-T5: 500 words), and the chunk with the highest
  probability counts;
- inputs are truncated at 512 tokens (RoBERTa) or 2,048. A warning counts them, because the statement is at the end.

Sentences are segmented by the suite, not by NLTK. A statement is judged as the sentence that expresses it with its
sentiment; an empty text supports nothing. With ``bare: true`` the statement alone is judged, without the sentence.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.devices.batches import halved
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.hashing import digest
from cfbench_core.specs import ComponentSpec
from cfbench_text.documents import Document
from cfbench_text.models.loading import Loaded, Source, batches, load, padded, signature
from cfbench_text.models.response_cache import ResponseCache
from cfbench_text.reviews import FloatArray
from cfbench_text.sentence_segmentation import sentences
from cfbench_text.triplets import Triplet, sentence

SPEC = ComponentSpec(
    id="text/judge/minicheck",
    summary="MiniCheck: a model that checks a statement against a text",
    target=f"{__name__}:MiniCheck",
    config=f"{__name__}:Config",
    provides={"verdict": {"support"}},
    papers=("tang2024minicheck",),
    details={"default": False, "pretrained": True},
)

ENCODER_CHUNK, SEQ2SEQ_CHUNK = 400, 500
"""Tokens, and words, of a chunk."""
ROBERTA_LIMIT, LIMIT = 512, 2048
"""Tokens of an input."""


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of a MiniCheck model")] = (
        "lytang/MiniCheck-DeBERTa-v3-Large"
    )
    chunk: Annotated[
        int | None, Range(minimum=1), Help("tokens (Flan-T5: words) of a chunk; none: 400 (500)")
    ] = None
    bare: Annotated[bool, Help("judge the statement without the sentence that expresses its sentiment")] = (
        False
    )


class MiniCheck:
    name = "minicheck"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._cache = ResponseCache(self.name)

    def prepare(self, statements: Collection[str]) -> None: ...

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        chunks = {text: self._chunks(text) for text in dict.fromkeys(document.text for document, _ in pairs)}
        queries = [
            [
                (chunk, statement.statement if self.config.bare else sentence(statement))
                for chunk in chunks[d.text]
            ]
            for d, statement in pairs
        ]
        distinct = list(dict.fromkeys(query for of_pair in queries for query in of_pair))
        known = dict(zip(distinct, self._probabilities(distinct), strict=True))
        return np.array(
            [max((known[query] for query in of_pair), default=0.0) for of_pair in queries], dtype=np.float64
        )

    def signature(self) -> Mapping[str, str]:
        chunk = {} if self.config.chunk is None else {"chunk": str(self.config.chunk)}
        return {"judge": self.name, **chunk, **signature(self.config)}

    @functools.cached_property
    def _seq2seq(self) -> bool:
        from transformers import AutoConfig

        from cfbench_text.models.loading import location

        where, more = location(self.config)
        try:
            return bool(AutoConfig.from_pretrained(where, **more).is_encoder_decoder)
        except (OSError, ValueError, KeyError):
            return False  # loading the model says what is wrong

    @functools.cached_property
    def _loaded(self) -> Loaded:
        kind = "AutoModelForSeq2SeqLM" if self._seq2seq else "AutoModelForSequenceClassification"
        found = load(kind, self.config)
        if not self._seq2seq and found.model.config.num_labels != 2:
            raise UserError(
                f"model {self.config.model!r} has {found.model.config.num_labels} labels: a model of {self.name} has two,"
                " not supported and supported; use the judge nli for an NLI model"
            )
        return found

    def _chunks(self, text: str) -> list[str]:
        lines = [sentences(line) for line in text.split("\n")]
        marked = [piece for line in lines for piece in (*line, "\n")][:-1]
        size = self.config.chunk or (SEQ2SEQ_CHUNK if self._seq2seq else ENCODER_CHUNK)
        found = [chunk.replace(" \n ", "\n").strip() for chunk in chunked(marked, size, self._length)]
        return [chunk for chunk in found if chunk]

    def _length(self, text: str) -> int:
        if self._seq2seq:
            return len(text.split())
        return len(self._loaded.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _probabilities(self, queries: Sequence[tuple[str, str]]) -> list[float]:
        identity = json.dumps(dict(self.signature()), sort_keys=True)

        def compute(places: Sequence[int]) -> Iterator[tuple[int, float]]:
            for at, value in self._computed([queries[place] for place in places]):
                yield places[at], value

        found = self._cache.values([digest([identity, *query]) for query in queries], compute)
        return [float(value) for value in found]

    def _computed(self, queries: Sequence[tuple[str, str]]) -> Iterator[tuple[int, float]]:
        import torch

        loaded = self._loaded
        rows = self._rows([self._input(text, claim) for text, claim in queries])
        answers = self._answers() if self._seq2seq else None

        def judged(some: Sequence[int]) -> list[float]:
            given: dict[str, Any] = dict(padded(loaded, [rows[place] for place in some]))
            if answers is not None:
                first = loaded.model.config.decoder_start_token_id
                given["decoder_input_ids"] = torch.full((len(some), 1), first, device=loaded.device)
            with torch.inference_mode():
                logits = loaded.model(**given).logits
            logits = logits if answers is None else logits[:, 0, answers]
            found: list[float] = torch.softmax(logits.double(), dim=-1)[:, 1].tolist()
            return found

        for some, found in halved(batches([len(row) for row in rows], self.config.batch), judged):
            yield from zip(some, found, strict=True)

    def _input(self, text: str, claim: str) -> str:
        """What the model reads for a chunk of the text, and the statement."""
        start = "predict: " if self._seq2seq else ""
        return f"{start}{text}{self._loaded.tokenizer.eos_token}{claim}"

    def _rows(self, texts: Sequence[str]) -> list[list[int]]:
        limit = ROBERTA_LIMIT if "roberta" in str(self._loaded.model.config.model_type) else LIMIT
        places = getattr(self._loaded.model.config, "max_position_embeddings", None)
        if places and not self._seq2seq and "deberta" not in str(self._loaded.model.config.model_type):
            limit = min(limit, self._loaded.limit)
        rows: list[list[int]] = self._loaded.tokenizer(list(texts), verbose=False)["input_ids"]
        cut = [place for place, row in enumerate(rows) if len(row) > limit]
        if cut:
            warnings.warn(
                f"{len(cut)} inputs are longer than {limit} tokens and are cut, with the end of their statements: set a"
                f" smaller 'chunk' of judge {self.name}",
                ResultWarning,
                stacklevel=2,
            )
            shorter = self._loaded.tokenizer([texts[p] for p in cut], truncation=True, max_length=limit)
            for place, row in zip(cut, shorter["input_ids"], strict=True):
                rows[place] = row
        return rows

    def _answers(self) -> list[int]:
        """The first tokens of the answers 0 and 1."""
        tokenizer = self._loaded.tokenizer
        found = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in ("0", "1")]
        if found[0] == found[1] or tokenizer.unk_token_id in found:
            raise UserError(f"model {self.config.model!r} has no tokens for the answers 0 and 1")
        return found


def chunked(
    pieces: Sequence[str], size: int, length: Callable[[str], int], between: str = " "
) -> Iterator[str]:
    """Runs of pieces of at most ``size`` together; a piece that is longer is a run by itself."""
    current: list[str] = []
    total = 0
    for piece in pieces:
        added = length(piece)
        if total + added > size and current:
            yield between.join(current)
            current, total = [], 0
        current.append(piece)
        total += added
    if current:
        yield between.join(current)
