"""CF2: a soft mask of edges, as small as possible, whose removal flips the prediction; optionally it alone upholds it.

Tan et al., "Learning and Evaluating Graph Neural Network Explanations based on Counterfactual and Factual
Reasoning", WWW 2022; adapted to recommendation as in CFExpRec, sec. 3.4.2, which uses the counterfactual part alone.

M_e = sigmoid(p_e) for each edge e in scope says how far e belongs to the explanation. With
margin(i) = s_i - (the K-th best other candidate's score), the loss of a unit with targets T is

    L = ||M||_1 * beta + L_c                                      L_c: the graph without M
    L = ||M||_1 * beta + (1 - alpha) L_c + alpha L_f              with ``factual``; L_f: the graph with M alone
    L_c = 1/|T| sum over i in T of max(0, slack + margin(i) when e has weight 1 - M_e) / unit_i
    L_f = 1/|T| sum over i in T of max(0, slack - margin(i) when e has weight M_e) / unit_i

where edges out of scope have weight 1, and unit_i = max(|margin(i) at the start|, slack). The explanation is
{e : M_e > 0.5}. The answer is the smallest explanation met on the way whose removal displaces the target on the real
model, at list level the one that displaces most items. Is there no success, or might there be a smaller one, the 1,
2, 3, ... edges with the largest M are tried too, up to the protocol's number of edits (``prefixes``).

This is ``variant: cfbench``; ``variant: paper`` is the method as published, see ``cf2_paper.py``.

Departures from the paper, and why:
- The prefixes: the loss is content when a *soft* mask flips the prediction, of which often no edge exceeds 0.5. The
  order of the mask is right all the same.
- The hinge compares with the K-th best other candidate, not with the runner-up class.
- p starts at -``start`` for every edge, in place of random numbers: hardly anything is removed at first.
- Steps are gradients in units of the unit's largest component, not Adam's (see ``cf_gnnexplainer.py``).
- Edges only: recommenders on a graph of ids have no features to mask.

Cost: one evaluation with its gradient in each of at most ``steps`` steps, two with ``factual``; one for each explanation
that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.component import not_default
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.cf2_paper import PaperCF2, PaperOptions
from cfbench_explainers_gnn.descent import DescentConfig, answers, check_restarts
from cfbench_explainers_gnn.paper_loops import paper_answers
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/cf2",
    summary="A small soft mask of edges whose removal flips the recommendation",
    target=f"{__name__}:CF2",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"gradients"}}},
    papers=("tan2022cf2",),
    presets="cfbench_explainers_gnn:presets/cf2.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config(DescentConfig):
    variant: Annotated[Variant, Help("paper: as its authors published it")] = "cfbench"
    prefixes: Annotated[bool, Help("at the end the first 1, 2, 3, ... of the strongest edits are tested")] = (
        True
    )
    learning_rate: Annotated[
        float, Range(above=0), Search(0.5, 4), Help("step of the steepest edge's parameter")
    ] = 1.0
    beta: Annotated[
        float,
        Range(minimum=0),
        Search(0.001, 1, log=True),
        Help("weight of an edge of the mask against the margin"),
    ] = 0.02
    slack: Annotated[
        float, Range(minimum=0), Help("how far below the K-th place the target is pushed, in logits")
    ] = 0.1
    start: Annotated[float, Help("minus the parameters at the start; sigmoid(-2) = 0.12")] = 2.0
    factual: Annotated[bool, Help("whether the mask alone must also preserve the recommendation")] = False
    alpha: Annotated[float, Range(minimum=0, maximum=1), Help("weight of that against the flip")] = 0.6
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, frozenset({"max_batch_edges"}))
        check_restarts(self)
        if not self.factual and "alpha" in not_default(self):
            raise UserError(
                "alpha: has no effect without factual: true; the counterfactual part is then alone"
            )


class CF2:
    """Explicit answers, removals only, for recommenders with gradients over edges."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.queries = 2 if config.factual else 1

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        if self.config.variant == "paper":
            return paper_answers(targets, context, self.config, PaperCF2(self.config.paper))
        return answers(targets, context, self.config, self, "cf2")

    def start(self, block: Block, noise: Any | None) -> Any:
        """(E,) the same for all edges."""
        import torch

        p = torch.full((len(block.rows),), -self.config.start, dtype=torch.float64)
        return p if noise is None else p + self.config.restart_noise * noise

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        """(B,) as above."""
        import torch

        mask, slack = torch.sigmoid(p), self.config.slack
        loss = block.relative_hinge(block.margins(mask), slack)
        if self.config.factual:
            upholds = block.relative_hinge(-block.margins(1 - mask), slack)
            loss = (1 - self.config.alpha) * loss + self.config.alpha * upholds
        return loss + self.config.beta * block.sums(mask)

    def step(self, p: Any, gradient: Any) -> Any:
        """(E,) downhill."""
        return p - self.config.learning_rate * gradient

    def chosen(self, p: Any) -> Any:
        """(E,) M > 0.5"""
        return p > 0
