"""The plugin as it is installed: what it registers behaves."""

from __future__ import annotations

import pytest

from cfbench_core.registry import installed
from cfbench_core.reproduction_levels import level_of
from cfbench_core.testing import check_component
from cfbench_explainers_gnn.clear import Config as ClearConfig
from cfbench_explainers_gnn.exhaustive_edges import Config as ExhaustiveConfig
from cfbench_explainers_gnn.pyg_explainer import Config as PyGConfig
from cfbench_explainers_gnn.unr_explainer import Config as UNRConfig

NAMES = [
    c.spec.name
    for c in installed().components("explainer", "recsys")
    if c.distribution == "cfbench-explainers-gnn"
]
QUICK = {
    "pyg": PyGConfig(epochs=3, learning_rate=0.3),
    "clear": ClearConfig(steps=30),
    "unr-explainer": UNRConfig(simulations=40),
    "exhaustive-edges": ExhaustiveConfig(budget=300),
}
"""Options of explainers whose defaults take long."""


def test_it_registers_its_explainers() -> None:
    assert {
        "cf-gnnexplainer",
        "cf2",
        "c2explainer",
        "random-edges",
        "gradient-greedy",
        "one-gradient",
        "unr-explainer",
        "clear",
        "pyg",
    } <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_passes_the_conformance_kit(name: str) -> None:
    report = check_component(f"recsys/explainer/{name}", options=QUICK.get(name))
    assert report.passed, str(report)


def test_every_method_of_a_paper_states_how_far_it_is_that_of_the_paper() -> None:
    found = installed().components()
    own = [
        c.spec
        for c in found
        if c.distribution == "cfbench-explainers-gnn" and c.spec.kind in ("explainer", "recommender")
    ]
    assert any(spec.papers for spec in own)
    assert [spec.id for spec in own if spec.papers and level_of(spec) is None] == []
