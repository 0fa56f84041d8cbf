"""What is to be explained, and what an explainer is given to do it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.scope_labels import DEFAULT_HOPS, K_HOP

if TYPE_CHECKING:
    from cfbench_recsys.contracts import (
        DifferentiableGraphRecommender,
        DifferentiableProfileRecommender,
        EmbeddingRecommender,
        GraphEmbeddingRecommender,
        GraphRecommender,
        LinearRecommender,
        ProfileEmbeddingRecommender,
        ScoringModel,
        Streams,
    )

T = TypeVar("T")
Level = Literal["item", "list"]
Format = Literal["implicit", "explicit"]
Scope = Literal["user-vector", "user-only", "indirect", "k-hop", "full"]
NO_LIMIT = np.iinfo(np.int64).max
"""The budget of an answer that may have any number of edits."""


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
        hops: the levels of the scope "k-hop".
        max_edits: how many edits an explicit answer may have; None: as many as it likes.
        locked: (L,) items whose edges with the units' own users are not in scope.
        fixed: (F,) interactions of the units' users that are left out of ``history``, so that they cannot be edited.
    """

    users: IntArray
    items: IntArray
    k: int
    level: Level
    history: IntArray
    padding: BoolArray
    scope: Scope = "user-vector"
    additions: bool = False
    hops: int = DEFAULT_HOPS
    max_edits: int | None = None
    locked: tuple[int, ...] = ()
    fixed: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.users)

    @property
    def budget(self) -> int:
        """``max_edits`` as a number; without a limit a very large one."""
        return NO_LIMIT if self.max_edits is None else self.max_edits

    @property
    def scope_label(self) -> str:
        """ "k-hop-3", "full", ..."""
        return f"{self.scope}-{self.hops}" if self.scope == K_HOP else self.scope

    @property
    def seen(self) -> tuple[IntArray, BoolArray]:
        """(B, H + F) the items that are no candidates, ``history`` and ``fixed``, and True where there is no item."""
        if not self.fixed:
            return self.history, self.padding
        fixed = np.broadcast_to(np.array(self.fixed, dtype=np.int64), (len(self), len(self.fixed)))
        present = np.zeros(fixed.shape, dtype=np.bool_)
        return np.hstack([self.history, fixed]), np.hstack([self.padding, present])

    def within_budget(self, edits: Edits) -> Edits:
        """B edits, of which those with more edges than ``max_edits`` become empty: no answer."""
        return edits.where((edits.counts() <= self.budget)[edits.rows])

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
            self.hops,
            self.max_edits,
            self.locked,
            self.fixed,
        )

    @staticmethod
    def of(
        interactions: scipy.sparse.csr_matrix,
        users: IntArray,
        items: IntArray,
        k: int,
        level: Level,
        scope: Scope,
        additions: bool = False,
        hops: int = DEFAULT_HOPS,
        max_edits: int | None = None,
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
        return Targets(users, wanted, k, level, history, padding, scope, additions, hops, max_edits)


@dataclass(frozen=True)
class Context:
    """What an explainer may use in addition to its targets.

    Attributes:
        model: the recommender under explanation (see ``contracts.py``). The properties below return it as a
            recommender with one of the optional capabilities, which the explainer's spec must declare under ``needs``.
        interactions: (users, items) the graph from which recommendations are made; profiles are its rows.
        training: (users, items) interactions of the users who are *not* explained, the other rows empty: the only data
            that a method may learn from.
        generator: a random stream by name, ``context.generator(user)``. Name it by its purpose, never by a position in
            the batch, so that numbers do not depend on how the work was split.
        state: what ``prepare`` returned, if the explainer is pre-trained.
        cache: see :meth:`cached`.
        access: what the recommender declares under ``access``; None: what its methods imply.
    """

    model: ScoringModel
    interactions: scipy.sparse.csr_matrix
    training: scipy.sparse.csr_matrix
    generator: Streams
    state: dict[str, np.ndarray] | None = None
    cache: dict[str, Any] = field(default_factory=dict, repr=False)
    access: frozenset[str] | None = None

    def cached(self, name: str, make: Callable[[], T]) -> T:
        """``make()``, computed once for all tasks of an explainer and a cell in one process.

        Only for values that depend on ``training``, on the explainer's options and on streams whose names hold no unit,
        and on nothing else: whether a value is computed or taken from the cache must not change a number.
        """
        if name not in self.cache:
            self.cache[name] = make()
        value: T = self.cache[name]
        return value

    @property
    def linear(self) -> bool:
        """Whether the model declares that its scores are linear in the profile (``access: weights``).

        An attribute of that name says nothing: a recommender may keep its parameters there.
        """
        if self.access is not None:
            return "weights" in self.access
        return callable(getattr(self.model, "weights", None))

    @property
    def linear_model(self) -> LinearRecommender:
        """The model of an explainer that needs ``access: weights``."""
        return cast("LinearRecommender", self.model)

    @property
    def embedding_model(self) -> EmbeddingRecommender:
        """The model of an explainer that needs ``access: embeddings``."""
        return cast("EmbeddingRecommender", self.model)

    @property
    def profile_embedding_model(self) -> ProfileEmbeddingRecommender:
        """A profile recommender with ``access: embeddings``."""
        return cast("ProfileEmbeddingRecommender", self.model)

    @property
    def graph_embedding_model(self) -> GraphEmbeddingRecommender:
        """A graph recommender with ``access: embeddings``."""
        return cast("GraphEmbeddingRecommender", self.model)

    @property
    def graph_model(self) -> GraphRecommender:
        """The model of an explainer whose scopes are those of a graph."""
        return cast("GraphRecommender", self.model)

    @property
    def profile_gradients(self) -> DifferentiableProfileRecommender:
        """A profile recommender with ``access: gradients``."""
        return cast("DifferentiableProfileRecommender", self.model)

    @property
    def graph_gradients(self) -> DifferentiableGraphRecommender:
        """A graph recommender with ``access: gradients``."""
        return cast("DifferentiableGraphRecommender", self.model)


@dataclass(frozen=True)
class Answer:
    """Edits, and what the method knows about them: a certificate, the fidelity of its surrogate, ...

    Attributes:
        edits: B edits.
        details: by name, (B,) numbers; NaN where there is none. Stored with the explanations (``details.parquet``)
            and reported by the analysis ``details``.
    """

    edits: Edits
    details: Mapping[str, FloatArray] = field(default_factory=dict)

    @staticmethod
    def of(given: Edits | Answer) -> Answer:
        """What ``counterfactuals`` returned, with or without details."""
        return given if isinstance(given, Answer) else Answer(given)
