"""Profiles: what a user wrote about other items, and other users about an item, as sentences for a language model.

Only training rows are read. The statements of the user about the explained item are excluded from both profiles of
``StatementProfiles``: during training they are the target, and at test time they are unknown. A profile of
``WrittenProfiles`` describes a user or an item independently of the pair, as in the paper, so that the model writes one
per user and item instead of one per pair.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cfbench_core.errors import ResultWarning
from cfbench_text.corpus import Rows
from cfbench_text.sentence_segmentation import sentences
from cfbench_text.triplets import SENTIMENTS, Triplet

if TYPE_CHECKING:
    from cfbench_text.models.chat import Chat
    from cfbench_text.models.chat_types import Completion

Sentences = tuple[str, ...]
"""The most informative sentence first: a profile that is too long loses its last ones."""

PREFIXES = {"positive": "Liked:", "negative": "Disliked:", "neutral": "Indifferent to:"}
QUESTIONS = {
    "user": "These are reviews that one person wrote. Say in three sentences what this person likes and dislikes "
    "in products, without repeating the reviews.",
    "item": "These are reviews of one product. Say in three sentences what people like and dislike about it, "
    "without repeating the reviews.",
}


class Profiles(Protocol):
    def of(self, user: str, item: str) -> tuple[Sentences, Sentences]:
        """The user's and the item's; empty for one that was not in training."""


class NoProfiles:
    """No profiles."""

    def of(self, user: str, item: str) -> tuple[Sentences, Sentences]:
        return (), ()


class StatementProfiles:
    """The most frequent statements, up to a number for each sentiment; ties are broken by first occurrence."""

    def __init__(self, rows: Rows, most: int) -> None:
        self._most = most
        self._of_user: dict[str, list[tuple[str, Triplet]]] = {}
        self._of_item: dict[str, list[tuple[str, Triplet]]] = {}
        for user, item, of_row in zip(rows.users, rows.items, rows.triplets, strict=True):
            self._of_user.setdefault(user, []).extend((item, triplet) for triplet in of_row)
            self._of_item.setdefault(item, []).extend((user, triplet) for triplet in of_row)

    def of(self, user: str, item: str) -> tuple[Sentences, Sentences]:
        return self._sentences_of(self._of_user, user, item), self._sentences_of(self._of_item, item, user)

    def _sentences_of(
        self, statements: Mapping[str, list[tuple[str, Triplet]]], of: str, but: str
    ) -> Sentences:
        counted = Counter((t.sentiment, t.statement) for other, t in statements.get(of, ()) if other != but)
        left, found = dict.fromkeys(SENTIMENTS, self._most), []
        for (sentiment, statement), _ in counted.most_common():
            if left[sentiment]:
                left[sentiment] -= 1
                found.append(f"{PREFIXES[sentiment]} {statement}.")
        return tuple(found)


class WrittenProfiles:
    """Profiles that a language model wrote, by name."""

    def __init__(self, users: Mapping[str, Sequence[str]], items: Mapping[str, Sequence[str]]) -> None:
        self.users = {name: tuple(parts) for name, parts in users.items()}
        self.items = {name: tuple(parts) for name, parts in items.items()}

    def of(self, user: str, item: str) -> tuple[Sentences, Sentences]:
        return self.users.get(user, ()), self.items.get(item, ())


def write_profiles(rows: Rows, chat: Chat, words: int, tokens: int) -> tuple[WrittenProfiles, dict[str, int]]:
    """Lets the model write a profile of each user and item from their latest reviews.

    Args:
        words: of the reviews that are shown, at most; sentences are shown whole or not at all.
        tokens: the longest profile.

    Returns:
        The profiles, and how many are missing, truncated, or based on only some of the reviews.
    """
    from cfbench_text.models.chat_types import Prompt

    found: dict[str, dict[str, Sentences]] = {}
    counts: Counter[str] = Counter()
    for kind, names in (("user", rows.users), ("item", rows.items)):
        shown = _shown(rows, names.tolist(), words, counts)
        prompts = [Prompt(QUESTIONS[kind], f"{text}\n\nThe answer:") for text in shown.values()]
        completions = chat.write(prompts, tokens)
        found[kind] = {name: _read(one, counts) for name, one in zip(shown, completions, strict=True)}
    if counts["no answer"]:
        warnings.warn(
            f"{counts['no answer']} of {len(found['user']) + len(found['item'])} profiles were not written "
            "(the reviews do not fit into what the model reads: fewer review_words)",
            ResultWarning,
            stacklevel=2,
        )
    return WrittenProfiles(found["user"], found["item"]), dict(counts)


def _shown(rows: Rows, names: Sequence[str], words: int, counts: Counter[str]) -> dict[str, str]:
    """By name the latest reviews, one a paragraph; sentences while they fit."""
    by_name: dict[str, list[int]] = {}
    for place in np.argsort(rows.times, kind="stable")[::-1].tolist():
        by_name.setdefault(names[place], []).append(place)
    found = {}
    for name in dict.fromkeys(names):
        paragraphs, left = [], words
        for place in by_name[name]:
            parts = sentences(str(rows.reviews[place]))
            lengths = np.cumsum([len(sentence.split()) for sentence in parts])
            fitting = int((lengths <= left).sum())
            if fitting:
                left -= int(lengths[fitting - 1])
                paragraphs.append(" ".join(parts[:fitting]))
            if fitting < len(parts):
                counts["not shown all reviews"] += 1
                break
        if paragraphs:
            found[name] = "\n\n".join(paragraphs)
    return found


def _read(completion: Completion, counts: Counter[str]) -> Sentences:
    """The sentences of a response; of a truncated one the complete sentences."""
    parts = sentences(completion.text)
    counts["no answer"] += not parts
    counts["cut"] += completion.cut
    return tuple(parts[:-1] if completion.cut and len(parts) > 1 else parts)
