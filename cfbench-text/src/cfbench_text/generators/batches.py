"""What generators learn from: rows as numbers, and the terms of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfbench_text.generators.language import PAD

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """B rows of T words at most; the k-th target follows the k-th word.

    Attributes:
        users, items: (B,) numbers, 0 for one that was not in training.
        ratings: (B,) NaN where unknown.
        words, targets: (B, T) BEGIN and the text; the text and END. PAD after that.
        mask: (B, T) where there is a target: not PAD, and UNKNOWN, which is never generated, only where it is learned.
    """

    users: Tensor
    items: Tensor
    ratings: Tensor
    words: Tensor
    targets: Tensor
    mask: Tensor

    def rows(self, chosen: Tensor) -> Batch:
        """These rows, with no more columns than they need."""
        words, targets = self.words[chosen], self.targets[chosen]
        longest = max(1, int((targets != PAD).sum(dim=1).max()))
        mask = self.mask[chosen][:, :longest]
        parts = (self.users[chosen], self.items[chosen], self.ratings[chosen])
        return Batch(*parts, words[:, :longest], targets[:, :longest], mask)

    def __len__(self) -> int:
        return len(self.users)


@dataclass(frozen=True)
class Loss:
    """The training loss; the summed cross entropy and the number of the words in it; the squared error of the ratings."""

    total: Tensor
    of_words: Tensor
    words: int
    of_ratings: Tensor | float = 0.0
