"""Gradient descent on what a method makes of the margins, with restarts; hard choices tested at each step.

What parameters say beyond the hard choice is their order: as an option, its prefixes are tested at the end. Units
that rest leave the block: what remains gets cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.config.component import not_default
from cfbench_core.errors import UserError
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks, places
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.graph_edits import MANY_EDGES
from cfbench_recsys.targets import Answer, Context, Targets


@dataclass(frozen=True, kw_only=True)
class DescentConfig(SearchConfig):
    """What every method lets one set that descends."""

    steps: Annotated[int, Range(minimum=1), Help("of the descent")] = 30
    patience: Annotated[
        int, Range(minimum=1), Help("steps without a better answer after which the search for a unit ends")
    ] = 10
    restarts: Annotated[
        int, Range(minimum=1), Help("descents; all but the first start from parameters with noise")
    ] = 1
    restart_noise: Annotated[float, Range(minimum=0), Help("of the noise on the parameters in a restart")] = (
        0.5
    )
    prefixes: Annotated[bool, Help("at the end the first 1, 2, 3, ... of the strongest edits are tested")] = (
        False
    )


def check_restarts(config: DescentConfig) -> None:
    """Refuses noise for restarts where there are none.

    Raises:
        UserError: if so.
    """
    if config.restarts == 1 and "restart_noise" in not_default(config):
        raise UserError(
            "restart_noise: has no effect with restarts: 1, as the first descent starts without noise"
        )


class Descent(Protocol):
    """What a method brings along: parameters p, one for each possible edit, and what is to become smaller."""

    queries: int
    """Model queries of ``loss`` for each unit."""

    def start(self, block: Block, noise: Any | None) -> Any:
        """(E,) parameters to start from, float64; with ``noise`` (E,) standard normal in a restart."""

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        """(B,) tensor, differentiable in ``p`` (E,).

        ``inside`` (B, T), a boolean tensor: the items that stay in the list under the edits that ``p`` stands for.
        """

    def step(self, p: Any, gradient: Any) -> Any:
        """(E,) the parameters after a step; ``gradient`` (E,) is in units of its largest component."""

    def chosen(self, p: Any) -> Any:
        """(E,) boolean tensor: the edits that the parameters stand for."""


def answers(targets: Targets, context: Context, config: DescentConfig, method: Descent, name: str) -> Answer:
    """The best answers met on descents, block by block. ``name`` is that of the random streams."""
    return in_blocks(targets, context, config, lambda block: descend(block, method, config, name).answer())


def descend(block: Block, method: Descent, config: DescentConfig, name: str) -> BestAnswers:
    """The best answers met on ``config.restarts`` descents."""
    import torch

    best = BestAnswers(block)
    for restart in range(config.restarts):
        best.improved_at[:] = 0
        part = block.take(np.flatnonzero(~best.finished()))
        noise = part.noise(name, "restart", restart) if restart else None
        p = method.start(part, noise)
        best.test(part, method.chosen(p).cpu().numpy(), 0)
        strength = np.full(len(block.possible.rows), -np.inf)
        for step in range(config.steps):
            if not len(part):
                break
            p = p.detach().requires_grad_()
            inside = torch.as_tensor(best.inside[part.units])
            gradient = part.gradient(method.loss(part, p, inside), p)
            p = method.step(p.detach(), gradient)
            best.queries[part.units] += method.queries
            best.test(part, method.chosen(p).cpu().numpy(), step)
            strength[part.edges] = p.cpu().numpy()
            awake = ~best.resting(step + 1, config.patience)[part.units]
            if not awake.all():
                p = p[awake[part.possible.rows]]
                part = part.take(np.flatnonzero(awake))
        if config.prefixes:
            try_prefixes(best, strength)
    return best


def try_prefixes(best: BestAnswers, strength: FloatArray) -> None:
    """Tests prefixes of the strongest edits of each unit (:func:`prefix_lengths`), while they could be better answers.

    The last prefix of a unit is its own longest one, however many edits other units of the block have.

    strength: (E of the block of ``best``,); of equal ones the first counts as stronger, -inf is never tested. Of a unit with
    ``MANY_EDGES`` several prefixes are scored at once, and all of them count as queries.
    """
    possible = best.block.possible
    sizes = np.bincount(possible.rows[strength > -np.inf], minlength=len(best.block))
    longest = np.minimum(sizes, best.block.targets.budget)
    place = places(strength, possible)
    lengths = list(prefix_lengths(int(longest.max(initial=0))))
    if not lengths:
        return
    strongest = place < lengths[-1]
    block, place = best.restricted(strongest), place[strongest]
    alone = len(block) == 1 and len(possible.rows) > MANY_EDGES
    together = LENGTHS_AT_ONCE if alone else 1
    for start in range(0, len(lengths), together):
        some = lengths[start : start + together]
        own = np.minimum(longest, some[0])
        has_more = longest > (lengths[start - 1] if start else 0)
        units = np.flatnonzero(has_more & best.could_be_better(own))
        if not len(units):
            break
        if alone:
            best.test_in_turn(block, [place < length for length in some])
        else:
            part = block.take(units)
            best.test(
                part, place[np.searchsorted(block.edges, part.edges)] < own[units][part.possible.rows], 0
            )


LENGTHS_AT_ONCE = 8
"""Prefixes that are scored at once where a unit is alone because of its ``MANY_EDGES``. Other units are in batches, and what
is counted as queries of one must not depend on the others."""


EVERY_LENGTH = 256
"""Prefixes up to this length are all tested."""


def prefix_lengths(most: int) -> Iterator[int]:
    """1, 2, 3, ..., from ``EVERY_LENGTH`` on each a twentieth longer than the one before, at last ``most``."""
    length = 0
    while length < most:
        length = min(most, length + max(1, length // 20 if length >= EVERY_LENGTH else 1))
        yield length
