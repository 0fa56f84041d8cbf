"""Reviews: the common form of all data sets, with user, item, rating, time and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cfbench_text.triplets import Triplet

TextArray = np.ndarray[Any, np.dtype[np.object_]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Reviews:
    """N reviews in the order of their file.

    Attributes:
        name: of the data set.
        domain: name or path of its topics.
        users, items: (N,) identifiers, text.
        ratings: (N,) NaN where there is none.
        times: (N,) seconds since 1970; 0 where there is none, then the order is that of the file.
        texts: (N,) what was written; may be empty.
        titles: of items, as far as they are known.
        known: the true statements of each review, where these are known because the reviews are synthetic.
        explained: every row is a test row, because the texts to score are external; there is no split.
        about: for reports: "synthetic" (bool), "dropped" (counts by reason), "licence", "page".
    """

    name: str
    domain: str
    users: TextArray
    items: TextArray
    ratings: FloatArray
    times: IntArray
    texts: TextArray
    titles: Mapping[str, str] = field(default_factory=dict)
    known: Sequence[tuple[Triplet, ...]] | None = None
    explained: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.users)

    def summary(self, split: Mapping[str, Any]) -> dict[str, Any]:
        """For the head line of a run and its report; ``split`` counts the reviews and users of the split, among others."""
        dropped = {f"left out, {why}": count for why, count in self.about.get("dropped", {}).items()}
        synthetic = bool(self.about.get("synthetic"))
        size = f"{split['reviews']:,} reviews, {split['users']:,} users"
        about = {"domain": self.domain, "synthetic": synthetic}
        return {**dropped, **split, **about, "size": f"synthetic, {size}" if synthetic else size}


def array_of_text(values: Sequence[str]) -> TextArray:
    """(N,) of Python strings."""
    found: TextArray = np.empty(len(values), dtype=object)
    found[:] = values
    return found
