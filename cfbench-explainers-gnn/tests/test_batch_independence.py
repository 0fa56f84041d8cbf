"""The answer of a unit is the same, bit by bit, alone and in any batch and order: for every method, on random graphs.

The grids on which gradients and CLEAR's logits are rounded are switched off, except for ``ON_GRID``: the answers must not
rest on them. What is trained is trained once, for the unit alone and for the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_explainers_gnn import (
    c2explainer,
    cf2,
    cf_gnnexplainer,
    clear,
    clear_paper,
    descent,
    exhaustive_edges,
    gradient_greedy,
    one_gradient,
    random_edges,
    unr_explainer,
)
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_recsys import soft_edits

PAPER = clear_paper.PaperOptions(epochs=4, plain=2, units=6, nodes=10, hidden=5, latent=3, k=2)
EXPLAINERS: dict[str, Callable[[], Any]] = {
    "cf-gnnexplainer": lambda: cf_gnnexplainer.CFGNNExplainer(cf_gnnexplainer.Config(steps=8, restarts=2)),
    "cf2": lambda: cf2.CF2(cf2.Config(steps=8)),
    "c2explainer": lambda: c2explainer.C2Explainer(c2explainer.Config(steps=8)),
    "clear": lambda: clear.CLEAR(clear.Config(steps=4, batch=6, k=2)),
    "clear, paper": lambda: clear.CLEAR(clear.Config(variant="paper", paper=PAPER)),
    "unr-explainer": lambda: unr_explainer.UNRExplainer(unr_explainer.Config(simulations=10)),
    "gradient-greedy": lambda: gradient_greedy.GradientGreedy(gradient_greedy.Config()),
    "one-gradient": lambda: one_gradient.OneGradient(one_gradient.Config()),
    "random-edges": lambda: random_edges.RandomEdges(random_edges.Config()),
    "exhaustive-edges": lambda: exhaustive_edges.ExhaustiveEdges(exhaustive_edges.Config()),
}
ON_GRID = {"unr-explainer"}
"""Its rewards compare sums of margins; edges that are equal on paper must tie."""
MakeWorld = Callable[..., Any]


def bits(answer: Any, row: int) -> dict[str, bytes]:
    """The edges of a unit's answer and its details, as bytes."""
    edits = answer.edits.take(row, row + 1)
    found = {name: getattr(edits, name).tobytes() for name in ("users", "edge_users", "edge_items", "ops")}
    return found | {name: values[row : row + 1].tobytes() for name, values in answer.details.items()}


@pytest.mark.parametrize("method", EXPLAINERS)
def test_a_unit_has_the_same_answer_alone_and_in_any_batch_and_order(
    method: str, graph_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method not in ON_GRID:
        monkeypatch.setattr(soft_edits, "GRID", 2.0**50)
        monkeypatch.setattr(clear, "GRID", 2.0**50)

    @settings(deadline=None, max_examples=8)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(["lightgcn", "gformer"]))
        world = graph_world(name, data.draw(st.integers(0, 2**16)), users=6, items=9)
        scope, level = data.draw(
            st.sampled_from([("k-hop", "item"), ("user-only", "list"), ("full", "item")])
        )
        targets = world.targets(2, level, scope)
        if not len(targets):
            return
        explainer, context = EXPLAINERS[method](), world.context
        if hasattr(explainer, "prepare"):
            context = dataclasses.replace(context, state=explainer.prepare(context))
        count = data.draw(st.integers(1, min(5, len(targets))))
        order = np.array(data.draw(st.permutations(range(len(targets))))[:count])
        batch = explainer.counterfactuals(targets.take(order), context)
        for place, row in enumerate(order):
            alone = EXPLAINERS[method]().counterfactuals(targets.take(np.array([row])), context)
            assert bits(batch, place) == bits(alone, 0)

    check()


@pytest.mark.parametrize("method", ["one-gradient", "random-edges"])
def test_where_not_every_prefix_is_tested_those_of_a_unit_do_not_depend_on_other_units(
    method: str, graph_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lengths that double, in place of those that grow by a twentieth from 256 on, for graphs that are small."""

    def doubling(most: int) -> Iterator[int]:
        length = 0
        while length < most:
            length = min(most, max(1, 2 * length))
            yield length

    monkeypatch.setattr(descent, "prefix_lengths", doubling)
    for seed in range(3):
        world = graph_world("lightgcn", seed, users=7, items=10)
        targets = world.targets(3, "list", "user-only")
        assert len(set(np.count_nonzero(~targets.padding, axis=1))) > 2  # how many edits each unit may make
        batch = EXPLAINERS[method]().counterfactuals(targets, world.context)
        for row in range(len(targets)):
            alone = EXPLAINERS[method]().counterfactuals(targets.take(np.array([row])), world.context)
            assert bits(batch, row) == bits(alone, 0)


@pytest.mark.parametrize("level", ["item", "list"])
def test_the_logits_of_clear_are_the_same_alone_and_in_a_batch(
    level: str, graph_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clear, "GRID", 2.0**50)
    for seed in range(4):
        world = graph_world("lightgcn", seed, users=12, items=17)
        state = clear.CLEAR(clear.Config(steps=4, batch=6, k=2)).prepare(world.context)
        network = {name: torch.from_numpy(array) for name, array in state.items()}
        around = clear.Surroundings(world.context)
        targets = world.targets(2, level, "k-hop")

        def logits(units: Any, about: Any = (targets, world.context, network, around)) -> tuple[Any, Any]:
            targets, context, network, around = about
            some = targets.take(units)
            block = Block(some, possible_edits(some, context), context)
            return clear.removal_logits(network, block, around), block.possible.rows

        together, rows = logits(np.arange(len(targets)))
        assert len(targets) > 8
        for unit in range(len(targets)):
            assert logits(np.array([unit]))[0].tobytes() == together[rows == unit].tobytes()
