"""Deletion and insertion curves of one unit: what the model says while its history shrinks, or grows from nothing.

The metrics POS-P and DEL average such curves over their steps; here are the steps themselves. At each one, ranks exclude the
items of the unedited history, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.view.blocks import Block, Drawing, Note

if TYPE_CHECKING:
    from cfbench_core.view.viewers import LiveUnit

STEPS = 30
"""Steps of a curve at most; a longer history is drawn to there."""
MOST_CURVES = 12


def curves(live: LiveUnit, orders: Mapping[str, tuple[Sequence[str], str]]) -> list[Block]:
    """Two drawings, a line for each order of the history.

    Args:
        orders: by explainer, item identifiers with the most important first, and the explainer's role.
    """
    from cfbench_core.reports.charts import Series, line_chart

    known = {str(id): place for place, id in enumerate(live.data.interactions.item_ids)}
    k = int(live.context.parameters["k"])
    shown = list(orders.items())[:MOST_CURVES]
    if not shown:
        return [Note("No explainer has importances for this unit.")]
    drawn: list[Block] = []
    for inserting, title in ((False, "Deletion"), (True, "Insertion")):
        series = []
        for name, (items, role) in shown:
            found = mean_ranks(live, [known[item] for item in items if item in known], inserting)
            series.append(Series(name.partition(" (")[0], range(len(found)), found, role=role))
        svg = line_chart(
            series,
            title=f"{title} curve",
            x_label="interactions removed" if not inserting else "interactions inserted",
            y_label=f"rank of the explained item (mean of several); the list ends at {k}",
            log_y=True,
        )
        note = (
            "The most important interactions are removed first: a good explanation lets the rank rise early."
            if not inserting
            else "From an empty history, the most important are inserted first: a good explanation lets the rank fall early."
        )
        drawn.append(Drawing(f"{title} curve", svg, note))
    return drawn


def mean_ranks(live: LiveUnit, order: Sequence[int], inserting: bool) -> Any:
    """(S + 1,) the mean rank of the explained items after 0, 1, ..., S edits in this order."""
    from cfbench_recsys.edits import Edits
    from cfbench_recsys.ranking import ranks_of
    from cfbench_recsys.scoring import score_blocks

    profiles = live.data.split.profiles
    user = int(live.units["user_index"].iloc[0])
    own = profiles[user].indices.astype(np.int64)
    order = [item for item in order if item in set(own.tolist())]
    steps = min(len(order), STEPS)
    place = {item: n for n, item in enumerate(order)}
    at = np.array([place.get(item, len(order)) for item in own.tolist()])
    counts = np.arange(steps + 1)[:, None]
    removed = at[None] >= counts if inserting else at[None] < counts
    users, history = np.full(steps + 1, user, dtype=np.int64), np.tile(own, (steps + 1, 1))
    edits = Edits.removals(users, history, removed)
    scores = np.concatenate([found for _, found in score_blocks(live.model, edits, profiles)])
    items = np.concatenate([np.atleast_1d(x) for x in live.units["items_index"]]).astype(np.int64)
    items = np.tile(items[items >= 0], (steps + 1, 1))
    return ranks_of(scores, items, history, np.zeros(history.shape, dtype=bool)).mean(axis=1)
