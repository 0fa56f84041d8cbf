"""What is known of each user when a model is fitted, chosen, tested and explained."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import sparse

from cfbench_recsys.edits import IntArray


@dataclass(frozen=True)
class Holdout:
    """Interactions kept back: what a model sees of n users, and what it should find.

    Attributes:
        users: (n,) user indices.
        inputs: (n, items) their profiles as the model sees them.
        targets: (n, items) what was kept back; at least one in each row.
    """

    users: IntArray
    inputs: sparse.csr_matrix
    targets: sparse.csr_matrix


@dataclass(frozen=True)
class Split:
    """A data set, divided.

    Attributes:
        train: (users, items) interactions that models learn from; the rows of other users are empty.
        profiles: (users, items) what recommendations (and explanations) are made from.
        validation, test: what models are chosen on, and what their quality is reported on.
        explainable: users who may be explained (with at least one interaction in ``profiles``).
    """

    train: sparse.csr_matrix
    profiles: sparse.csr_matrix
    validation: Holdout
    test: Holdout
    explainable: IntArray
