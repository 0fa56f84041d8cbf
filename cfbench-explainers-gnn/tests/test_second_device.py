"""Explanations on a second device are those on the CPU: every tensor is made where the model is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from cfbench_explainers_gnn import (
    c2explainer,
    c2explainer_paper,
    cf2,
    cf2_paper,
    cf_gnnexplainer,
    cf_gnnexplainer_paper,
    clear,
    clear_paper,
    exhaustive_edges,
    gradient_greedy,
    one_gradient,
    random_edges,
    unr_explainer,
)
from cfbench_recsys.devices import on_device_of
from cfbench_recsys.recommenders import graph_convolution
from cfbench_recsys.testing.second_device import second_device

CLEAR_PAPER = clear_paper.PaperOptions(epochs=4, plain=2, units=6, nodes=10, hidden=5, latent=3, k=2)
CF_PAPER = cf_gnnexplainer_paper.PaperOptions(steps=6)
EXPLAINERS: dict[str, Callable[[], Any]] = {
    "cf-gnnexplainer": lambda: cf_gnnexplainer.CFGNNExplainer(cf_gnnexplainer.Config(steps=8, restarts=2)),
    "cf-gnnexplainer, paper": lambda: cf_gnnexplainer.CFGNNExplainer(
        cf_gnnexplainer.Config(variant="paper", paper=CF_PAPER)
    ),
    "cf2": lambda: cf2.CF2(cf2.Config(steps=8)),
    "cf2, paper": lambda: cf2.CF2(cf2.Config(variant="paper", paper=cf2_paper.PaperOptions(steps=6))),
    "c2explainer": lambda: c2explainer.C2Explainer(c2explainer.Config(steps=8)),
    "c2explainer, paper": lambda: c2explainer.C2Explainer(
        c2explainer.Config(variant="paper", paper=c2explainer_paper.PaperOptions(steps=6))
    ),
    "clear": lambda: clear.CLEAR(clear.Config(steps=4, batch=6, k=2)),
    "clear, paper": lambda: clear.CLEAR(clear.Config(variant="paper", paper=CLEAR_PAPER)),
    "unr-explainer": lambda: unr_explainer.UNRExplainer(unr_explainer.Config(simulations=10)),
    "unr-explainer, paper": lambda: unr_explainer.UNRExplainer(unr_explainer.Config(variant="paper")),
    "gradient-greedy": lambda: gradient_greedy.GradientGreedy(gradient_greedy.Config()),
    "one-gradient": lambda: one_gradient.OneGradient(one_gradient.Config()),
    "random-edges": lambda: random_edges.RandomEdges(random_edges.Config()),
    "exhaustive-edges": lambda: exhaustive_edges.ExhaustiveEdges(exhaustive_edges.Config()),
}


def bits(answer: Any, row: int) -> dict[str, bytes]:
    """The edges of a unit's answer and its details, as bytes."""
    edits = answer.edits.take(row, row + 1)
    found = {name: getattr(edits, name).tobytes() for name in ("users", "edge_users", "edge_items", "ops")}
    return found | {name: values[row : row + 1].tobytes() for name, values in answer.details.items()}


def answers(method: str, world: Any, targets: Any) -> list[dict[str, bytes]]:
    explainer, context = EXPLAINERS[method](), world.context
    with on_device_of(context.model):
        if hasattr(explainer, "prepare"):
            context = dataclasses.replace(context, state=explainer.prepare(context))
        answer = explainer.counterfactuals(targets, context)
    return [bits(answer, row) for row in range(len(targets))]


@pytest.mark.parametrize("name", ["lightgcn", "gformer"])
@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "unr-explainer, paper")) for name in EXPLAINERS],
)
def test_answers_on_a_second_device_are_those_on_the_cpu(
    method: str, name: str, graph_world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def world() -> Any:
        return graph_world(name, 3, users=6, items=9)

    targets = world().targets(2, "item", "k-hop")
    expected = answers(method, world(), targets)
    with second_device() as device:
        monkeypatch.setattr(graph_convolution, "torch_device", lambda _: device)
        assert answers(method, world(), targets) == expected
    assert len(expected) > 4
