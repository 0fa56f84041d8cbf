"""The answer of a unit is the same, bit by bit, alone and in any batch and order: for every method, on random graphs.

The grid on which gradients are rounded is switched off, except for ``ON_GRID``: the answers must not rest on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_explainers_gnn import (
    c2explainer,
    cf2,
    cf_gnnexplainer,
    exhaustive_edges,
    gradient_greedy,
    one_gradient,
    random_edges,
    unr_explainer,
)
from cfbench_recsys import soft_edits

EXPLAINERS: dict[str, Callable[[], Any]] = {
    "cf-gnnexplainer": lambda: cf_gnnexplainer.CFGNNExplainer(cf_gnnexplainer.Config(steps=8, restarts=2)),
    "cf2": lambda: cf2.CF2(cf2.Config(steps=8)),
    "c2explainer": lambda: c2explainer.C2Explainer(c2explainer.Config(steps=8)),
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
        count = data.draw(st.integers(1, min(5, len(targets))))
        order = np.array(data.draw(st.permutations(range(len(targets))))[:count])
        batch = explainer.counterfactuals(targets.take(order), context)
        for place, row in enumerate(order):
            alone = EXPLAINERS[method]().counterfactuals(targets.take(np.array([row])), context)
            assert bits(batch, place) == bits(alone, 0)

    check()
