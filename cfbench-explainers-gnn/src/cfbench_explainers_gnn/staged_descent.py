"""Displacing as much of a list as a budget of edits allows: descents towards all items, then towards the easiest ones.

A sum of margins is lowered most by edits against the item that is hardest to displace, on which the budget may be spent in
vain. So the items are ordered by the number of edits that each of them alone takes by the first gradient, fewest first,
those for which the budget does not suffice last, and descents towards the first m of them are made for m = all, fewer, ...
(in about five stages), until as many items are
displaced as the next descent is for. A descent makes edits with the steepest gradient of

    sum over the m items of max(0, margin(i)) / (margin(i) at the untouched graph),    at the graph as edited so far,

half as many at once as the gradient promises to suffice, at least a twelfth of those made so far, and no more than a
quarter of the budget; then the real model is queried and the gradient taken anew. It ends when the m items have left, at
the budget, when no edit helps, or when the sum has not become lower than before for some steps in a row.

The descents of several units are made in lockstep (``lockstep.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.lockstep import (
    Parts,
    Request,
    Search,
    edges_of_units,
    in_lockstep,
    items_of_units,
)
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray

STAGES = 5
SHARE = 0.5
"""Of the edits that the gradient promises to suffice, how many are made at once."""
GROWTH = 12
"""One in so many of the edits made so far is made at once, if that is more."""
LARGEST_PART = 4
"""At most one in so many of the budget is made at once."""
SLACK = 1e-9
"""An item whose score ties with the K-th best other candidate's may still be in the list."""


class _OfEachItem(Request):
    """(T,) margins of the items on the untouched graph, and (T, E) their derivatives by the edits."""


@dataclass(frozen=True, eq=False)
class _Left(Request):
    """What is left of the margins under the edits ``made`` (E,), a sum by ``weights`` (T,), and its derivatives (E,)."""

    made: BoolArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class _Test(Request):
    """A test of the edits ``made`` (E,) on the real model."""

    made: BoolArray


def displace_in_stages(best: BestAnswers, units: IntArray, patience: int) -> None:
    """Offers to ``best`` what descents meet. ``patience``: steps in a row that lower nothing, after which a descent ends."""
    parts = Parts(best.block)
    in_lockstep(
        [_stages(best, unit, patience) for unit in units.tolist()],
        {
            _OfEachItem: lambda requests: _of_each_item(parts.of(requests)),
            _Left: lambda requests: _left(parts.of(requests), requests),
            _Test: lambda requests: _test(best, parts.of(requests), requests),
        },
    )


def _stages(best: BestAnswers, unit: int, patience: int) -> Search:
    part = best.block.take(np.array([unit]))
    wanted = int(best.wanted[unit])
    margins, slopes = yield _OfEachItem(unit)
    best.queries[unit] += 1 + wanted
    easiest = np.argsort(_difficulties(slopes, margins, part), kind="stable")
    for count in range(wanted, 0, -max(1, wanted // STAGES)):
        if best.displaced[unit] >= count:
            break
        weights = np.zeros(len(margins))
        weights[easiest[:count]] = 1 / np.maximum(margins[easiest[:count]], SLACK)
        yield from _descend(best, part, weights, patience)


def _descend(best: BestAnswers, part: Block, weights: FloatArray, patience: int) -> Search:
    """``weights`` (T,) of the items' margins; items of weight 0 may stay."""
    unit = int(part.units[0])
    made: BoolArray = np.zeros(len(part.possible.rows), dtype=np.bool_)
    room, lowest, in_vain = min(part.targets.budget, len(made)), np.inf, 0
    while room and in_vain < patience:
        left, slope = yield _Left(unit, made, weights)
        best.queries[unit] += 1
        in_vain = 0 if left < lowest else in_vain + 1
        lowest = min(left, lowest)
        order, promised = _promised(np.where(made, 0.0, slope), left, part)
        width = max(1, round(SHARE * promised), int(made.sum()) // GROWTH)
        chosen = order[: min(width, room, max(1, part.targets.budget // LARGEST_PART))]
        if not len(chosen):
            return
        made = made.copy()
        made[chosen] = True
        room -= len(chosen)
        yield _Test(unit, made)
        if not best.inside[unit][: len(weights)][weights > 0].any():
            return


def _difficulties(slopes: FloatArray, margins: FloatArray, part: Block) -> FloatArray:
    """(T,) how many edits the displacement of each item alone takes by the first gradient, (T, E) slopes.

    Where the budget does not suffice it is more than that: as many times more as the margin is more than what the steepest
    edits within the budget lower it by; infinite where no edit lowers it.
    """
    room = min(part.targets.budget, slopes.shape[1])
    difficulties = np.full(len(margins), np.inf)
    for item, (slope, margin) in enumerate(zip(slopes, margins, strict=True)):
        order, needed = _promised(slope, margin, part)
        lowered = float(-slope[order[:room]].sum())
        if needed <= min(room, len(order)):
            difficulties[item] = needed
        elif lowered > 0:
            difficulties[item] = max(room * margin / lowered, room + 1)
    return difficulties


def _of_each_item(part: Block) -> list[tuple[FloatArray, FloatArray]]:
    """For each unit (T,) the margins of its items on the untouched graph, and (T, E) their derivatives by its edits."""
    import torch

    made = torch.zeros(len(part.possible.rows), dtype=torch.float64, requires_grad=True)
    margins = part.margins(made)
    slopes = np.stack(
        [
            torch.autograd.grad(of_item.sum(), made, retain_graph=True)[0].cpu().numpy()
            for of_item in margins.unbind(dim=1)
        ]
    )
    values, counts = margins.detach().cpu().numpy(), items_of_units(part).sum(axis=1).tolist()
    return [
        (own[:count], slopes[:count, edges])
        for own, count, edges in zip(values, counts, edges_of_units(part), strict=True)
    ]


def _left(part: Block, requests: Sequence[_Left]) -> list[tuple[float, FloatArray]]:
    import torch

    made = np.concatenate([request.made for request in requests])
    weights = np.zeros(part.targets.items.shape)
    weights[items_of_units(part)] = np.concatenate([request.weights for request in requests])
    m = torch.as_tensor(made.astype(np.float64)).requires_grad_()
    left = torch.relu(part.margins(m) + SLACK) * torch.as_tensor(weights)
    (slope,) = torch.autograd.grad(left.sum(), m)
    slopes = slope.cpu().numpy()
    sums = [
        float(own[: len(request.weights)].sum()) for own, request in zip(left.detach(), requests, strict=True)
    ]
    return [(own, slopes[edges]) for own, edges in zip(sums, edges_of_units(part), strict=True)]


def _test(best: BestAnswers, part: Block, requests: Sequence[_Test]) -> list[None]:
    best.test(part, np.concatenate([request.made for request in requests]), 0)
    return [None] * len(requests)


def _promised(slope: FloatArray, left: float, part: Block) -> tuple[IntArray, int]:
    """The edits that lower what is left, steepest first, and how many of them suffice by their ``slope`` (E,).

    Of very many the steepest ones only, four times the budget. Slopes are compared on a grid in units of the steepest, as
    edits that are equal on paper must tie; of equal ones the first leads.
    """
    import torch

    steepness = part.normalised(torch.as_tensor(-slope)).cpu().numpy()
    falling = np.flatnonzero(steepness > 0)
    most = 4 * min(part.targets.budget, len(slope))
    if len(falling) > most:
        least = np.partition(steepness[falling], len(falling) - most)[len(falling) - most]
        falling = falling[steepness[falling] >= least]
    order = falling[np.argsort(-steepness[falling], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(-slope[order]), left)) + 1
    return order, min(enough, len(order) + 1)
