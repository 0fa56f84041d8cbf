"""Encodes texts: a vector for each token, or one for each text."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cfbench_core.devices.batches import halved
from cfbench_core.errors import ResultWarning, UserError
from cfbench_text.models.loading import Loaded, Source, batches, find_local, load, padded
from cfbench_text.reviews import FloatArray

BoolArray = NDArray[np.bool_]
_BLANKS_IN_WORDS = ("Roberta", "GPT2")
"""Tokenizers to whom " word" and "word" are different; these are the two that bert-score treats so."""


@dataclass(frozen=True)
class Vectors:
    """Of one text: (T, d) hidden states, and which of the T tokens are special ([CLS], <s>, ...)."""

    states: FloatArray
    special: BoolArray


class Encoder:
    """``layer``: whose hidden states, counted from 0, the embeddings; None: the last.

    ``as_inside``: the first word of a text is written as words inside a text are (with the blank before it that
    belongs to a word of RoBERTa and GPT-2), as the reference implementation of BERTScore has it.
    """

    def __init__(self, source: Source, layer: int | None = None, as_inside: bool = False) -> None:
        self.source = source
        self.layer = layer
        self.as_inside = as_inside

    @functools.cached_property
    def _loaded(self) -> Loaded:
        return load("AutoModel", self.source)

    def vectors(self, texts: Sequence[str], limit: int | None = None) -> Iterator[tuple[int, Vectors]]:
        """(place, vectors) of each text, the longest first; blank ends do not count. A text beyond the model's
        limit is truncated, as in the reference implementations, and a warning counts these texts."""
        import torch

        layers = self._loaded.model.config.num_hidden_layers
        if self.layer is not None and self.layer > layers:
            raise UserError(
                f"model {self.source.model!r} has the layers 0 to {layers}, and no layer {self.layer}"
            )
        most = min(limit or self._loaded.limit, self._loaded.limit)
        before = (
            " "
            if self.as_inside and type(self._loaded.tokenizer).__name__.startswith(_BLANKS_IN_WORDS)
            else ""
        )
        rows, special = self._tokens([before + text.strip() for text in texts], most)

        def states_of(some: Sequence[int]) -> FloatArray:
            given = padded(self._loaded, [rows[place] for place in some])
            with torch.inference_mode():
                out = self._loaded.model(**given, output_hidden_states=self.layer is not None)
            states = out.last_hidden_state if self.layer is None else out.hidden_states[self.layer]
            found: FloatArray = states.float().cpu().numpy()
            return found

        for some, states in halved(batches([len(row) for row in rows], self.source.batch), states_of):
            for place, of_text in zip(some, states, strict=True):
                own = of_text[: len(rows[place])].astype(np.float64)
                yield place, Vectors(own, np.asarray(special[place], dtype=bool))

    def _tokens(self, texts: Sequence[str], most: int) -> tuple[list[list[int]], list[list[int]]]:
        tokenizer = self._loaded.tokenizer
        encoded: Any = tokenizer(
            list(texts), truncation=True, max_length=most, return_special_tokens_mask=True
        )
        rows, special = encoded["input_ids"], encoded["special_tokens_mask"]
        full = [place for place, row in enumerate(rows) if len(row) >= most]
        cut = sum(len(tokenizer(texts[place])["input_ids"]) > most for place in full)
        if cut:
            warnings.warn(
                f"{cut} texts are longer than the {most} tokens that {self.source.model} reads, and are cut",
                ResultWarning,
                stacklevel=2,
            )
        return rows, special

    def embeddings(self, texts: Sequence[str]) -> FloatArray:
        """(N, d) unit vectors, pooled as its sentence-transformers files specify; by default the mean of all tokens."""
        pooling, limit = _pooling(self.source)
        found: dict[int, FloatArray] = {}
        for place, vectors in self.vectors(texts, limit):
            pooled = vectors.states[0] if pooling == "cls" else vectors.states.mean(axis=0)
            found[place] = pooled / max(float(np.linalg.norm(pooled)), 1e-12)
        return np.stack([found[place] for place in range(len(texts))]) if texts else np.empty((0, 0))


def _pooling(source: Source) -> tuple[str, int | None]:
    """ "mean" or "cls", and the longest text, from the files that sentence-transformers stores with a model."""
    folder = find_local(source.model)
    if folder is None:
        return "mean", None
    about, limits = folder / "1_Pooling" / "config.json", folder / "sentence_bert_config.json"
    encoded = json.loads(about.read_text()) if about.is_file() else {}
    limit = json.loads(limits.read_text()).get("max_seq_length") if limits.is_file() else None
    return "cls" if encoded.get("pooling_mode_cls_token") else "mean", limit
