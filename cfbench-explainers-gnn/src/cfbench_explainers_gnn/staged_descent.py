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
"""

from __future__ import annotations

import numpy as np

from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block
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


def displace_in_stages(best: BestAnswers, unit: int, patience: int) -> None:
    """Offers to ``best`` what descents meet. ``patience``: steps in a row that lower nothing, after which a descent ends."""
    part = best.block.take(np.array([unit]))
    wanted = int(best.wanted[unit])
    margins, slopes = _of_each_item(part)
    best.queries[unit] += 1 + wanted
    easiest = np.argsort(_difficulties(slopes, margins, part), kind="stable")
    for count in range(wanted, 0, -max(1, wanted // STAGES)):
        if best.displaced[unit] >= count:
            break
        weights = np.zeros(len(margins))
        weights[easiest[:count]] = 1 / np.maximum(margins[easiest[:count]], SLACK)
        _descend(best, part, weights, patience)


def _descend(best: BestAnswers, part: Block, weights: FloatArray, patience: int) -> None:
    """``weights`` (T,) of the items' margins; items of weight 0 may stay."""
    unit = part.units[0]
    made: BoolArray = np.zeros(len(part.possible.rows), dtype=np.bool_)
    room, lowest, in_vain = min(part.targets.budget, len(made)), np.inf, 0
    while room and in_vain < patience:
        left, slope = _left(part, made, weights)
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
        best.test(part, made, 0)
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


def _of_each_item(part: Block) -> tuple[FloatArray, FloatArray]:
    """(T,) the margins of a unit's items on the untouched graph, and (T, E) their derivatives by the edits."""
    import torch

    made = torch.zeros(len(part.possible.rows), dtype=torch.float64, requires_grad=True)
    margins = part.margins(made)[0][: np.count_nonzero(part.targets.items[0] >= 0)]
    slopes = [torch.autograd.grad(margin, made, retain_graph=True)[0].cpu().numpy() for margin in margins]
    return margins.detach().cpu().numpy(), np.stack(slopes)


def _left(part: Block, made: BoolArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """The weighted sum of what is left of the margins, and (E,) its derivatives."""
    import torch

    m = torch.as_tensor(made.astype(np.float64)).requires_grad_()
    margins = part.margins(m)[0][: len(weights)]
    left = (torch.relu(margins + SLACK) * torch.as_tensor(weights)).sum()
    (slope,) = torch.autograd.grad(left, m)
    return float(left.detach()), slope.cpu().numpy()


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
