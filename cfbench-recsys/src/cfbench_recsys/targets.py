"""What is to be explained, and what an explainer is given to do it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from scipy import sparse

from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray

T = TypeVar("T")
Level = Literal["item", "list"]
Format = Literal["implicit", "explicit"]
Scope = Literal["user-vector", "user-only", "indirect", "k-hop", "full"]


@dataclass(frozen=True)
class Targets:
    """B units to explain, all of one level and one K.

    Attributes:
        users: (B,) the user of each unit.
        items: (B, T) the items that should leave the top K; T = 1 at item level, T = K at list level.
        k: the length of the list.
        level: "item" or "list".
        history: (B, H) the user's interactions in ascending item index, padded with 0 where ``padding``.
        padding: (B, H) True where there is no interaction.
        scope: the edges that may be edited.
        additions: whether edges that do not exist may be added, too.
    """

    users: IntArray
    items: IntArray
    k: int
    level: Level
    history: IntArray
    padding: BoolArray
    scope: Scope = "user-vector"
    additions: bool = False

    def __len__(self) -> int:
        return len(self.users)

    def take(self, rows: IntArray | slice) -> Targets:
        """Some of the units, histories trimmed to the longest of them."""
        padding = self.padding[rows]
        width = max(1, int((~padding).sum(axis=1).max(initial=1)))
        return Targets(
            self.users[rows],
            self.items[rows],
            self.k,
            self.level,
            self.history[:, :width][rows],
            padding[:, :width],
            self.scope,
            self.additions,
        )

    @staticmethod
    def of(
        interactions: sparse.csr_matrix,
        users: IntArray,
        items: IntArray,
        k: int,
        level: Level,
        scope: Scope,
        additions: bool = False,
    ) -> Targets:
        """Targets with the users' histories looked up in ``interactions`` (users, items)."""
        users = np.asarray(users, dtype=np.int64)
        lengths = np.diff(interactions.indptr)[users].astype(np.int64)
        width = max(1, int(lengths.max(initial=1)))
        position = np.arange(width)
        padding = position >= lengths[:, None]
        flat = np.minimum(
            interactions.indptr[users].astype(np.int64)[:, None] + position, interactions.nnz - 1
        )
        history = np.where(padding, 0, interactions.indices[flat].astype(np.int64))
        wanted = np.atleast_2d(np.asarray(items, dtype=np.int64))
        return Targets(users, wanted, k, level, history, padding, scope, additions)


@dataclass(frozen=True)
class Context:
    """What an explainer may look at besides its targets.

    Attributes:
        model: the recommender under explanation (see ``recommenders/base.py``).
        interactions: (users, items) the graph that recommendations are made from; profiles are its rows.
        training: (users, items) interactions of users who are *not* explained, the other rows empty: all that a
            method may learn from.
        generator: a random stream by name: ``context.generator(user)``; name it by what it is for, never by
            position in the batch, so that numbers do not depend on how the work was split.
        state: what :meth:`Explainer.prepare` returned, if the method is pre-trained.
        kept: see :meth:`once`.
    """

    model: Any
    interactions: sparse.csr_matrix
    training: sparse.csr_matrix
    generator: Callable[..., np.random.Generator]
    state: dict[str, np.ndarray] | None = None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def cached(self, name: str, make: Callable[[], T]) -> T:
        """``make()``, computed once for all pieces of work that a process does for an explainer in a cell.

        For what depends on ``training``, the explainer's options and streams that no unit is named in, and on
        nothing else: whether it is computed here or was kept may not change a number.
        """
        if name not in self.kept:
            self.kept[name] = make()
        value: T = self.kept[name]
        return value


@dataclass(frozen=True)
class Answer:
    """Edits, and what the method knows about them: a certificate, the fidelity of its surrogate, ...

    Attributes:
        edits: B edits.
        details: by name, (B,) numbers; NaN where there is none. Kept with the explanations (``details.parquet``)
            and told by the analysis ``details``.
    """

    edits: Edits
    details: Mapping[str, FloatArray] = field(default_factory=dict)

    @staticmethod
    def of(given: Edits | Answer) -> Answer:
        """What ``counterfactuals`` returned, with or without details."""
        return given if isinstance(given, Answer) else Answer(given)


class ImplicitExplainer(Protocol):
    """Gives an importance to each interaction of the user. Declares ``format: implicit``."""

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) float64, aligned with ``targets.history``; what stands at padding is ignored. Higher: matters more."""


class ExplicitExplainer(Protocol):
    """Names the interactions to edit. Declares ``format: explicit``."""

    def counterfactuals(self, targets: Targets, context: Context) -> Edits | Answer:
        """B edits, one for each target; an edit without edges means "no answer"."""


class PretrainedExplainer(Protocol):
    """Learns something before it explains. Declares ``pretraining: yes``; a stage of its own."""

    def prepare(self, context: Context) -> dict[str, np.ndarray]:
        """Whatever it wants to keep, as named arrays; given back as ``context.state``."""
