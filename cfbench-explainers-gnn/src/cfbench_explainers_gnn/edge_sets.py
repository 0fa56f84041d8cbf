"""Sets of edges of many units, as edits that are scored together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cfbench_explainers_gnn.blocks import Block
from cfbench_recsys.edits import Edits


def edits_of_sets(block: Block, sets: Sequence[tuple[int, Sequence[int]]]) -> Edits:
    """(len(sets),) edits; each of ``sets`` is a unit of the block and numbers of edges within the scope of this unit."""
    possible = block.possible
    starts = np.searchsorted(possible.rows, np.arange(len(block)))
    rows = np.repeat(np.arange(len(sets)), [len(edges) for _, edges in sets])
    edges = np.array([starts[unit] + edge for unit, edges in sets for edge in edges], dtype=np.int64)
    users = block.targets.users[np.array([unit for unit, _ in sets], dtype=np.int64)]
    return Edits(users, rows, possible.edge_users[edges], possible.edge_items[edges], possible.ops[edges])
