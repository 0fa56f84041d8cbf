"""Greedy decoding of a batch: each step appends the most probable word to each row until all rows have ended.

The state of the network holds what was computed for earlier words (hidden states, or keys and values), so the cost of
a step does not depend on the length of the text. Ended rows are removed from the batch when they are half of it.

Floating-point sums depend on the batch size in their last bits. So that texts do not, words whose logits are within
``TIE`` of the maximum count as equally probable, and the most frequent of them is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cfbench_text.generators.language import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from torch import Tensor

TIE = 1e-4
NEVER_WRITTEN = (PAD, BEGIN, UNKNOWN)

Step = Callable[[Any, "Tensor"], tuple["Tensor", Any]]


def likeliest(logits: Tensor) -> Tensor:
    """(B,) the word to write, from (B, V) logits. Words are numbered by frequency, END before all of them."""
    allowed = logits.clone()
    allowed[:, list(NEVER_WRITTEN)] = float("-inf")
    near = allowed >= allowed.amax(dim=1, keepdim=True) - TIE
    return near.byte().argmax(dim=1)  # the first of several


def decode(step: Step, state: Any, rows: int, most: int, device: Any = None) -> list[list[int]]:
    """The words of each row, at most ``most``, without END.

    Args:
        step: ``step(state, words) -> (logits (B, V), state)``, with the words written last, first of all BEGIN.
        state: tensors with the B rows as their first dimension, in tuples or lists.
    """
    import torch

    written: list[list[int]] = [[] for _ in range(rows)]
    places = torch.arange(rows, device=device)
    words = torch.full((rows,), BEGIN, device=device)
    going = torch.ones(rows, dtype=torch.bool, device=device)
    for _ in range(most):
        if not bool(going.any()):
            break
        if int(going.sum()) * 2 <= len(going):
            state, words, places, going = _kept((state, words, places, going), going.nonzero()[:, 0])
        logits, state = step(state, words)
        words = likeliest(logits)
        going = going & (words != END)
        for place, word in zip(places[going].tolist(), words[going].tolist(), strict=True):
            written[place].append(word)
    return written


def _kept(state: Any, rows: Tensor) -> Any:
    """The state of these rows only."""
    if isinstance(state, Sequence):
        return tuple(_kept(part, rows) for part in state)
    return state[rows]
