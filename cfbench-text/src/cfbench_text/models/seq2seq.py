"""What an encoder-decoder model (T5 and its kin) writes for a text: greedy, kept by hash, the same whatever the batch."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.hashing import digest
from cfbench_text.models.loading import Loaded, Source, batches, load, padded, signature
from cfbench_text.models.response_cache import ResponseCache


@dataclass(frozen=True)
class GeneratedText:
    """``cut``: it was stopped by its length. ``first``: how probable it was to begin as the word asked about does."""

    text: str
    cut: bool
    first: float | None = None


class Seq2SeqWriter:
    def __init__(self, source: Source) -> None:
        self.source = source
        self._cache = ResponseCache("seq2seq")

    def write(self, texts: Sequence[str], tokens: int, word: str = "") -> list[GeneratedText]:
        """One answer of at most ``tokens`` tokens for each text, each distinct one asked once.

        word: the probability of its first token at the first place is told with each answer.
        """
        identity = json.dumps(signature(self.source), sort_keys=True)
        keys = [digest([identity, tokens, word, text]) for text in texts]

        def ask(places: Sequence[int]) -> Iterator[tuple[int, list[str | bool | float | None]]]:
            for at, written in self._written([texts[place] for place in places], tokens, word):
                yield places[at], [written.text, written.cut, written.first]

        return [GeneratedText(*answer) for answer in self._cache.answers(keys, ask)]

    @functools.cached_property
    def _loaded(self) -> Loaded:
        return load("AutoModelForSeq2SeqLM", self.source)

    def _written(self, texts: Sequence[str], tokens: int, word: str) -> Iterator[tuple[int, GeneratedText]]:
        import torch
        from transformers import GenerationConfig

        tokenizer, model = self._loaded.tokenizer, self._loaded.model
        asked = self._first_token(word) if word else None
        settings = GenerationConfig(
            max_new_tokens=tokens,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
            return_dict_in_generate=True,
            output_logits=asked is not None,
        )
        rows = self._rows(texts)
        for some in batches([len(row) for row in rows], self.source.batch):
            given = padded(self._loaded, [rows[place] for place in some])
            with torch.inference_mode():
                out = model.generate(**given, generation_config=settings)
            firsts: list[float | None] = [None] * len(some)
            if asked is not None:
                firsts = torch.softmax(out.logits[0].double(), dim=-1)[:, asked].tolist()
            for place, ids, first in zip(some, out.sequences[:, 1:].tolist(), firsts, strict=True):
                end = ids.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in ids else None
                text = tokenizer.decode(ids[:end], skip_special_tokens=True).strip()
                yield place, GeneratedText(text, end is None, first)

    def _rows(self, texts: Sequence[str]) -> list[list[int]]:
        tokenizer, limit = self._loaded.tokenizer, self._loaded.limit
        rows: list[list[int]] = tokenizer(list(texts))["input_ids"]
        cut = sum(len(row) > limit for row in rows)
        if not cut:
            return rows
        warnings.warn(
            f"{cut} texts are longer than the {limit} tokens that {self.source.model} reads, and are cut",
            ResultWarning,
            stacklevel=2,
        )
        shorter: list[list[int]] = tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        return shorter

    def _first_token(self, word: str) -> int:
        tokenizer = self._loaded.tokenizer
        ids: list[int] = tokenizer(word, add_special_tokens=False)["input_ids"]
        if not ids or ids[0] == tokenizer.unk_token_id:
            raise UserError(
                f"model {self.source.model!r} has no token for {word!r}, with which it would answer: choose another model"
            )
        return ids[0]
