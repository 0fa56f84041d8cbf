"""CF-GNNExplainer: learn which few edges to remove so that the prediction flips.

Lucic et al., "CF-GNNExplainer: Counterfactual Explanations for Graph Neural Networks", AISTATS 2022; adapted to
recommendation as in CFExpRec, sec. 3.4.2: the prediction flips when the target leaves the top K (item level), or
when the items of the list do (list level).

One parameter p_e for each edge e in scope; edge e has weight w_e = sigmoid(p_e) while learning, and is removed in the
answer where w_e < 0.5: the hard mask. With margin(i) = s_i - (the K-th best other candidate's score) under the weights
w, the loss of a unit with targets T and E edges in scope is

    L = 1/|T| sum over i in T of 1[i in the top K under the hard mask] * margin(i) / unit
        +  beta / E * sum over e of (1 - w_e)

where unit is the mean of |margin(i)| at the start, minimised by gradient descent. As in the paper (equation 5), the
prediction loss counts as long as the *hard* mask leaves the prediction as it was, and the distance always. It is not
enough that the soft mask flips the prediction: a mixture of graphs can do so where none of the graphs that it rounds to
does. The answer is the smallest set of removals met on the way that flips the prediction with hard masks on the real
model; at list level the one that displaces most items, then the smallest. "No answer" if none does.

This is ``variant: cfbench``; ``variant: paper`` is the method as published, see ``cf_gnnexplainer_paper.py``.

Departures from the paper, and why:
- The prediction loss is the margin in place of the log-likelihood of a class: ranks have no classes.
- Each unit's gradient is divided by its largest component before a step: scores of recommenders differ in scale by
  orders of magnitude. (Adam, which divides each component, would move all edges at one speed, and remove them together.)
- Removals are tested on the real model whenever the hard mask changed.
- The degree normalisation follows the mask, and so do its gradients (the papers' public code detaches them).

Cost: one evaluation with its gradient in each of at most ``steps`` steps, and one for each hard mask.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.cf_gnnexplainer_paper import PaperCFGNNExplainer, PaperOptions
from cfbench_explainers_gnn.descent import DescentConfig, answers, check_restarts
from cfbench_explainers_gnn.paper_loops import paper_answers
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/cf-gnnexplainer",
    summary="Gradient descent on a soft mask of edges until the target leaves the list",
    target=f"{__name__}:CFGNNExplainer",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"gradients"}}},
    papers=("lucic2022cfgnn",),
    presets="cfbench_explainers_gnn:presets/cf-gnnexplainer.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config(DescentConfig):
    variant: Annotated[Variant, Help("paper: as its authors published it")] = "cfbench"
    learning_rate: Annotated[
        float, Range(above=0), Search(0.5, 4), Help("step of the steepest edge's parameter")
    ] = 2.0
    beta: Annotated[
        float,
        Range(minimum=0),
        Search(0.001, 1, log=True),
        Help("weight of the number of removed edges against the margin"),
    ] = 0.1
    start: Annotated[
        float, Help("value of every parameter at the start; sigmoid(1) = 0.73 as in the paper")
    ] = 1.0
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, frozenset({"max_batch_edges"}))
        check_restarts(self)


class CFGNNExplainer:
    """Explicit answers, removals only, for recommenders with gradients over edges."""

    queries = 1

    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        if self.config.variant == "paper":
            return paper_answers(targets, context, self.config, PaperCFGNNExplainer(self.config.paper))
        return answers(targets, context, self.config, self, "cf-gnnexplainer")

    def start(self, block: Block, noise: Any | None) -> Any:
        """(E,) the same for all edges."""
        import torch

        p = torch.full((len(block.rows),), self.config.start, dtype=torch.float64)
        return p if noise is None else p + self.config.restart_noise * noise

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        """(B,) as above."""
        import torch

        removed = 1 - torch.sigmoid(p)
        margins = block.relative_margins(block.margins(removed))
        prediction = torch.where(inside, margins, 0.0).mean(dim=1)
        return prediction + self.config.beta * block.sums(removed) / block.sizes

    def step(self, p: Any, gradient: Any) -> Any:
        """(E,) downhill."""
        return p - self.config.learning_rate * gradient

    def chosen(self, p: Any) -> Any:
        """(E,) w < 0.5"""
        return p < 0
