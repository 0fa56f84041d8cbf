"""Numbers that an encoder computes for a pair of texts: a rating (BLEURT), an alignment (AlignScore).

Each distinct pair is computed once, in batches of similar length with masked padding, and cached. A pair that is too
long is truncated as the metric's own library does, which differs from tokenizers; a warning counts these pairs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cfbench_core.errors import ResultWarning
from cfbench_core.hashing import digest
from cfbench_text.models.loading import Loaded
from cfbench_text.models.pairs import batched
from cfbench_text.models.response_cache import ResponseCache
from cfbench_text.reviews import FloatArray

Cut = Callable[[int, int, int], tuple[int, int]]
"""(tokens of the first text, of the second, room for both together): how many of each are left."""


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """The longer one loses its end, and of two of one length the second one does."""
    shorter = room // 2
    if first <= shorter:
        return first, room - first
    if second <= shorter:
        return room - second, second
    return room - shorter, shorter


def first_only(first: int, second: int, room: int) -> tuple[int, int]:
    """The first text loses its end, as long as something is left of it."""
    return (room - second, second) if second < room else longest_first(first, second, room)


class PairValues:
    """``name`` of the model is for people; ``identity`` is all that determines its answers; ``limit``: of tokens."""

    def __init__(
        self,
        kind: str,
        name: str,
        identity: Mapping[str, str],
        load: Callable[[], Loaded],
        read: Callable[[Loaded, Mapping[str, Any]], Any],
        cut: Cut,
        limit: int | None = None,
        batch: int = 32,
    ) -> None:
        self.name, self.cut, self.limit, self.batch = name, cut, limit, batch
        self._identity = json.dumps(dict(identity), sort_keys=True)
        self._load, self._read = load, read
        self._cache = ResponseCache(kind)

    def values(self, pairs: Sequence[tuple[str, str]]) -> list[FloatArray]:
        """(K,) for each pair: what ``read`` makes of the tensors, a row for each pair."""
        keys = [digest([self._identity, *pair]) for pair in pairs]

        def compute(places: Sequence[int]) -> Iterator[tuple[int, list[float]]]:
            for at, values in self._computed([pairs[place] for place in places]):
                yield places[at], values

        return [np.asarray(one, dtype=np.float64) for one in self._cache.values(keys, compute)]

    def _computed(self, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[int, list[float]]]:
        loaded = self._load()
        import torch

        rows, kinds = self._tokens(loaded, pairs)

        def read(given: Mapping[str, Any]) -> list[list[float]]:
            with torch.inference_mode():
                found: list[list[float]] = self._read(loaded, given).double().cpu().tolist()
                return found

        for some, found in batched(loaded, rows, kinds, self.batch, read):
            yield from zip(some, found, strict=True)

    def _tokens(
        self, loaded: Loaded, pairs: Sequence[tuple[str, str]]
    ) -> tuple[list[list[int]], list[list[int]] | None]:
        """Token ids, and the index of the text of each token for models that use it."""
        encoded = loaded.tokenizer([one for one, _ in pairs], [other for _, other in pairs])
        rows, kinds = encoded["input_ids"], encoded.get("token_type_ids")
        limit = min(self.limit or loaded.limit, loaded.limit)
        long = [place for place, row in enumerate(rows) if len(row) > limit]
        for place in long:
            remaining = self._left(encoded.sequence_ids(place), limit)
            rows[place] = [rows[place][at] for at in remaining]
            if kinds is not None:
                kinds[place] = [kinds[place][at] for at in remaining]
        if long:
            warnings.warn(
                f"{len(long)} of {len(pairs)} pairs are longer than the {limit} tokens that {self.name} reads,"
                " and are cut",
                ResultWarning,
                stacklevel=2,
            )
        return rows, kinds

    def _left(self, belongs: Sequence[int | None], limit: int) -> list[int]:
        """Places of the tokens that stay: special ones (None), and the beginnings of both texts (0 and 1)."""
        sizes = belongs.count(0), belongs.count(1)
        left = self.cut(*sizes, limit - belongs.count(None))
        seen, remaining = [0, 0], []
        for place, text in enumerate(belongs):
            if text is None or seen[text] < left[text]:
                remaining.append(place)
            if text is not None:
                seen[text] += 1
        return remaining
