"""Explanation algorithms of PyTorch Geometric, as counterfactuals: the strongest edges of their masks are removed.

``algorithm`` names one of ``torch_geometric.explain``. Each gives a number to every edge in scope:

- ``gnnexplainer`` (Ying et al., "GNNExplainer: generating explanations for graph neural networks", NeurIPS 2019): the
  mask that keeps the item in the list with few edges, by Adam for ``epochs`` steps (100, learning rate 0.01).
- ``pgexplainer`` (Luo et al., "Parameterized explainer for graph neural network", NeurIPS 2020): a network from the
  embeddings of an edge's ends, of the user and of the explained items to its mask, trained beforehand on the best
  recommendations of ``training_users`` users who are not explained, in scope indirect, for ``epochs`` (30, learning rate
  0.003), which learns what takes them out of the top ``k``, by removing edges of such users only. A user with at most k
  candidates, where no item can leave the top k, is trained on a list that is one shorter than the candidates. The
  original has the embedding of one explained node, where this has those of the user and of the items.
- ``captum``: attributions of the margin to the weights of edges by Captum, relative to a graph without the edges in
  scope (``attribution: IntegratedGradients``), or at the graph as it is (``Saliency``).
- ``attention``: the attention to an edge, the greater of both directions, of all layers and heads. For a recommender
  ``pyg`` whose module has layers with attention. It does not depend on the explained item.

The answer is the shortest prefix of the edges by descending mask that displaces the most items on the real model, of at
most as many edges as the protocol allows; attributions that are not positive are left out. None: no answer.

The algorithms run on the edges in scope of many units at once (see ``pyg_masks.py``). Departs from PyTorch Geometric,
where a mask multiplies messages after normalisation and differs by direction: the mask is the weight of the edge, in
both directions, and degrees follow it.

Cost: ``epochs`` evaluations with their gradients for gnnexplainer, 50 for IntegratedGradients, one for Saliency, none
for the others; then one query for each prefix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import numpy as np

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.component import not_default
from cfbench_core.errors import UserError
from cfbench_core.specs import Capabilities, ComponentSpec
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks
from cfbench_explainers_gnn.descent import try_prefixes
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/pyg",
    summary="Edge masks of PyTorch Geometric's explanation algorithms, strongest edges removed",
    target=f"{__name__}:PyGExplainer",
    config=f"{__name__}:Config",
    version="3",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove"},
        "pretraining": {"yes"},
    },
    needs={"recommender": {"access": {"gradients", "embeddings"}}},
    papers=("fey2019pyg", "ying2019gnnexplainer", "luo2020pgexplainer"),
    details={"default": False},
)


OF_ALGORITHMS = {
    "epochs": ("gnnexplainer", "pgexplainer"),
    "learning_rate": ("gnnexplainer", "pgexplainer"),
    "edge_size": ("gnnexplainer",),
    "edge_ent": ("gnnexplainer",),
    "attribution": ("captum",),
    "training_users": ("pgexplainer",),
    "k": ("pgexplainer",),
}
"""The algorithms that an option has a meaning for; the other options have one for all."""


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    algorithm: Annotated[
        Literal["gnnexplainer", "pgexplainer", "captum", "attention"], Help("of torch_geometric.explain")
    ] = "gnnexplainer"
    epochs: Annotated[
        int | None, Range(minimum=1), Help("of gnnexplainer and pgexplainer; none: 100 and 30")
    ] = None
    learning_rate: Annotated[
        float | None, Range(above=0), Search(0.001, 0.5, log=True), Help("of Adam; none: 0.01 and 0.003")
    ] = None
    edge_size: Annotated[float, Range(minimum=0), Help("gnnexplainer: weight of the sum of the masks")] = (
        0.005
    )
    edge_ent: Annotated[float, Range(minimum=0), Help("gnnexplainer: weight of their mean entropy")] = 1.0
    attribution: Annotated[
        Literal["IntegratedGradients", "Saliency"], Help("captum: the method of attribution")
    ] = "IntegratedGradients"
    training_users: Annotated[int, Range(minimum=1), Help("pgexplainer: users to train on, at most")] = 32
    k: Annotated[
        int, Range(minimum=1), Help("pgexplainer: training takes the best item out of the top k")
    ] = 5

    def __post_init__(self) -> None:
        """Refuses options of other algorithms, so that no row carries a setting without effect."""
        for name in not_default(self):
            algorithms = OF_ALGORITHMS.get(name)
            if algorithms and self.algorithm not in algorithms:
                raise UserError(
                    f"{name}: is an option of algorithm {' or '.join(algorithms)}, and the algorithm is "
                    f"{self.algorithm}"
                )

    @property
    def needs(self) -> Mapping[str, Capabilities]:
        """Attention is that of the layers of a module; only the recommender ``pyg`` has one."""
        return {"recommender": {"access": frozenset({"module"})}} if self.algorithm == "attention" else {}


class PyGExplainer:
    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, context: Context) -> dict[str, np.ndarray]:
        """The weights of PGExplainer; nothing for the other algorithms."""
        if self.config.algorithm != "pgexplainer":
            return {}
        from cfbench_explainers_gnn.pyg_masks import trained_pg_explainer

        random = context.generator("pyg", "pgexplainer")
        learned = context.training.multiply(context.interactions).tocsr()
        learned.eliminate_zeros()
        history = np.diff(learned.indptr)
        useful = (history > 1) & (learned.shape[1] - history > 1)  # one candidate alone cannot leave the list
        users = np.sort(random.permutation(np.flatnonzero(useful))[: self.config.training_users])
        blocks = self._training_blocks(users, dataclasses.replace(context, interactions=learned))
        if not blocks:
            raise UserError(_nothing_to_train_on(history, useful))
        return trained_pg_explainer(
            blocks,
            _embeddings(context),
            self.config.epochs or 30,
            self.config.learning_rate or 0.003,
            int(random.integers(2**31)),
        )

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        return in_blocks(targets, context, self.config, self._explain)

    def _explain(self, block: Block) -> Answer:
        from cfbench_explainers_gnn.pyg_masks import on_grid

        best = BestAnswers(block)
        part = block.take(np.flatnonzero(~best.finished()))
        strength = np.full(len(block.possible.rows), -np.inf)
        if len(part):
            found = self._strength(part, best)
            strength[part.edges] = on_grid(found, part)
        try_prefixes(best, strength)
        return best.answer()

    def _strength(self, part: Block, best: BestAnswers) -> FloatArray:
        """(E of ``part``,) the mask of the algorithm; -inf for what should not be removed."""
        from cfbench_explainers_gnn import pyg_masks

        match self.config.algorithm:
            case "gnnexplainer":
                epochs = self.config.epochs or 100
                best.queries[part.units] += epochs
                coefficients = {"edge_size": self.config.edge_size, "edge_ent": self.config.edge_ent}
                return pyg_masks.gnn_explainer(part, epochs, self.config.learning_rate or 0.01, coefficients)
            case "pgexplainer":
                state = part.context.state
                if not state:
                    raise UserError("pyg: pgexplainer was not trained: its state is missing")
                return pyg_masks.pg_explainer(part, _embeddings(part.context), state)
            case "captum":
                best.queries[part.units] += 1 if self.config.attribution == "Saliency" else 50
                found = pyg_masks.captum_explainer(part, self.config.attribution)
                return np.where(found > 0, found, -np.inf)
            case "attention":
                return _attention(part)

    def _training_blocks(self, users: np.ndarray, context: Context) -> list[Block]:
        """The best recommendation of each user, where edges are in scope: those of ``context.interactions``."""
        graph = context.interactions
        candidates = graph.shape[1] - np.diff(graph.indptr)
        blocks = []
        for user in users:
            k = min(self.config.k, int(candidates[user]) - 1)
            one = Targets.of(graph, user[None], np.zeros((1, 1), dtype=np.int64), k, "item", "indirect")
            scores = context.graph_model.score_edits(Edits.nothing(one.users))
            one = dataclasses.replace(one, items=top_k(scores, one.history, one.padding, 1))
            possible = possible_edits(one, context)
            if len(possible.rows):
                blocks.append(Block(one, possible, context))
        return blocks


def _nothing_to_train_on(history: np.ndarray, useful: np.ndarray) -> str:
    """Why PGExplainer has no users: ``history`` (users,) counts interactions of users who are not explained."""
    others = int(np.count_nonzero(history))
    if not others:
        reason = "all users with interactions are explained"
    elif not useful.any():
        reason = f"each of the {others} others has only one interaction, or fewer than two items that can be recommended"
    else:
        reason = "no edge of the others is in scope indirect of one of their best recommendations"
    return f"pyg: pgexplainer has no users to be trained on: {reason}"


def _embeddings(context: Context) -> tuple[FloatArray, FloatArray]:
    model = context.graph_embedding_model
    return model.user_embeddings(), model.item_embeddings()


def _attention(part: Block) -> FloatArray:
    """(E,) the attention to each possible edit, the greater of both directions."""
    from cfbench_explainers_gnn.pyg_masks import attention_explainer

    model = cast("Any", part.context.model)  # in a run it counts queries: no instance of the class PyG
    if not hasattr(model, "explained_module"):
        raise UserError("pyg: algorithm attention explains the recommender pyg only")
    module, edge_index, weights = model.explained_module()
    directed = attention_explainer(module, edge_index, weights, model.config.factory)
    count, width = len(directed) // 2, part.context.interactions.shape[1]
    undirected = np.maximum(directed[:count], directed[count:])
    users, items = edge_index[:, :count].cpu().numpy()
    keys = users * width + items - part.context.interactions.shape[0]
    found: FloatArray = undirected[
        np.searchsorted(keys, part.possible.edge_users * width + part.possible.edge_items)
    ]
    return found
