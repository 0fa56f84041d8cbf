"""The contracts of the recommender suite: one protocol for each kind of component.

They are protocols, not base classes: any object with these methods can be used. The annotations of the suite, of its
explainers and of its metrics refer to them, and the conformance kit (``cfbench_recsys.testing``) checks them.

Scores are float64 (never after a sigmoid or softmax, whose saturation causes ties) of all items, including those of
the user's history. What they mean is declared by the *link* of the recommender, see :class:`LinkedRecommender`. Arrays
are passed as NumPy arrays; a model may compute in torch on any device.

This module imports neither NumPy nor torch at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeGuard

if TYPE_CHECKING:
    import numpy as np
    from scipy import sparse
    from torch import Tensor

    from cfbench_core.data_files import DataAccess, Source
    from cfbench_core.plan import Column
    from cfbench_recsys.edits import Edits, FloatArray, IntArray
    from cfbench_recsys.interactions import Interactions
    from cfbench_recsys.splits import Split

Point = Mapping[str, str | int]
"""A point of the protocol: ``{"k": 5, "level": "item", "format": "implicit", "scope": ..., "edit": ...}``."""

State = dict[str, "np.ndarray"]
"""What a component has learned, as named arrays. It is stored as safetensors."""


Link = Literal["sigmoid", "softmax", "identity"]
"""How the value f(x)_y of an item follows from the scores s(x): see :class:`LinkedRecommender`."""


class Dataset(Protocol):
    """A data set. The class is constructed with its configuration and must not read any file until ``find``."""

    def find(self, access: DataAccess) -> Source:
        """Locates the files.

        Raises:
            UserError: if a file is missing.
        """

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        """Reads the interactions from the files that :meth:`find` located."""


class Streams(Protocol):
    """Random streams by name. The same names always give the same stream."""

    def __call__(self, *names: str | int) -> np.random.Generator:
        """A new generator for ``names``."""


class Progress(Protocol):
    """Reports the progress of a training."""

    def __call__(self, done: int, total: int, /) -> None:
        """``done`` of ``total`` steps are finished."""


class Recommender(Protocol):
    """What every recommender implements: constructed with its configuration, then ``fit`` or ``load_state``.

    A recommender also implements :class:`ProfileRecommender` or :class:`GraphRecommender`, and as many of the other
    capabilities as its spec declares under ``access``.
    """

    def fit(self, split: Split, generator: Streams, report: Progress, /) -> Mapping[str, Any] | None:
        """Trains on ``split.train`` and selects the epoch on ``split.validation``, never on the test part.

        A recommender that declares ``checkpoints: yes`` takes a fourth argument ``checkpoint``, see
        :class:`CheckpointedRecommender`.

        Returns:
            A summary of the training that can be written as JSON, or None.
        """

    def state(self) -> State:
        """Everything that was learned, as named arrays."""

    def load_state(self, state: Mapping[str, np.ndarray], interactions: sparse.csr_matrix, /) -> None:
        """Restores ``state``, to score users of ``interactions`` (users, items).

        Raises:
            UserError: if an array is missing or has another shape.
        """


class LinkedRecommender(Recommender, Protocol):
    """A recommender that declares what its scores s(x) mean: the value f(x)_y that it gives to item y is

    - ``sigmoid``: f(x)_y = 1 / (1 + exp(-s(x)_y)), for a model of the probability of each interaction (trained with
      the binary cross-entropy);
    - ``softmax``: f(x)_y = exp(s(x)_y) / sum_j exp(s(x)_j) over all items j, those of the profile included, for a
      model of one choice among the items. Such scores are defined only up to a constant for each profile: they are
      comparable within a profile, not between an original and an edited profile;
    - ``identity``: f(x)_y = s(x)_y, for scores that are no logits. It is the default of a recommender without this
      attribute.

    The link decides what INS, DEL, LXR-INS-P and LXR-DEL-P measure, and what explainers with an option ``target``
    explain by default. It never changes a ranking.
    """

    link: Link
    """An attribute of the class, e.g. ``link: Link = "sigmoid"``."""


class CheckpointCallback(Protocol):
    """Receives each evaluation on the validation data during a training."""

    def __call__(self, epoch: int, quality: Mapping[str, float], state: Any, /) -> None:
        """``state()`` returns what :meth:`Recommender.state` would return if training ended at ``epoch``."""


class CheckpointedRecommender(Recommender, Protocol):
    """A recommender that is trained in epochs (``checkpoints: yes``)."""

    def fit(
        self,
        split: Split,
        generator: Streams,
        report: Progress,
        checkpoint: CheckpointCallback | None = None,
        /,
    ) -> Mapping[str, Any] | None:
        """As :meth:`Recommender.fit`; calls ``checkpoint`` at each evaluation on the validation data."""


class ProfileRecommender(Protocol):
    """Scores a user from the user's profile alone (scope ``user-vector``)."""

    def score_profiles(self, profiles: sparse.csr_matrix, /) -> FloatArray:
        """(B, items) scores for B profiles (B, items), binary."""


class GraphRecommender(Protocol):
    """Scores a user from the whole graph (scopes ``user-only`` to ``full``). Degrees follow the edit."""

    def score_edits(self, edits: Edits, /) -> FloatArray:
        """(B, items) scores of ``edits.users`` on the edited graph, equal to those of a graph that is rebuilt."""


ScoringModel = ProfileRecommender | GraphRecommender
"""A fitted model as the suite queries it."""


class DifferentiableProfileRecommender(ProfileRecommender, Protocol):
    """A profile recommender with ``access: gradients``."""

    def score_dense(self, profiles: Tensor, /) -> Tensor:
        """(B, items) float64 scores for ``profiles`` (B, items), a float64 tensor.

        Equal to ``score_profiles`` for binary profiles, defined for all weights in [0, 1], and differentiable in them.
        """


class LinearRecommender(ProfileRecommender, Protocol):
    """A profile recommender with scores ``b_y + sum_i x_i W[i, y]`` (``access: weights``)."""

    def weights(self, rows: IntArray, columns: IntArray, /) -> FloatArray:
        """W[rows, columns], broadcast like NumPy indexing, e.g. rows (B, H, 1) and columns (B, 1, T)."""


class EmbeddingRecommender(Protocol):
    """A recommender whose scores are products of embeddings (``access: embeddings``)."""

    def item_embeddings(self) -> FloatArray:
        """(items, d) final embeddings; a score is their product with the vector of the user."""


class GraphEmbeddingRecommender(EmbeddingRecommender, GraphRecommender, Protocol):
    """A graph recommender with ``access: embeddings``."""

    def user_embeddings(self) -> FloatArray:
        """(users, d) final embeddings on the unedited graph."""


class ProfileEmbeddingRecommender(EmbeddingRecommender, ProfileRecommender, Protocol):
    """A profile recommender with ``access: embeddings``."""

    def profile_embeddings(self, profiles: sparse.csr_matrix, /) -> FloatArray:
        """(B, d) vectors of the users with B profiles (B, items)."""


class DifferentiableGraphRecommender(GraphRecommender, Protocol):
    """A graph recommender with ``access: gradients``."""

    def score_weighted(
        self, users: Tensor, rows: Tensor, edge_users: Tensor, edge_items: Tensor, delta: Tensor, /
    ) -> Tensor:
        """(B, items) scores, differentiable in ``delta``.

        Like ``score_edits`` with ``delta`` (E,) in place of ``ops``: the weight of edge e in the graph of edit
        rows[e] is (1 if it exists else 0) + delta[e]. All tensors but ``delta`` are int64.
        """


class AttentiveRecommender(GraphRecommender, Protocol):
    """A graph recommender with ``access: attention``: its scores depend on how much attention each edge receives."""

    def with_uniform_attention(self) -> GraphRecommender:
        """The same fitted model, with uniform weights in place of its attention: an ablation.

        The conformance kit requires that lists change.
        """


def scores_graphs(model: ScoringModel) -> TypeGuard[GraphRecommender]:
    """Whether a model scores edited graphs; otherwise it scores profiles."""
    return callable(getattr(model, "score_edits", None))


class Metric(Protocol):
    """A metric. Constructed with its configuration, or None if it has no options. Must not import torch."""

    def columns(self, point: Point, /) -> Sequence[Column]:
        """The columns that :meth:`compute` fills at a point of the protocol."""

    def compute(self, observed: Any, /) -> Mapping[str, FloatArray]:
        """Column name -> (B,) values, NaN where the metric is undefined for a unit.

        ``observed``: :class:`~cfbench_recsys.observations.ImplicitObservations` or ``ExplicitObservations``,
        depending on the format that the metric's spec declares.
        """
