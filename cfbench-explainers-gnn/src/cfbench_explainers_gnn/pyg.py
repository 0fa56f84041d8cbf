"""To and from PyTorch Geometric: a unit's edits or importances as a ``torch_geometric.explain.Explanation``, and back.

    explanation = to_explanation(targets, edits, interactions, unit=0)
    explanation.get_explanation_subgraph()              # the edges that the edits name
    edits = from_explanation(explanation, threshold=0.5)

The graph of an explanation is homogeneous and undirected: each interaction stands in both directions, as PyTorch
Geometric represents undirected graphs. It holds the edges of the scope k-hop, those met by breadth-first search up to
``hops`` levels from the user and the explained items, and what else the edits name. ``node_id`` says which node is
which: user u is u, item i is |U| + i. ``edge_mask`` holds, for both directions of an edge, 1 for an edge that is
edited and 0 for one that is not, or the importance of an interaction of the user's. ``edge_added`` marks the edges that
edits add; the others exist.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_recsys.edits import ADD, REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Targets

if TYPE_CHECKING:
    from torch_geometric.explain import Explanation  # type: ignore[import-untyped]


def to_explanation(
    targets: Targets,
    answer: Edits | FloatArray,
    interactions: scipy.sparse.csr_matrix,
    unit: int = 0,
    hops: int = 2,
) -> Explanation:
    """The answer about one unit as an explanation of PyTorch Geometric.

    Args:
        targets: B units.
        answer: B edits, or importances (B, H) aligned with ``targets.history``.
        interactions: (users, items) the graph that was explained.
        unit: which of the B.
        hops: levels of the scope k-hop.

    Returns:
        x (none), edge_index (2, 2E), edge_mask (2E,) float32, edge_added (2E,) bool; node_id (N,), user: the
        place of the user among the nodes, target (T,): those of the explained items; num_users, num_items.
    """
    import torch
    from torch_geometric.explain import Explanation

    one = replace(targets.take(slice(unit, unit + 1)), scope="k-hop", hops=hops)
    near = edges_in_scope(interactions, one)
    users, items = near.users, near.items
    added = np.zeros(len(users), dtype=bool)
    if isinstance(answer, Edits):
        mine = answer.take(unit, unit + 1)
        beyond = ~np.isin(_keys(mine.edge_users, mine.edge_items), _keys(users, items))
        users = np.concatenate([users, mine.edge_users[beyond]])
        items = np.concatenate([items, mine.edge_items[beyond]])
        added = np.concatenate([added, mine.ops[beyond] == ADD])
        mask = np.isin(_keys(users, items), _keys(mine.edge_users, mine.edge_items)).astype(np.float64)
    else:
        mask = _importance_of(one, np.asarray(answer[unit]), users, items)
    explained = one.items[0][one.items[0] >= 0]

    count = interactions.shape[0]
    ends = np.stack([users, count + items])
    nodes = np.unique(np.concatenate([ends.ravel(), one.users, count + explained]))
    local = np.searchsorted(nodes, ends)
    both = np.concatenate([local, local[::-1]], axis=1)
    return Explanation(
        edge_index=torch.as_tensor(both),
        edge_mask=torch.as_tensor(np.tile(mask, 2)).to(torch.float32),
        edge_added=torch.as_tensor(np.tile(added, 2)),
        node_id=torch.as_tensor(nodes),
        user=int(np.searchsorted(nodes, one.users[0])),
        target=torch.as_tensor(np.searchsorted(nodes, count + explained)),
        num_nodes=len(nodes),
        num_users=count,
        num_items=interactions.shape[1],
    )


def from_explanation(explanation: Any, threshold: float = 0.5) -> Edits:
    """One edit: the edges whose mask is above ``threshold`` removed, or added where ``edge_added`` says so.

    An edge that stands in both directions counts with the greater of its masks. Without ``edge_added``, all are
    removals. An explanation that comes from elsewhere needs ``node_id``, ``num_users``, and ``user``, the place of
    the user among the nodes.

    Raises:
        UserError: if one of these is missing, or an edge does not join a user and an item.
    """
    missing = [
        name
        for name in ("edge_index", "edge_mask", "node_id", "num_users", "user")
        if name not in explanation
    ]
    if missing:
        raise UserError(
            f"the explanation has no {', '.join(missing)}: set it (see cfbench_explainers_gnn.pyg)"
        )
    count = int(explanation.num_users)
    nodes = explanation.node_id.cpu().numpy().astype(np.int64)
    ends = np.sort(nodes[explanation.edge_index.cpu().numpy()], axis=0)  # users come before items
    if ((ends[0] >= count) | (ends[1] < count)).any():
        raise UserError("the explanation has an edge that does not join a user and an item")
    wanted = explanation.edge_mask.detach().cpu().numpy() > threshold
    added = np.zeros(len(wanted), dtype=bool)
    if "edge_added" in explanation:
        added = explanation.edge_added.cpu().numpy().astype(bool)
    edges, first = np.unique(ends[:, wanted], axis=1, return_index=True)
    ops = np.where(added[wanted][first], ADD, REMOVE).astype(np.int8)
    rows = np.zeros(edges.shape[1], dtype=np.int64)
    return Edits(nodes[[int(explanation.user)]], rows, edges[0], edges[1] - count, ops)


def importances_from_explanation(explanation: Any, targets: Targets, unit: int = 0) -> FloatArray:
    """(H,) importances of the interactions of the unit's user, aligned with ``targets.history[unit]``.

    Where an edge has two masks, for its two directions, the greater one; 0 for an interaction that the explanation
    does not hold.
    """
    nodes = explanation.node_id.cpu().numpy().astype(np.int64)
    ends = np.sort(nodes[explanation.edge_index.cpu().numpy()], axis=0)
    own = ends[0] == targets.users[unit]
    items, mask = ends[1][own] - int(explanation.num_users), explanation.edge_mask.detach().cpu().numpy()[own]
    found = np.full(int(explanation.num_items), -np.inf)
    np.maximum.at(found, items, mask)
    importances: FloatArray = found[targets.history[unit]].astype(np.float64)
    absent: BoolArray = np.isneginf(importances) | targets.padding[unit]
    return np.where(absent, 0.0, importances)


def _importance_of(one: Targets, importances: FloatArray, users: IntArray, items: IntArray) -> FloatArray:
    """(E,) the importance of each edge; 0 for those of others."""
    length = int((~one.padding[0]).sum())
    by_item = dict(zip(one.history[0, :length].tolist(), importances[:length].tolist(), strict=True))
    own = users == one.users[0]
    return np.array(
        [by_item.get(item, 0.0) if mine else 0.0 for item, mine in zip(items.tolist(), own, strict=True)]
    )


def _keys(users: IntArray, items: IntArray) -> IntArray:
    """A number for each edge."""
    return users * 2**32 + items
