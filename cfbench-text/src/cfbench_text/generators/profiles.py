"""Profiles: what users have said of other items, and others of an item, as a few sentences for a language model.

Only training rows are read. What the user said of the very item that is explained is in neither profile of
``Statements``: while learning it would be the text to learn, and where it is explained nobody has it. A profile
of ``WrittenProfiles`` is one of the user or item, whatever is explained with it, as the paper has it, so that the model
writes one for each of them and not for each pair.
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
    from cfbench_text.models.chat import Chat, Completion

Sentences = tuple[str, ...]
"""The most telling first: a profile that is too long loses its last."""

SAID = {"positive": "Liked:", "negative": "Disliked:", "neutral": "Indifferent to:"}
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
    """The most frequent statements, at most so many of each sentiment; of equally frequent ones the first."""

    def __init__(self, rows: Rows, most: int) -> None:
        self._most = most
        self._of_user: dict[str, list[tuple[str, Triplet]]] = {}
        self._of_item: dict[str, list[tuple[str, Triplet]]] = {}
        for user, item, of_row in zip(rows.users, rows.items, rows.triplets, strict=True):
            self._of_user.setdefault(user, []).extend((item, triplet) for triplet in of_row)
            self._of_item.setdefault(item, []).extend((user, triplet) for triplet in of_row)

    def of(self, user: str, item: str) -> tuple[Sentences, Sentences]:
        return self._told(self._of_user, user, item), self._told(self._of_item, item, user)

    def _told(self, said: Mapping[str, list[tuple[str, Triplet]]], of: str, but: str) -> Sentences:
        counted = Counter((t.sentiment, t.statement) for other, t in said.get(of, ()) if other != but)
        left, found = dict.fromkeys(SENTIMENTS, self._most), []
        for (sentiment, statement), _ in counted.most_common():
            if left[sentiment]:
                left[sentiment] -= 1
                found.append(f"{SAID[sentiment]} {statement}.")
        return tuple(found)


class WrittenProfiles:
    """Profiles that a language model wrote, by name."""

    def __init__(self, users: Mapping[str, Sequence[str]], items: Mapping[str, Sequence[str]]) -> None:
        self.users = {name: tuple(told) for name, told in users.items()}
        self.items = {name: tuple(told) for name, told in items.items()}

    def of(self, user: str, item: str) -> tuple[Sentences, Sentences]:
        return self.users.get(user, ()), self.items.get(item, ())


def write_profiles(rows: Rows, chat: Chat, words: int, tokens: int) -> tuple[WrittenProfiles, dict[str, int]]:
    """Asks for a profile of each user and item, from their latest reviews.

    Args:
        words: of the reviews that are shown, at most; sentences are shown whole or not at all.
        tokens: the longest profile.

    Returns:
        The profiles, and how many did not come, were cut or show only some of the reviews.
    """
    from cfbench_text.models.chat import Prompt

    found: dict[str, dict[str, Sentences]] = {}
    counts: Counter[str] = Counter()
    for kind, names in (("user", rows.users), ("item", rows.items)):
        shown = _shown(rows, names.tolist(), words, counts)
        prompts = [Prompt(QUESTIONS[kind], f"{text}\n\nThe answer:") for text in shown.values()]
        said = chat.write(prompts, tokens)
        found[kind] = {name: _read(one, counts) for name, one in zip(shown, said, strict=True)}
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
            told = sentences(str(rows.reviews[place]))
            lengths = np.cumsum([len(sentence.split()) for sentence in told])
            fitting = int((lengths <= left).sum())
            if fitting:
                left -= int(lengths[fitting - 1])
                paragraphs.append(" ".join(told[:fitting]))
            if fitting < len(told):
                counts["not shown all reviews"] += 1
                break
        if paragraphs:
            found[name] = "\n\n".join(paragraphs)
    return found


def _read(said: Completion, counts: Counter[str]) -> Sentences:
    """The sentences of an answer; of one that was stopped by its length those that have an end."""
    told = sentences(said.text)
    counts["no answer"] += not told
    counts["cut"] += said.cut
    return tuple(told[:-1] if said.cut and len(told) > 1 else told)
