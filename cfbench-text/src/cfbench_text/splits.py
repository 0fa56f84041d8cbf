"""Splits reviews into training, validation and test rows by time, and reports what was excluded.

``per-user`` (Statement factuality, section III-C): users with at least five reviews. The n reviews of each user are
ordered by time and, within one second, by the file; the first floor(0.8 n) are training rows, and the rest is shared by
validation and test, with at least one test row per user. ``global``: the first 80% of all reviews, in the same order,
are training rows, the next 10% validation rows; reviews of one second may be on both sides of a boundary. Validation
and test rows whose item (with ``global`` also whose user) has no training row are excluded, because models of
identifiers know nothing about them.

A data set whose rows are all explained (``Reviews.explained``) is not split.

Of several reviews with the same user, item and time the first one is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cfbench_core.errors import ResultWarning
from cfbench_text.reviews import IntArray, Reviews

PARTS = ("train", "validation", "test")
OUT = -1


@dataclass(frozen=True)
class Split:
    """(N,) the part of each review as a place in ``PARTS``, -1 if it is excluded; and counts of excluded reviews."""

    parts: IntArray
    report: Mapping[str, int] = field(default_factory=dict)


def divide(
    reviews: Reviews,
    kind: Literal["per-user", "global"],
    train: float,
    validation: float,
    min_reviews_per_user: int,
) -> Split:
    """The split of ``reviews``. Users with fewer reviews than ``min_reviews_per_user`` are excluded."""
    n = len(reviews)
    report = {"reviews": n}
    included = _first_of_each(reviews)
    report["excluded, duplicates"] = duplicates = int(n - included.sum())
    if duplicates:
        message = (
            f"{duplicates:,} of {n:,} reviews are left out: an earlier row has their user, item and time"
        )
        warnings.warn(message, ResultWarning, stacklevel=2)
    _, users = np.unique(reviews.users.astype(str), return_inverse=True)
    counts = np.bincount(users[included], minlength=int(users.max(initial=-1)) + 1)
    if reviews.explained:
        return Split(np.where(included, 2, OUT), report | _sizes(reviews, np.where(included, 2, OUT)))
    few = included & (counts[users] < min_reviews_per_user)
    report[f"excluded, users with fewer than {min_reviews_per_user}"] = int(few.sum())
    included &= ~few
    order = np.lexsort((np.arange(n), reviews.times))
    order = order[included[order]]
    parts = np.full(n, OUT, dtype=np.int64)
    if kind == "per-user":
        _per_user(parts, order, users, train, validation)
    else:
        first, second = (int(share * len(order) + 1e-9) for share in (train, train + validation))
        parts[order[:first]], parts[order[first:second]], parts[order[second:]] = 0, 1, 2
    unseen = np.zeros(n, dtype=bool)
    known = (reviews.items, reviews.users) if kind == "global" else (reviews.items,)
    for names in known:
        unseen |= (parts > 0) & ~np.isin(names.astype(str), names[parts == 0].astype(str))
    for place, name in ((1, "validation"), (2, "test")):
        report[f"excluded from {name}, not in training"] = int((unseen & (parts == place)).sum())
    parts[unseen] = OUT
    return Split(parts, report | _sizes(reviews, parts))


def _sizes(reviews: Reviews, parts: IntArray) -> dict[str, int]:
    """How many rows each part has, and of how many users and items."""
    included = parts >= 0
    return {
        **{name: int((parts == place).sum()) for place, name in enumerate(PARTS)},
        "users": len(set(reviews.users[included])),
        "items": len(set(reviews.items[included])),
    }


def _first_of_each(reviews: Reviews) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether a review is the first of its user, item and time."""
    first: dict[tuple[str, str, int], int] = {}
    for row, name in enumerate(zip(reviews.users, reviews.items, reviews.times.tolist(), strict=True)):
        first.setdefault(name, row)
    included = np.zeros(len(reviews), dtype=bool)
    included[list(first.values())] = True
    return included


def _per_user(parts: IntArray, order: IntArray, users: IntArray, train: float, validation: float) -> None:
    """Fills in ``parts``: the rows of each user as they come in ``order``."""
    order = order[np.argsort(users[order], kind="stable")]
    share = validation / (1 - train)
    for rows in np.split(order, np.flatnonzero(np.diff(users[order])) + 1) if len(order) else []:
        first = min(int(train * len(rows) + 1e-9), len(rows) - 1)
        left = len(rows) - first
        second = first + min(int(share * left + 1e-9), left - 1)
        parts[rows[:first]], parts[rows[first:second]], parts[rows[second:]] = 0, 1, 2
