"""A small data set with planted tastes, and with the users that explainers stumble over.

Items come in TASTES groups; a user mostly takes items of one of them. So a model that learns anything can predict
the held-out interactions, and removing interactions has an effect that a person can predict.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.lifecycle.streams import generator, seed_of
from cfbench_recsys.edits import BoolArray, IntArray
from cfbench_recsys.splits import Holdout, Split

TASTES = 3
ITEMS = 18
K = 3

ONE_INTERACTION, NEARLY_ALL, TWIN, OTHER_TWIN = 0, 1, 2, 3
"""Users with one interaction, with all items but a few, and two with the same interactions."""

ORDINARY = np.arange(2, 8)
EXPLAINED = np.arange(8)

streams = functools.partial(generator, "conformance kit")
"""Random streams by name, as a stage would give them."""


def interactions(users: int = 36) -> scipy.sparse.csr_matrix:
    """(users, ITEMS) binary: 80% of the items of one's taste, at least three, and 6% of the others."""
    draws = streams("interactions").random((users, ITEMS))
    own = _own(users)
    taken = draws < np.where(own, 0.8, 0.06)
    taken[:, ::6] |= own[:, ::6]
    taken[:, 1::6] |= own[:, 1::6]
    taken[:, 2::6] |= own[:, 2::6]
    taken[ONE_INTERACTION] = False
    taken[ONE_INTERACTION, 0] = True
    taken[NEARLY_ALL] = True
    taken[NEARLY_ALL, 1 :: ITEMS // (K + 1)] = False
    taken[OTHER_TWIN] = taken[TWIN]
    return scipy.sparse.csr_matrix(taken.astype(np.float64))


def training_part(graph: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """The same shape, without the rows of the users who are explained."""
    rest = np.ones(graph.shape[0])
    rest[EXPLAINED] = 0.0
    training = (scipy.sparse.diags(rest) @ graph).tocsr()
    training.eliminate_zeros()
    return training


def split(users: int = 90) -> Split:
    """A split to fit recommenders on: one interaction of most users is held out, half for validation."""
    graph = interactions(users).tolil()
    draw = streams("split")
    whole, own = graph.toarray() > 0, _own(users)
    held = np.arange(OTHER_TWIN + 1, users)
    targets = scipy.sparse.lil_matrix(graph.shape)
    for user in held:
        item = draw.choice(np.flatnonzero(whole[user] & own[user]))
        graph[user, item] = 0.0
        targets[user, item] = 1.0
    train, targets = graph.tocsr(), targets.tocsr()
    validation, test = held[::2], held[1::2]
    return Split(
        train=train,
        profiles=train,
        validation=Holdout(validation, train[validation], targets[validation]),
        test=Holdout(test, train[test], targets[test]),
        explainable=np.arange(users),
    )


def without_validation(train: scipy.sparse.csr_matrix) -> Split:
    """A split without held-out interactions: fitted on it, a recommender is that of the last epoch."""
    nothing = scipy.sparse.csr_matrix((0, train.shape[1]))
    no_users = Holdout(np.empty(0, dtype=np.int64), nothing, nothing)
    return Split(train, train, no_users, no_users, np.arange(train.shape[0]))


def with_row(graph: scipy.sparse.csr_matrix, user: int, items: IntArray) -> scipy.sparse.csr_matrix:
    """A copy in which a user has these items and no others."""
    changed = graph.tolil()
    changed[user, :] = 0.0
    changed[user, items] = 1.0
    result: scipy.sparse.csr_matrix = changed.tocsr()
    return result


def _own(users: int) -> BoolArray:
    """(users, ITEMS) whether an item is of the user's taste."""
    own: BoolArray = (np.arange(users) % TASTES)[:, None] == np.arange(ITEMS)[None, :] // (ITEMS // TASTES)
    return own


@contextmanager
def other_global_seeds(name: str) -> Iterator[None]:
    """Python's, NumPy's and torch's global random streams elsewhere than they were; put back at the end."""
    import torch

    python, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        random.seed(name)
        np.random.seed(seed_of(name) % 2**32)
        torch.manual_seed(seed_of(name) % 2**63)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy_state)
