"""Which edits of a graph change anything, and which of a batch are the same."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.edits import ADD, BoolArray, Edits, IntArray

MANY_EDGES = 20_000
"""A unit that edits at least so many edges gets a matrix of its own (``reweighted_graph.py``). So explainers that search
among more edges gain nothing from several units at once."""


def changes(edits: Edits, interactions: scipy.sparse.csr_matrix) -> BoolArray:
    """(E,) the edges whose weight really changes; of an edge named twice in one edit, the last one counts."""
    users, items = interactions.shape
    edge = edits.edge_users * items + edits.edge_items
    exists = np.asarray(interactions[edits.edge_users, edits.edge_items] != 0).ravel()
    different: BoolArray = exists != (edits.ops == ADD)
    named = edits.rows * (users * items) + edge
    if (np.diff(named) > 0).all():  # mostly so, and much faster to see than to sort
        return different
    _, last = np.unique(named[::-1], return_index=True)
    unique = np.zeros(len(different), dtype=np.bool_)
    unique[len(different) - 1 - last] = True
    return different & unique


def keys_of(edits: Edits, which: IntArray) -> list[tuple[int, bytes]]:
    """For each of the edits ``which`` (N,) its user and its edges in their order; equal edits have equal keys."""
    ends = np.searchsorted(edits.rows, which, side="right").tolist()
    starts = np.searchsorted(edits.rows, which).tolist()
    named = np.stack([edits.edge_users, edits.edge_items, edits.ops], axis=1).astype(np.int64)
    return [
        (user, named[start:end].tobytes())
        for user, start, end in zip(edits.users[which].tolist(), starts, ends, strict=True)
    ]


def distinct(edits: Edits, which: IntArray) -> tuple[IntArray, IntArray]:
    """Those of the edits ``which`` (N,) that differ from all before, and for each of the N its place among them (N,).

    Blocks of one size are filled up with the last edit again and again (``scoring.py``); it need not be scored again.
    """
    first: dict[tuple[int, bytes], int] = {}
    places = np.array([first.setdefault(key, len(first)) for key in keys_of(edits, which)])
    return which[np.unique(places, return_index=True)[1]], places
