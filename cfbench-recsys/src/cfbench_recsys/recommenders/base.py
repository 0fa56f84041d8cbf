"""What the suite asks of a recommender. Protocols, not base classes: any object with these methods will do.

Scores are float64 logits (never after a sigmoid: its saturation makes ties), for all items, seen ones too.
Arrays come and go as NumPy; a model computes in torch on the device it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from cfbench_recsys.edits import Edits, FloatArray, IntArray


class Fittable(Protocol):
    """How the suite makes a model: ``Model(options)``, then ``fit`` or ``load_state``."""

    def fit(self, split: Any, generator: Any, report: Any, keep: Any = None) -> Mapping[str, Any] | None:
        """Learn from ``split.train``; choose the epoch on ``split.validation`` (see ``splits.py``), never on test.

        ``generator(*names)`` gives random streams, ``report(done, total)`` moves the progress bar. A model that
        declares ``checkpoints: yes`` also calls ``keep(epoch, quality, state)`` at each look at the validation
        data, ``state()`` giving what :meth:`state` would give if training ended there (``training.train``
        does all this). Returns a summary (JSON).
        """

    def state(self) -> Mapping[str, np.ndarray]:
        """Everything that was learned, as named arrays (kept as safetensors)."""

    def load_state(self, state: Mapping[str, np.ndarray], interactions: sparse.csr_matrix) -> None:
        """Take up what ``state`` gave; ``interactions`` (users, items) is the graph that is scored."""


class ProfileRecommender(Protocol):
    """Scores a user from the user's profile alone (scope user_vector)."""

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items), binary."""


class DifferentiableProfileRecommender(ProfileRecommender, Protocol):
    """A profile recommender with gradients (access gradients)."""

    def score_dense(self, profiles: Any) -> Any:
        """(B, items) float64 logits as a torch tensor for ``profiles`` (B, items), a float64 torch tensor.

        Equal to ``score_profiles`` for binary profiles, defined for all weights in [0, 1], and differentiable
        in them.
        """


class GraphRecommender(Protocol):
    """Scores a user from the whole graph (scope graph). Degrees follow the edit."""

    def score_edits(self, edits: Edits) -> FloatArray:
        """(B, items) logits of ``edits.users`` on the edited graph: exactly those of the graph rebuilt."""


class GraphRecommenderWithEmbeddings(GraphRecommender, Protocol):
    """A graph recommender whose logit is a product of embeddings (access embeddings)."""

    def user_embeddings(self) -> FloatArray:
        """(users, d) final embeddings on the graph as it is: a logit is their product with those of the items."""

    def item_embeddings(self) -> FloatArray:
        """(items, d) final embeddings."""


class LinearRecommender(ProfileRecommender, Protocol):
    """A profile recommender whose logit is ``b_y + sum_i x_i W[i, y]`` (access weights)."""

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """W[rows, columns], broadcast like NumPy indexing, e.g. rows (B, H, 1) and columns (B, 1, T)."""


class DifferentiableGraphRecommender(GraphRecommender, Protocol):
    """A graph recommender with gradients (access gradients)."""

    def score_weighted(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        """(B, items) logits as a torch tensor, differentiable in ``delta``.

        Like ``score_edits`` with ``delta`` (E,) in place of ``ops``: the weight of edge e in the graph of edit
        rows[e] is (1 if it exists else 0) + delta[e]. All but ``delta`` are int64 torch tensors.
        """
