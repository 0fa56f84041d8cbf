"""CLEAR: a graph variational autoencoder that writes counterfactual graphs, trained once, on other users.

Ma et al., "CLEAR: generative counterfactual explanations on graphs", NeurIPS 2022; adapted to recommendation as
in CFExpRec, sec. 3.4.2. For a unit (user u, targets T; r the item at rank K + 1) with the edges e in scope, each
described by numbers x_e (below), and auxiliary variables a:

    encoder   q(z | G, a) = N(m, diag s^2),     (m, log s^2) from a and the mean over e of tanh(x_e W + b)
    prior     p(z | a)    = N(m', diag s'^2),   (m', log s'^2) linear in a
    decoder   edge e is removed with probability p_e = sigmoid(v . tanh(x_e W' + (z, a) V + b') + b'' - log E)
    loss      hinge  +  beta / sqrt(E) * sum over e of -log(1 - p_e)  +  kl * KL(q || p)

hinge is the mean over i in T of max(0, margin(i) + slack) in units of the first margin, margin(i) = s_i - (the
K-th best other candidate's score), evaluated on the recommender itself when each edge is removed by the fraction p_e,
degrees included. The second term is the reconstruction of the graph: all edges in scope exist. z is sampled while
learning, and is its mean m in explaining.

By -log E training starts with about one removal, however large the scope. By the square root one ``beta`` serves
scopes of 3 and of 10**5 edges: the plain sum forbids all removals where each edge does little (seen on ML-1M with a
weight of 0.02: training left an arbitrary order of edges, and none of 50 units was explained); in the mean, what
flips a large graph would weigh nothing. With the default, training on ML-1M still makes removals unlikely without
lowering the hinge, but the order that it leaves is as good as with a tenth of ``beta``, which lowers it.

Auxiliary variables: how far the targets stand above r, in standard deviations of the user's scores, and the
logarithms of the degrees of the targets and of the user. They say how much must be undone, and what one edge
weighs on either side (1/sqrt(degree)), so they distinguish units that need few edges from units that need many; the
recommender and the graph give them, before any edit. (Drawn at random they would not inform the prior.)

x_e, for e = (v, j), with F the recommender's final embeddings, D degrees, w = 1/sqrt(D_v D_j), p the walks of up
to 2 steps from u, q those from the targets less those from r, g = mean of F_i over T - F_r:

    p_v w F_j.g,  p_j w F_v.g,  q_v w F_j.F_u,  q_j w F_v.F_u          paths over e
    p_v F_v.g / D_v,  p_j F_j.g / D_j,  q_v F_v.F_u / D_v,  q_j F_j.F_u / D_j    what e's share in degrees costs

in units of the largest of the unit, and their signed square roots; whether v is u, whether j is in T, log D_v and
log D_j. They are a graph convolution's terms, in the recommender's own embeddings: O(edges in scope) in memory.

This is ``variant: cfbench``; ``variant: paper`` is the method as published, see ``clear_paper.py``.

Departures from the paper: it decodes a dense (nodes, nodes) matrix and matches graphs, which is what runs out of
memory on ML-1M; here only edges in scope can go, one number for each, and features and additions are left out.
The encoder's convolution is the recommender's. The desired label is always "has left", so it is no input.
The answer is not the edges with p_e > 1/2 but, in the order of p_e, the shortest prefix that was seen to succeed
on the edited graph: lengths 1, 2, 4, ... up to the protocol's number of edits, then bisection. At list level it displaces
most items first. As that is not monotone in the length, a shorter one may exist.

Learns from edges and targets of users who are not explained; degrees, walks and scores are those of the graph
that the recommender scores. Cost: log2(n) + 1 queries where nothing succeeds, at most twice as many
otherwise, none with gradients. Training: one evaluation with its gradient for each unit of a batch and step.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks, places, units_at_once
from cfbench_explainers_gnn.clear_paper import PaperOptions, paper_answer, prepare_paper
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_explainers_gnn.training_lists import training_lists
from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.targets import Answer, Context, Targets

if TYPE_CHECKING:
    import torch

SPEC = ComponentSpec(
    id="recsys/explainer/clear",
    summary="A graph autoencoder, trained on other users, that predicts in one pass which edges to remove",
    target=f"{__name__}:CLEAR",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove"},
        "pretraining": {"yes"},
    },
    needs={"recommender": {"access": {"gradients", "embeddings"}}},
    papers=("ma2022clear",),
    presets="cfbench_explainers_gnn:presets/clear.yaml",
    details={"default": False},
)

FEATURES, AUXILIARIES = 20, 3
GRID = 2.0**20
"""Logits are rounded to its inverse, so that edges that are equal on paper tie."""


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    variant: Annotated[
        Variant,
        Help("cfbench: a decoder over the edges in scope; paper: over an adjacency matrix, as published"),
    ] = "cfbench"
    training_scope: Annotated[
        Literal["user-only", "indirect", "k-hop", "full"], Help("in which training removes edges")
    ] = "k-hop"
    k: Annotated[int, Range(minimum=1), Help("training takes targets from the top k")] = 5
    steps: Annotated[int, Range(minimum=1), Help("of training")] = 200
    batch: Annotated[int, Range(minimum=1), Help("units in a step of training")] = 32
    batch_edges: Annotated[
        int, Range(minimum=1), Help("edges in scope in a step, which bounds memory; at least one unit's")
    ] = 200_000
    learning_rate: Annotated[float, Range(above=0), Search(0.001, 0.05, log=True), Help("of Adam")] = 0.01
    hidden: Annotated[int, Range(minimum=1), Help("units of the hidden layers")] = 16
    latent: Annotated[int, Range(minimum=1), Help("length of z")] = 4
    beta: Annotated[
        float, Range(minimum=0), Search(0.001, 1, log=True), Help("weight of the penalty on edits")
    ] = 0.2
    kl: Annotated[float, Range(minimum=0), Help("weight of the divergence from the prior")] = 0.01
    slack: Annotated[
        float, Range(minimum=0), Help("how far below the K-th place the target is pushed, in logits")
    ] = 0.1
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, frozenset({"max_batch_edges"}))


class CLEAR:
    """Explicit answers, removals only, for recommenders with gradients over edges, and embeddings."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, context: Context) -> dict[str, np.ndarray]:
        """The network, and ``losses`` (steps, 3): hinge, reconstruction and KL of each step, means over units."""
        if self.config.variant == "paper":
            return prepare_paper(context, self.config.paper)
        import torch

        config, random = self.config, context.generator("clear", "fit")
        learned = context.training.multiply(context.interactions).tocsr()
        learned.eliminate_zeros()
        around = Surroundings(context)
        users, lists = training_lists(around.user_vectors, around.item_vectors, learned, config.k)
        if not len(users):
            raise UserError("clear: there are no users to train on: all users are explained")
        network = {
            name: torch.as_tensor(array).requires_grad_() for name, array in self._initial(random).items()
        }
        optimizer = torch.optim.Adam(list(network.values()), lr=config.learning_rate)
        losses = np.empty((config.steps, 3))
        for step in range(config.steps):
            drawn = random.integers(len(users), size=min(config.batch, len(users)))
            places = random.integers(np.count_nonzero(lists[drawn] >= 0, axis=1))
            items = lists[drawn] if step % 2 else lists[drawn, places][:, None]
            level: Literal["item", "list"] = "list" if step % 2 else "item"
            targets = Targets.of(learned, users[drawn], items, config.k, level, config.training_scope)
            block = self._lesson(targets, dataclasses.replace(context, interactions=learned))
            noise = random.standard_normal((len(targets), config.latent))[: len(block)]
            terms = loss_terms(network, block, around, torch.as_tensor(noise), config.slack)
            loss = terms[0] + config.beta * terms[1] + config.kl * terms[2]
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.step()
            losses[step] = [float(term.detach().mean()) for term in terms]
            if not np.isfinite(losses[step]).all():
                raise UserError(f"clear: training diverged in step {step}; try a smaller learning_rate")
        return {
            **{name: tensor.detach().cpu().numpy().copy() for name, tensor in network.items()},
            "losses": losses,
        }

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        if self.config.variant == "paper":
            return in_blocks(
                targets, context, self.config, lambda block: paper_answer(block, self.config.paper)
            )
        import torch

        assert context.state is not None, "what prepare gave"
        network = {name: torch.as_tensor(array) for name, array in context.state.items()}
        around = Surroundings(context)

        def explain(block: Block) -> Answer:
            logits = removal_logits(network, block, around)
            place = places(logits, block.possible)
            first = place < block.targets.budget  # the others are in no prefix that is tried
            best = BestAnswers(Block(block.targets, block.possible.where(first), context))
            _shortest_prefixes(best, place[first])
            return best.answer()

        return in_blocks(targets, context, self.config, explain)

    def _lesson(self, targets: Targets, context: Context) -> Block:
        """The first units, as many as fit into a step."""
        width = units_at_once(context)
        possible = possible_edits(targets.take(slice(width)), context)
        fits = np.cumsum(possible.counts()) <= self.config.batch_edges
        count = max(1, int(np.count_nonzero(fits)))
        return Block(targets.take(slice(count)), possible.take(0, count), context)

    def _initial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Parameters to start from."""
        hidden, latent = self.config.hidden, self.config.latent
        shapes = {
            "encoder": (FEATURES, hidden),
            "posterior": (hidden + AUXILIARIES, 2 * latent),
            "prior": (AUXILIARIES, 2 * latent),
            "edges": (FEATURES, hidden),
            "unit": (latent + AUXILIARIES, hidden),
            "output": (hidden, 1),
        }
        found = {}
        for name, shape in shapes.items():
            found[f"{name}.weight"] = random.standard_normal(shape) / math.sqrt(shape[0])
            found[f"{name}.bias"] = np.zeros(shape[1])
        return found


class Surroundings:
    """What the graph and the recommender's embeddings say about edges and units, before any edit."""

    def __init__(self, context: Context) -> None:
        graph = context.interactions
        self.user_vectors: FloatArray = np.asarray(
            context.graph_embedding_model.user_embeddings(), dtype=np.float64
        )
        self.item_vectors: FloatArray = np.asarray(
            context.graph_embedding_model.item_embeddings(), dtype=np.float64
        )
        rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        self.user_degrees = np.maximum(np.bincount(rows, minlength=graph.shape[0]), 1.0)
        self.item_degrees = np.maximum(np.bincount(graph.indices, minlength=graph.shape[1]), 1.0)
        weights = 1.0 / np.sqrt(self.user_degrees[rows] * self.item_degrees[graph.indices])
        self.to_users = scipy.sparse.csr_matrix((weights, graph.indices, graph.indptr), shape=graph.shape)
        self.to_items = self.to_users.T.tocsr()

    def describe(self, targets: Targets, possible: Edits) -> tuple[FloatArray, FloatArray]:
        """(E, FEATURES) x_e of each edge, and (B, AUXILIARIES) of each unit."""
        units = np.arange(len(targets))
        wanted = np.zeros((self.to_users.shape[1], len(targets)))  # 1/|T| at the targets
        rows, places = np.nonzero(targets.items >= 0)
        np.add.at(wanted, (targets.items[rows, places], rows), 1.0)
        wanted /= np.maximum(wanted.sum(axis=0), 1.0)
        own = self.user_vectors[targets.users]
        scores = self.item_vectors @ own.T  # (items, B)
        rival = self._rivals(targets, scores)
        against = wanted.copy()
        against[rival, units] -= 1.0

        started = np.zeros((self.to_users.shape[0], len(targets)))
        started[targets.users, units] = 1.0
        near_items = self.to_items @ started
        near_users = started + self.to_users @ near_items
        against_users = self.to_users @ against
        against_items = against + self.to_items @ against_users
        gap = against.T @ self.item_vectors  # (B, d) g

        v, j, e = possible.edge_users, possible.edge_items, possible.rows
        by_gap_user, by_gap_item = (self.user_vectors @ gap.T)[v, e], (self.item_vectors @ gap.T)[j, e]
        by_own_user, by_own_item = (self.user_vectors @ own.T)[v, e], scores[j, e]
        p_v, p_j, q_v, q_j = near_users[v, e], near_items[j, e], against_users[v, e], against_items[j, e]
        degree_v, degree_j = self.user_degrees[v], self.item_degrees[j]
        weight = 1.0 / np.sqrt(degree_v * degree_j)
        terms = np.stack(
            [
                p_v * weight * by_gap_item,
                p_j * weight * by_gap_user,
                q_v * weight * by_own_item,
                q_j * weight * by_own_user,
                p_v * by_gap_user / degree_v,
                p_j * by_gap_item / degree_j,
                q_v * by_own_user / degree_v,
                q_j * by_own_item / degree_j,
            ],
            axis=1,
        )
        terms /= _largest(np.abs(terms).max(axis=1, initial=0.0), e, len(targets))[e, None]
        roots = np.sign(terms) * np.sqrt(np.abs(terms))
        flags = [v == targets.users[e], wanted[j, e] > 0, np.log(degree_v) / 4, np.log(degree_j) / 4]
        about_edges = np.concatenate([terms, roots, np.stack(flags, axis=1).astype(np.float64)], axis=1)

        above = (against * scores).sum(axis=0) / np.maximum(scores.std(axis=0), 1e-12)
        about_units = [
            above,
            np.log(self.item_degrees @ wanted + 1.0) / 4,
            np.log(self.user_degrees[targets.users]) / 4,
        ]
        return about_edges, np.stack(about_units, axis=1)

    def _rivals(self, targets: Targets, scores: FloatArray) -> IntArray:
        """(B,) the item at rank K + 1, or the last of a shorter ranking."""
        ranked = top_k(np.ascontiguousarray(scores.T), *targets.seen, targets.k + 1)
        last = np.maximum(np.count_nonzero(ranked >= 0, axis=1) - 1, 0)
        rivals: IntArray = np.maximum(ranked[np.arange(len(targets)), last], 0)
        return rivals


def _largest(values: FloatArray, rows: IntArray, count: int) -> FloatArray:
    """(count,) the largest of each row's values, rows non-decreasing; 1 where it is 0, or there is none."""
    largest = np.zeros(count)
    np.maximum.at(largest, rows, values)
    return np.where(largest > 0, largest, 1.0)


Network = Mapping[str, "torch.Tensor"]


def _linear(network: Network, name: str, x: Any) -> Any:
    return x @ network[f"{name}.weight"] + network[f"{name}.bias"]


def _encode(network: Network, block: Block, x: Any, auxiliaries: Any) -> tuple[Any, Any]:
    """(B, latent) mean of z, and the logarithm of its variance."""
    import torch

    hidden = torch.tanh(_linear(network, "encoder", x))
    pooled = torch.zeros(len(block), hidden.shape[1], dtype=x.dtype).index_add(0, block.rows, hidden)
    pooled = pooled / block.sizes.clamp(min=1)[:, None]
    mean, log_variance = _linear(network, "posterior", torch.cat([pooled, auxiliaries], dim=1)).chunk(
        2, dim=1
    )
    return mean, log_variance.clamp(-10, 10)


def _decode(network: Network, block: Block, x: Any, auxiliaries: Any, z: Any) -> Any:
    """(E,) logits of removal."""
    import torch

    of_unit = _linear(network, "unit", torch.cat([z, auxiliaries], dim=1))
    of_edge = _linear(network, "output", torch.tanh(_linear(network, "edges", x) + of_unit[block.rows]))[:, 0]
    return of_edge - torch.log(block.sizes.to(x.dtype))[block.rows]


def _described(block: Block, around: Surroundings) -> tuple[Any, Any]:
    import torch

    x, auxiliaries = around.describe(block.targets, block.possible)
    return torch.as_tensor(x), torch.as_tensor(auxiliaries)


def loss_terms(
    network: Network, block: Block, around: Surroundings, noise: Any, slack: float
) -> tuple[Any, Any, Any]:
    """(B,) hinge, reconstruction and KL, with z = m + s * ``noise`` (B, latent)."""
    import torch
    from torch.nn.functional import softplus

    x, auxiliaries = _described(block, around)
    mean, log_variance = _encode(network, block, x, auxiliaries)
    z = mean + torch.exp(log_variance / 2) * noise
    logits = _decode(network, block, x, auxiliaries, z)
    hinge = block.relative_hinge(block.margins(torch.sigmoid(logits)), slack)
    prior_mean, prior_log_variance = _linear(network, "prior", auxiliaries).chunk(2, dim=1)
    prior_log_variance = prior_log_variance.clamp(-10, 10)
    apart = ((mean - prior_mean) ** 2 + torch.exp(log_variance)) / torch.exp(prior_log_variance)
    divergence = (prior_log_variance - log_variance + apart - 1).sum(dim=1) / 2
    retained = block.sums(softplus(logits)) / block.sizes.clamp(min=1).sqrt()
    return hinge, retained, divergence


def removal_logits(network: Network, block: Block, around: Surroundings) -> FloatArray:
    """(E,) how likely each edge in scope is to be removed, at the mean of z.

    One unit after the other: dense products and sums over columns add in an order that depends on the number of units and
    edges, so this is what makes the numbers of a unit independent, bit by bit, of the rest of the block.
    """
    import torch

    found = [np.empty(0)]
    with torch.no_grad():
        for unit in range(len(block)):
            one = slice(unit, unit + 1)
            alone = Block(block.targets.take(one), block.possible.take(unit, unit + 1), block.context)
            # copies, for PyTorch aligns its own memory
            x, auxiliaries = (part.clone() for part in _described(alone, around))
            mean, _ = _encode(network, alone, x, auxiliaries)
            found.append(_decode(network, alone, x, auxiliaries, mean).cpu().numpy())
    return np.round(np.concatenate(found) * GRID) / GRID


def _shortest_prefixes(best: BestAnswers, place: IntArray) -> None:
    """Tests prefixes of each unit's edges, ``place`` (E,) being their order: 1, 2, 4, ..., all, then between."""
    block = best.block
    most = block.possible.counts()
    tried, failed = np.zeros(len(block), dtype=np.int64), np.zeros(len(block), dtype=np.int64)

    def test(units: IntArray, lengths: IntArray) -> IntArray:
        part = block.take(units)
        return best.test(part, place[part.edges] < lengths[part.possible.rows], 0)

    while (units := np.flatnonzero((best.displaced < best.wanted) & (tried < most))).size:
        lengths = np.minimum(np.maximum(2 * tried[units], 1), most[units])
        before = best.displaced[units]
        better = test(units, lengths) > before
        failed[units[better]] = tried[units[better]]
        tried[units] = lengths
    # from here on, ``failed`` is too short for what ``best.displaced`` says, and ``best.size`` is enough
    while (units := np.flatnonzero((best.displaced > 0) & (best.size - failed > 1))).size:
        lengths = (failed[units] + best.size[units]) // 2
        goal = best.displaced[units]
        short = test(units, lengths) < goal
        failed[units[short]] = lengths[short]
