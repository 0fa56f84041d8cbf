"""Scores of edited graphs that were computed before.

Explainers mostly rank the few interactions of a user, and searches come upon the same edits of a user for each recommended
item, so the same edits are scored again and again: of 90,000 that metrics request in the default study 6,400 differ. A model
whose scores of an edit do not depend, bit by bit, on the other edits of its batch (it says so with ``scores_alone = True``)
is queried for each of them once: by an explainer once in a task, so that its time does not depend on what ran before, and
by metrics once in a process. The numbers are those of the model. Queries are counted as if nothing were remembered.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from cfbench_recsys.contracts import ScoringModel, scores_graphs
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.graph_edits import keys_of

MOST_BYTES = 64_000_000
"""Scores that are stored for a model; when there is no room for more, all are released."""

Key = tuple[int, bytes]

_scores: weakref.WeakKeyDictionary[Any, dict[Key, FloatArray]] = weakref.WeakKeyDictionary()


def remembering(model: ScoringModel) -> ScoringModel:
    """The model, which looks scores up where it can; the model itself where scores depend on the batch."""
    return (
        RememberedScores(model, {})
        if scores_graphs(model) and getattr(model, "scores_alone", False)
        else model
    )


def remembering_for_all(model: ScoringModel) -> ScoringModel:
    """What :func:`remembering` returned, with the scores that metrics of any task in this process have requested."""
    if not isinstance(model, RememberedScores):
        return model
    return RememberedScores(model.model, _scores.setdefault(model.model, {}))


class RememberedScores:
    """A model that is queried once for each edit, and is otherwise the model."""

    def __init__(self, model: Any, known: dict[Key, FloatArray]) -> None:
        """``known``: scores that were computed before; those that are computed are added."""
        self.model = model
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def score_edits(self, edits: Edits) -> FloatArray:
        """(B, items) logits, each row as the model gives it. The edges of an edit count in their order."""
        keys = keys_of(edits, np.arange(len(edits)))
        new = {key: place for place, key in enumerate(keys) if key not in self._known}
        found: dict[Key, FloatArray] = {}
        if new:
            scores: FloatArray = self.model.score_edits(edits.choose(np.array(list(new.values()))))
            found = {key: row.copy() for key, row in zip(new, scores, strict=True)}
        rows = np.stack([found[key] if key in found else self._known[key] for key in keys])
        self._store(found)
        return rows

    def _store(self, found: dict[Key, FloatArray]) -> None:
        if found:
            room = MOST_BYTES // next(iter(found.values())).nbytes
            if len(self._known) + len(found) > room:
                self._known.clear()
            if len(found) <= room:
                self._known.update(found)
