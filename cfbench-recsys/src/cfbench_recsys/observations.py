"""What metrics are computed from: how the recommender responds to an explanation.

Metrics are pure functions of observations. An observation is computed when a metric first needs it, and cached:
metrics that look at the same edited profiles share their forward passes. Throughout: B units, T items of each
target (T = 1 at item level, K at list level), S steps.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.answers import can_take_one_back
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import ADD, REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.links import link_of
from cfbench_recsys.removals import ImportanceOrder, RemovalResponses, step_counts
from cfbench_recsys.scoring import target_ranks
from cfbench_recsys.targets import Targets


class ImplicitObservations:
    """Responses to the removal of interactions in the order of their importance.

    Attributes:
        targets: the B units.
        k: the length of the list.
        importances: (B, H) aligned with ``targets.history``; values at padding are ignored.
        link: what the recommender's scores mean. Scores are observed as *linked scores*: the functions of ``links.py``
            make the values f(x)_y of them.
    """

    def __init__(
        self,
        model: ScoringModel,
        targets: Targets,
        importances: FloatArray,
        interactions: scipy.sparse.csr_matrix,
    ) -> None:
        self.targets = targets
        self.k = targets.k
        self.link = link_of(model)
        self.importances = np.asarray(importances, dtype=np.float64)
        self._order = ImportanceOrder.of(targets, self.importances)
        self._responses = RemovalResponses(model, targets, self._order, interactions)

    @property
    def padding(self) -> BoolArray:
        """(B, H) True where there is no interaction."""
        return self.targets.padding

    @property
    def lengths(self) -> IntArray:
        """(B,) number of interactions of each unit."""
        return self._order.lengths

    @functools.cached_property
    def supporters(self) -> IntArray:
        """(B,) number of interactions with positive importance."""
        counts: IntArray = np.count_nonzero((self.importances > 0) & ~self.padding, axis=1)
        return counts

    # Cumulative removals, in ``steps`` chunks

    def removed(self, steps: int) -> IntArray:
        """(B, S) number of interactions removed after each of S = ``steps`` steps; the last removes all."""
        return step_counts(self.lengths, steps)

    def ranks_without_most_important(self, steps: int) -> IntArray:
        """(B, S, T) ranks after each of S = ``steps`` cumulative removals, the most important first."""
        return self._responses.after(self.removed(steps))[0]

    def ranks_without_least_important(self, steps: int) -> IntArray:
        """(B, S, T) ranks after each of S = ``steps`` cumulative removals, the least important first."""
        return self._responses.after(self.removed(steps), first="least important")[0]

    def scores_without_most_important(self, steps: int) -> FloatArray:
        """(B, S, T) linked scores that go with :meth:`ranks_without_most_important`."""
        return self._responses.after(self.removed(steps))[1]

    def scores_with_most_important(self, steps: int) -> FloatArray:
        """(B, S, T) linked scores when only what those S removals take away is there."""
        return self._only(self.removed(steps))

    # Removals of one interaction at a time: N of them in all, those of a unit end to end

    @functools.cached_property
    def unit_of_removal(self) -> IntArray:
        """(N,) the unit of each removal of a single interaction: a unit has as many as it has interactions."""
        return np.repeat(np.arange(len(self.targets)), self.lengths)

    def ranks_without_most_important_one_by_one(self) -> IntArray:
        """(N, T) ranks after each removal of a single interaction, the most important first, until none is left."""
        return self._responses.one_at_a_time()[0]

    def ranks_without_least_important_one_by_one(self) -> IntArray:
        """(N, T) ranks after each removal of a single interaction, the least important first, until none is left."""
        return self._responses.one_at_a_time(first="least important")[0]

    # Ends of the curves

    @functools.cached_property
    def ranks_before(self) -> IntArray:
        """(B, T) ranks under the untouched profile."""
        return self._at(np.zeros_like(self.lengths))[0]

    @functools.cached_property
    def scores_before(self) -> FloatArray:
        """(B, T) linked scores under the untouched profile."""
        return self._at(np.zeros_like(self.lengths))[1]

    @functools.cached_property
    def ranks_on_empty(self) -> IntArray:
        """(B, T) ranks under the empty profile."""
        return self._at(self.lengths)[0]

    @functools.cached_property
    def scores_on_empty(self) -> FloatArray:
        """(B, T) linked scores under the empty profile."""
        return self._at(self.lengths)[1]

    # Explanations of fixed length

    def ranks_without_explanation(self, k_e: Sequence[int], supporting_only: bool) -> IntArray:
        """(B, S, T) ranks without the k_e[s] most important interactions."""
        return self._responses.after(self.explanation_lengths(k_e, supporting_only))[0]

    def scores_without_explanation(self, k_e: Sequence[int], supporting_only: bool) -> FloatArray:
        """(B, S, T) linked scores without the k_e[s] most important interactions."""
        return self._responses.after(self.explanation_lengths(k_e, supporting_only))[1]

    def scores_with_explanation(self, k_e: Sequence[int], supporting_only: bool) -> FloatArray:
        """(B, S, T) linked scores with only the k_e[s] most important interactions."""
        return self._only(self.explanation_lengths(k_e, supporting_only))

    def explanation_lengths(self, k_e: Sequence[int], supporting_only: bool) -> IntArray:
        """(B, S) min(k_e[s], the available number): all interactions, or only those of positive importance."""
        there_is = self.supporters if supporting_only else self.lengths
        return np.minimum(np.asarray(k_e, dtype=np.int64), there_is[:, None])

    def _only(self, counts: IntArray) -> FloatArray:
        return self._responses.after(self.lengths[:, None] - counts, first="least important")[1]

    def _at(self, counts: IntArray) -> tuple[IntArray, FloatArray]:
        ranks, scores = self._responses.after(counts[:, None])
        return ranks[:, 0], scores[:, 0]


class ExplicitObservations:
    """Responses to the edits that an explainer named.

    Attributes:
        targets: the B units.
        k: the length of the list.
        edits: B edits; one without edges is "no answer".
    """

    def __init__(
        self, model: ScoringModel, targets: Targets, edits: Edits, interactions: scipy.sparse.csr_matrix
    ) -> None:
        if len(edits) != len(targets):
            raise ValueError(f"{len(edits)} edits for {len(targets)} targets")
        self.targets = targets
        self.k = targets.k
        self.edits = edits
        self._model = model
        self._interactions = interactions

    @functools.cached_property
    def edges(self) -> IntArray:
        """(B,) number of edits, #Perturb."""
        return self.edits.counts()

    @functools.cached_property
    def removals(self) -> IntArray:
        """(B,) number of edges removed."""
        return self.edits.counts(REMOVE)

    @functools.cached_property
    def additions(self) -> IntArray:
        """(B,) number of edges added."""
        return self.edits.counts(ADD)

    @functools.cached_property
    def ranks_after(self) -> IntArray:
        """(B, T) ranks under the edited profile or graph."""
        of = np.arange(len(self.targets))
        return target_ranks(self._model, self.edits, self.targets, of, self._interactions)

    @functools.cached_property
    def succeeded(self) -> BoolArray:
        """(B,) whether the edit displaces the item (item level), or any item of the list (list level)."""
        return (self.ranks_after > self.k).any(axis=1) & (self.edges > 0)

    @functools.cached_property
    def reducible(self) -> BoolArray:
        """(B,) whether some single edit can be taken back and as many items are displaced still."""
        displaced = (self.ranks_after > self.k).sum(axis=1)
        return can_take_one_back(self._model, self.targets, self.edits, displaced, self._interactions)
