"""C2Explainer: descend on a hard mask of edits, with the gradient passed straight through its threshold.

Ma, "C2Explainer: Customizable Mask-based Counterfactual Explanation for Graph Neural Networks", 2025; adapted to
recommendation as in CFExpRec, sec. 3.4.2.

One parameter p_e in [-1, 1] for each possible edit e: an edge in scope to be removed, and, where the protocol lets edges
be added, a bounded set of edges to be added (see ``possible_edits.py``). Edit e is made if p_e > 0, wholly: what is
scored is always a graph that could exist. (A fraction of an edge is evidence of its own, by which soft masks flip
predictions that no real edit flips.) All start at -1, "nothing changed". With m_e = 1[p_e > 0] and
margin(i) = s_i - (the K-th best other candidate's score), the loss of a unit with targets T is

    L = 1/|T| sum over i in T of max(0, slack + margin(i)) / unit_i  +  beta * sum over e of m_e,

unit_i = max(|margin(i) at the start|, slack), and its gradient in m_e is taken for that in p_e (straight-through
estimator). While the target stays, the steepest edits gain; once it has left by ``slack``, only the second term remains,
and the weakest are taken back, until it returns. The answer is the smallest set of edits met on the way that displaces
the target on the real model, at list level the one that displaces most items; at the end the 1, 2, 3, ...
edits with the largest p are tried too, up to the protocol's number of edits (``prefixes``).

This is ``variant: cfbench``; ``variant: paper`` is the method as published, see ``c2explainer_paper.py``.

Departures from the paper, and why:
- The hinge on the margin is in place of a class's likelihood; it knows the target (in the papers' code the item that is
  explained does not enter).
- p is a number in [-1, 1], not the argument of a sigmoid: nothing saturates, and what was given up can come back soon.
- Steps are gradients in units of the unit's largest component (see ``cf_gnnexplainer.py``): at the default rate the first
  step makes the steepest edit alone.
- Additions are a bounded set in place of all pairs of nodes.

Cost: one evaluation with its gradient in each of at most ``steps`` steps, one for each set of edits that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.c2explainer_paper import PaperC2Explainer, PaperOptions
from cfbench_explainers_gnn.descent import DescentConfig, answers, check_restarts
from cfbench_explainers_gnn.paper_loops import paper_answers
from cfbench_explainers_gnn.possible_edits import AdditionsConfig
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/c2explainer",
    summary="Descent on hard edits, removals and additions, by straight-through gradients",
    target=f"{__name__}:C2Explainer",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove", "add"},
    },
    needs={"recommender": {"access": {"gradients"}}},
    papers=("ma2025c2",),
    presets="cfbench_explainers_gnn:presets/c2explainer.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config(AdditionsConfig, DescentConfig):
    variant: Annotated[Variant, Help("paper: as its authors published it")] = "cfbench"
    steps: Annotated[int, Range(minimum=1), Help("of the descent")] = 40
    patience: Annotated[
        int, Range(minimum=1), Help("steps without a better answer after which the search for a unit ends")
    ] = 15
    prefixes: Annotated[bool, Help("at the end the first 1, 2, 3, ... of the strongest edits are tested")] = (
        True
    )
    learning_rate: Annotated[
        float,
        Range(above=0),
        Search(0.5, 4),
        Help("step of the steepest edit's parameter, which starts at -1"),
    ] = 1.01
    beta: Annotated[
        float, Range(minimum=0), Search(0.001, 1, log=True), Help("weight of an edit against the margin")
    ] = 0.01
    slack: Annotated[
        float, Range(minimum=0), Help("how far below the K-th place the target is pushed, in logits")
    ] = 0.1
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, frozenset({"max_batch_edges", "own", "rivals", "neighbours"}))
        check_restarts(self)


class C2Explainer:
    """Explicit answers, removals and additions, for recommenders with gradients over edges."""

    queries = 1

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        if self.config.variant == "paper":
            return paper_answers(targets, context, self.config, PaperC2Explainer(self.config.paper))
        return answers(targets, context, self.config, self, "c2explainer")

    def start(self, block: Block, noise: Any | None) -> Any:
        """(E,) nothing changed; in a restart as near to changing something as the noise says."""
        import torch

        p = torch.full((len(block.rows),), -1.0, dtype=torch.float64)
        return p if noise is None else (p + self.config.restart_noise * noise.abs()).clamp(max=0.0)

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        """(B,) as above; its value is that of the hard mask, its gradient goes to p."""
        made = self.chosen(p.detach()).to(p.dtype) + (p - p.detach())
        hinge = block.relative_hinge(block.margins(made), self.config.slack)
        return hinge + self.config.beta * block.sums(made)

    def step(self, p: Any, gradient: Any) -> Any:
        """(E,) downhill, within [-1, 1]."""
        return (p - self.config.learning_rate * gradient).clamp(-1.0, 1.0)

    def chosen(self, p: Any) -> Any:
        """(E,) p > 0"""
        return p > 0
