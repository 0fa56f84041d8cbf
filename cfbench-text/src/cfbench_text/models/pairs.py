"""Probabilities of entailment, contradiction and neutral by a sequence-classification model, for pairs of texts.

The order of the labels is read from the model (``id2label``); for a model that does not name them it is an option
(``labels``). With a model of two labels, entailment or not, the probability of "not entailment" counts as neutral:
such a model detects no contradictions. Each distinct pair is computed once, in batches of similar length, and cached.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np

from cfbench_core.config import Help
from cfbench_core.devices.batches import halved
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.hashing import digest
from cfbench_text.models.loading import Loaded, Source, batches, load, padded, signature
from cfbench_text.models.response_cache import ResponseCache
from cfbench_text.reviews import FloatArray

T = TypeVar("T")

NAMES = ("entailment", "contradiction", "neutral")
"""In the order of the result."""


@dataclass(frozen=True, kw_only=True)
class PairSource(Source):
    """An NLI model. The default is that of Statement factuality (footnote 18)."""

    model: Annotated[str, Help("name, folder or package:NAME of an NLI model")] = (
        "microsoft/deberta-large-mnli"
    )
    labels: Annotated[
        tuple[str, ...] | None,
        Help("its labels in order (entailment, contradiction, neutral); none: the model names them"),
    ] = None


class Pairs:
    def __init__(self, source: PairSource) -> None:
        self.source = source
        self._cache = ResponseCache("nli")

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """(N, 3): entailment, contradiction, neutral of (premise, hypothesis)."""
        identity = json.dumps(dict(self.signature()), sort_keys=True)
        keys = [digest([identity, *pair]) for pair in pairs]

        def compute(places: Sequence[int]) -> Iterator[tuple[int, list[float]]]:
            for at, values in self._computed([pairs[place] for place in places]):
                yield places[at], values

        found = self._cache.values(keys, compute)
        return np.asarray(found, dtype=np.float64).reshape(len(pairs), 3)

    def signature(self) -> Mapping[str, str]:
        order = {} if self.source.labels is None else {"labels": " ".join(self.source.labels)}
        return {**signature(self.source), **order}

    @functools.cached_property
    def _loaded(self) -> Loaded:
        return load("AutoModelForSequenceClassification", self.source)

    @functools.cached_property
    def _order(self) -> tuple[int, int | None, int]:
        """Where the model has entailment, contradiction (None: nowhere) and neutral."""
        config = self._loaded.model.config
        named = [str(config.id2label[place]) for place in range(config.num_labels)]
        return label_order(named if self.source.labels is None else self.source.labels, self.source.model)

    def _computed(self, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[int, list[float]]]:
        import torch

        rows, kinds = self._tokens(pairs)
        entailment, contradiction, neutral = self._order

        def judged(given: Mapping[str, Any]) -> FloatArray:
            with torch.inference_mode():
                found: FloatArray = (
                    torch.softmax(self._loaded.model(**given).logits.double(), dim=-1).cpu().numpy()
                )
                return found

        for some, found in batched(self._loaded, rows, kinds, self.source.batch, judged):
            for place, of_pair in zip(some, found.tolist(), strict=True):
                denied = 0.0 if contradiction is None else of_pair[contradiction]
                yield place, [of_pair[entailment], denied, of_pair[neutral]]

    def _tokens(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """Token ids, and the index of the text of each token for models that use it."""
        premises, hypotheses = [one for one, _ in pairs], [other for _, other in pairs]
        tokenizer, limit = self._loaded.tokenizer, self._loaded.limit
        cut = sum(len(row) > limit for row in tokenizer(premises, hypotheses)["input_ids"])
        if cut:
            warnings.warn(
                f"{cut} pairs are longer than the {limit} tokens that {self.source.model} reads, and are cut",
                ResultWarning,
                stacklevel=2,
            )
        encoded: Any = tokenizer(premises, hypotheses, truncation="longest_first", max_length=limit)
        return encoded["input_ids"], encoded.get("token_type_ids")


def batched(
    loaded: Loaded,
    rows: Sequence[Sequence[int]],
    kinds: Sequence[Sequence[int]] | None,
    size: int,
    compute: Callable[[Mapping[str, Any]], T],
) -> Iterator[tuple[Sequence[int], T]]:
    """Batches of similar length: which rows, and what ``compute`` makes of what the model is given.

    ``kinds``: see :meth:`Pairs._tokens`.
    """
    import torch

    def computed(some: Sequence[int]) -> T:
        given = dict(padded(loaded, [rows[place] for place in some]))
        if kinds is not None:
            width = given["input_ids"].shape[1]
            encoded = [[*kinds[place], *[0] * (width - len(kinds[place]))] for place in some]
            given["token_type_ids"] = torch.tensor(encoded, device=loaded.device)
        return compute(given)

    return halved(batches([len(row) for row in rows], size), computed)


def label_order(labels: Sequence[str], model: str) -> tuple[int, int | None, int]:
    """Where entailment, contradiction and neutral are, from the names of the labels in any spelling."""
    bare = [label.lower().replace("-", "_").replace(" ", "_") for label in labels]
    if len(bare) == 2:
        other = [place for place, name in enumerate(bare) if name.startswith(("not_", "non_"))]
        if len(other) == 1 and "entail" in bare[1 - other[0]]:
            return 1 - other[0], None, other[0]
    found = [[place for place, name in enumerate(bare) if name.startswith(start[:6])] for start in NAMES]
    if len(bare) != 3 or any(len(places) != 1 for places in found):
        raise UserError(
            f"model {model!r} has the labels {', '.join(labels)}: needs entailment, contradiction and neutral; if it"
            " is an NLI model, give their order in 'labels'"
        )
    return found[0][0], found[1][0], found[2][0]
