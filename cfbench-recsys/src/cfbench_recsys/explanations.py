"""Explanations as the table of the contract, and back: identifiers of the data file outside, indices inside.

Columns: unit, user, item (null at list level), rank, level, format, edge_user, edge_item, op (remove | add), importance
(null when explicit); a row for each unit and interaction. An explicit answer without edits has no row.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_recsys.answer_limits import check_limits
from cfbench_recsys.edits import ADD, REMOVE, BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.targets import Targets

OPS = {"remove": REMOVE, "add": ADD}


def importances_table(
    interactions: Interactions, targets: Targets, importances: FloatArray, units: pd.DataFrame
) -> pd.DataFrame:
    """Importances (B, H) as rows; ``units`` says in contract columns what each of the B units is."""
    rows, columns = np.nonzero(~targets.padding)
    return units.iloc[rows].assign(
        edge_user=interactions.user_ids[targets.users[rows]],
        edge_item=interactions.item_ids[targets.history[rows, columns]],
        op="remove",
        importance=importances[rows, columns],
    )


def edits_table(interactions: Interactions, edits: Edits, units: pd.DataFrame) -> pd.DataFrame:
    """B edits as rows."""
    return units.iloc[edits.rows].assign(
        edge_user=interactions.user_ids[edits.edge_users],
        edge_item=interactions.item_ids[edits.edge_items],
        op=np.where(edits.ops == REMOVE, "remove", "add"),
        importance=np.nan,
    )


def read_importances(
    table: pd.DataFrame, interactions: Interactions, targets: Targets, units: pd.Series
) -> tuple[FloatArray, BoolArray]:
    """(B, H) importances aligned with ``targets.history``, and (B,) which units the table answers.

    An interaction of the user that the table leaves out has importance 0.
    """
    edges = _Edges(table, interactions, units)
    edges.own(targets)
    if "importance" not in table:
        raise UserError("explanations: implicit answers need a column importance")
    if "op" in edges.table:
        wrong = edges.table["op"].notna() & ~edges.table["op"].isin(["", "remove"])
        if wrong.any():
            raise UserError(
                "explanations: an importance is of an interaction that could be removed: op must be remove, "
                f"got {edges.table['op'][wrong].iloc[0]!r}"
            )
    given = edges.table["importance"].to_numpy(np.float64)
    if not np.isfinite(given).all():
        row = edges.table[~np.isfinite(given)].iloc[0]
        raise UserError(
            f"explanations: unit {row['unit']!r} gives {row['edge_item']!r} no finite number as importance "
            f"(got {row['importance']})"
        )
    importances = np.zeros(targets.history.shape)
    importances[edges.rows, edges.places(targets)] = given
    answered = np.zeros(len(targets), dtype=bool)
    answered[edges.rows] = True
    return importances, answered


def read_edits(
    table: pd.DataFrame,
    interactions: Interactions,
    targets: Targets,
    units: pd.Series,
    graph: scipy.sparse.csr_matrix,
) -> Edits:
    """B edits; those of units without rows are empty.

    Raises:
        UserError: if an edge to be removed is not in ``graph`` (users, items), or one to be added is; if an edit is
            outside the scope of its unit, or has more edges than the protocol allows; if a row has an importance.
    """
    edges = _Edges(table, interactions, units)
    if "importance" in edges.table and (weighted := edges.table["importance"].notna()).any():
        row = edges.table[weighted].iloc[0]
        raise UserError(
            f"explanations: unit {row['unit']!r} gives {row['edge_item']!r} the importance {row['importance']:g}, but edits "
            "have none: importances are rows of the format implicit (column format)"
        )
    ops = edges.table["op"].map(OPS)
    if ops.isna().any():
        wrong = edges.table["op"][ops.isna()].iloc[0]
        raise UserError(f"explanations: op must be remove or add, got {wrong!r}")
    order = np.lexsort((edges.items, edges.users, edges.rows))
    edits = Edits(
        targets.users, edges.rows[order], edges.users[order], edges.items[order], ops.to_numpy(np.int8)[order]
    )
    check_limits(edits, targets, graph, units, interactions)
    return edits


class _Edges:
    """Rows of a table that belong to some units, as indices."""

    def __init__(self, table: pd.DataFrame, interactions: Interactions, units: pd.Series) -> None:
        where = pd.Index(units).get_indexer(table["unit"].astype(str))
        self.units = units
        self.interactions = interactions
        self.table = table[where >= 0]
        self.rows: IntArray = where[where >= 0].astype(np.int64)
        self.users = _indices(self.table, "edge_user", interactions.user_ids, interactions.name)
        self.items = _indices(self.table, "edge_item", interactions.item_ids, interactions.name)
        keys = pd.Series(list(zip(self.rows, self.users, self.items, strict=True)))
        if keys.duplicated().any():
            row = self.table[keys.duplicated().to_numpy()].iloc[0]
            raise UserError(
                f"explanations: unit {row['unit']!r} names ({row['edge_user']}, {row['edge_item']}) twice"
            )

    def own(self, targets: Targets) -> None:
        """Checks that every edge is one of the unit's own user."""
        foreign = np.flatnonzero(self.users != targets.users[self.rows])
        if len(foreign):
            row = self.table.iloc[foreign[0]]
            raise UserError(
                f"explanations: unit {row['unit']!r} names an edge of user {row['edge_user']!r}, outside its scope "
                f"{targets.scope}"
            )

    def places(self, targets: Targets) -> IntArray:
        """The column of ``targets.history`` in which each edge stands."""
        items = len(self.interactions.item_ids)
        history = np.where(targets.padding, items, targets.history)  # ascending in each row, padding last
        keys = (np.arange(len(history))[:, None] * (items + 1) + history).ravel()
        wanted = self.rows * (items + 1) + self.items
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        lost = np.flatnonzero(keys[found] != wanted)
        if len(lost):
            row = self.table.iloc[lost[0]]
            raise UserError(
                f"explanations: unit {row['unit']!r} names {row['edge_item']!r}, which is not in the history of "
                f"user {row['edge_user']!r}"
            )
        places: IntArray = (found - self.rows * history.shape[1]).astype(np.int64)
        return places


def _indices(table: pd.DataFrame, column: str, known: np.ndarray, name: str) -> IntArray:
    found = pd.Index(known).get_indexer(table[column].astype(str))
    if (found < 0).any():
        row = table[found < 0].iloc[0]
        raise UserError(f"explanations: unit {row['unit']!r}: {column} {row[column]!r} is not in {name}")
    indices: IntArray = found.astype(np.int64)
    return indices
