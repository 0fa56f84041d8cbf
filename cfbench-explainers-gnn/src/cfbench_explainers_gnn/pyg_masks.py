"""Edge masks of PyTorch Geometric's explanation algorithms, for the units of a block in one call.

The algorithms of ``torch_geometric.explain`` explain a torch module by masks on the edges of its message passing. Here
the module is the recommender with the possible edits of a block as its edges: the mask of an edge in [0, 1] is the
weight that the edge keeps, so degrees and their gradients follow it, for every recommender with gradients. The graph is
the disjoint union of the units' edges in scope; each interaction is one edge with one mask, where PyTorch Geometric
masks both directions apart. Since units share no edge, a sum over units explains all of them at once, each as if alone.

The output is, for each explained item i of a unit, margin(i) / the mean size of the unit's margins at the untouched
graph: its sigmoid takes the place of the probability of the predicted class, "i is in the list".
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_explainers_gnn.blocks import Block
from cfbench_recsys.edits import FloatArray, IntArray

SMALLEST_STEP = 1e-6
"""Strengths are compared in these units of a unit's largest, so that rounding noise does not order edges."""


def gnn_explainer(
    block: Block, epochs: int, learning_rate: float, coefficients: Mapping[str, float]
) -> FloatArray:
    """(E,) the masks that GNNExplainer learns, in [0, 1]: one descent by Adam for all units.

    The objective is the sum over units of PyTorch Geometric's for one graph: the cross entropy of "in the list",
    ``edge_size`` times the sum of the masks, ``edge_ent`` times the mean of their entropies. Masks start at normal noise
    of PyTorch Geometric's width, from each unit's own random stream.
    """
    mask: FloatArray = _explained(
        block, _gnn_explainer()(block, epochs, learning_rate, coefficients), "binary_classification", "model"
    )
    return mask


def captum_explainer(block: Block, method: str) -> FloatArray:
    """(E,) attributions of the margins to the weights of edges by ``method``, one of Captum's, relative to no edges.

    Raises:
        UserError: if Captum is not installed.
    """
    from torch_geometric.explain import CaptumExplainer  # type: ignore[import-untyped]

    options = {"abs": False} if method == "Saliency" else {}
    try:
        algorithm = CaptumExplainer(method, **options)
    except ImportError as error:
        raise UserError(
            "pyg: algorithm captum needs Captum: pip install 'cfbench-explainers-gnn[captum]'"
        ) from error
    mask: FloatArray = _explained(block, algorithm, "regression", "model", readout=_sum_of_means)
    return mask


def pg_explainer(
    block: Block, embeddings: tuple[FloatArray, FloatArray], state: Mapping[str, np.ndarray]
) -> FloatArray:
    """(E,) the masks of a PGExplainer with the weights ``state``, in [0, 1]; ``embeddings`` of users and items."""
    import torch
    from torch_geometric.explain import PGExplainer

    algorithm = PGExplainer(epochs=1)
    algorithm.mlp.load_state_dict({name: torch.as_tensor(np.array(array)) for name, array in state.items()})
    algorithm.mlp.double()
    algorithm._curr_epoch = 0  # it refuses to explain before its training, which was elsewhere
    features = _features(block, embeddings).double()
    mask: FloatArray = _explained(block, algorithm, "binary_classification", "phenomenon", features)
    return mask


def trained_pg_explainer(
    blocks: list[Block],
    embeddings: tuple[FloatArray, FloatArray],
    epochs: int,
    learning_rate: float,
    seed: int,
) -> dict[str, np.ndarray]:
    """The weights of a PGExplainer trained on ``blocks`` of one unit each, in turn, for ``epochs``."""
    import torch
    from torch_geometric.explain import Explainer, PGExplainer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # it draws its weights and its samples
        algorithm = PGExplainer(epochs=epochs, lr=learning_rate)
        given = []
        for block in blocks:
            model = _model(block, _margins)
            features, edge_index = _features(block, embeddings), _edge_index(block)[0]
            given.append((model, features, edge_index, torch.ones(block.targets.items.shape)))
            Explainer(
                model, algorithm, "phenomenon", _config("binary_classification"), edge_mask_type="object"
            )  # tells the algorithm what it explains
        for epoch in range(epochs):
            for model, features, edge_index, target in given:
                with warnings.catch_warnings():  # it converts its loss, from which nothing is derived then
                    warnings.filterwarnings(
                        "ignore", "Converting a tensor with requires_grad=True", UserWarning
                    )
                    algorithm.train(epoch, model, features, edge_index, target=target)
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in algorithm.mlp.state_dict().items()}


def attention_explainer(module: Any, edge_index: Any, weights: Any, name: str) -> FloatArray:
    """(2E,) the attention of ``module`` to each directed edge, the greatest of layers and heads.

    Raises:
        UserError: if it has no layers with attention, or one of them gets other edges, or these in another order.
    """
    import torch
    from torch_geometric.explain import AttentionExplainer, Explainer
    from torch_geometric.nn import MessagePassing  # type: ignore[import-untyped]

    class WithoutFeatures(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.module(edge_index, weights)

    passed: dict[Any, Any] = {}
    elsewhere: list[str] = []

    def note(layer: Any, given: Any) -> None:
        passed[layer] = given[0]

    def compare(layer: Any, given: Any, messages: Any) -> None:
        """PyTorch Geometric takes the attention to the first edges of a layer as that to the edges of the module."""
        if "alpha" in given[0] or getattr(layer, "_alpha", None) is not None:
            own = passed[layer]
            if not isinstance(own, torch.Tensor) or not torch.equal(
                own[:, : edge_index.shape[1]], edge_index
            ):
                elsewhere.append(type(layer).__name__)

    layers = [part for part in module.modules() if isinstance(part, MessagePassing)]
    hooks = [layer.register_propagate_forward_pre_hook(note) for layer in layers]
    hooks += [layer.register_message_forward_hook(compare) for layer in layers]
    config = {"mode": "regression", "task_level": "graph", "return_type": "raw"}
    # Explainer gives the module inside the mode that the wrapper had before: training, without eval().
    wrapper = WithoutFeatures().eval()
    explainer = Explainer(wrapper, AttentionExplainer(), "model", config, edge_mask_type="object")
    try:
        explanation = explainer(torch.zeros(int(edge_index.max()) + 1, 1), edge_index)
    except ValueError as error:
        if not elsewhere:
            raise UserError(
                f"pyg: {name}: no layer has attention, so there is nothing to explain by it"
            ) from error
    finally:
        for hook in hooks:
            hook.remove()
    if elsewhere:
        raise UserError(
            f"pyg: {name}: its layer {elsewhere[0]} gets other edges than the module, or in another order, so its attention "
            "cannot be assigned to interactions; pass edge_index on as it is"
        )
    found: FloatArray = explanation.edge_mask.double().cpu().numpy()
    return found


def on_grid(strength: FloatArray, block: Block) -> FloatArray:
    """(E,) ``strength`` in units of each unit's largest, in whole multiples of ``SMALLEST_STEP``."""
    largest = np.zeros(len(block))
    finite = np.isfinite(strength)
    np.maximum.at(largest, block.possible.rows[finite], np.abs(strength[finite]))
    scale = np.maximum(largest, 1e-300)[block.possible.rows]
    rounded: FloatArray = np.where(
        finite, np.rint(np.where(finite, strength, 0.0) / scale / SMALLEST_STEP), strength
    )
    return rounded


def _explained(
    block: Block,
    algorithm: Any,
    mode: str,
    explanation_type: str,
    features: Any = None,
    readout: Callable[[Block, Any], Any] | None = None,
) -> FloatArray:
    import torch
    from torch_geometric.explain import Explainer

    edge_index, nodes = _edge_index(block)
    x = torch.zeros((nodes, 1), dtype=torch.float64) if features is None else features
    model = _model(block, readout or _margins)
    explainer = Explainer(model, algorithm, explanation_type, _config(mode), edge_mask_type="object")
    target = torch.ones(block.targets.items.shape) if explanation_type == "phenomenon" else None
    found: FloatArray = explainer(x, edge_index, target=target).edge_mask.detach().double().cpu().numpy()
    return found


def _config(mode: str) -> dict[str, str]:
    return {"mode": mode, "task_level": "graph", "return_type": "raw"}


def _margins(block: Block, made: Any) -> Any:
    """(B, T) relative margins."""
    return block.relative_margins(block.margins(made))


def _sum_of_means(block: Block, made: Any) -> Any:
    """(1,) the sum over units of their mean margins."""
    return _margins(block, made).sum(dim=1).sum().reshape(1)


def _edge_index(block: Block) -> tuple[Any, int]:
    """(2, E) the edges of the union, users to items, and its number of nodes."""
    import torch

    keys, _ = _nodes(block)
    nodes, places = np.unique(keys, return_inverse=True)
    return torch.as_tensor(places.reshape(2, -1).astype(np.int64)), len(nodes)


def _nodes(block: Block) -> tuple[IntArray, int]:
    """(2, E) numbers of both ends of each edge, different for each unit; and how many a unit may have."""
    possible, (users, items) = block.possible, block.context.interactions.shape
    first = possible.rows * (users + items)
    return np.stack([first + possible.edge_users, first + users + possible.edge_items]), users + items


def _features(block: Block, embeddings: tuple[FloatArray, FloatArray]) -> Any:
    """(nodes, 3 d) float32: the embeddings of each node, of its unit's user, and the mean of the explained items'."""
    import torch

    keys, size = _nodes(block)
    nodes = np.unique(keys)
    users, items = embeddings
    unit, node = nodes // size, nodes % size
    real = block.targets.items >= 0
    explained = (items[np.maximum(block.targets.items, 0)] * real[:, :, None]).sum(axis=1) / real.sum(axis=1)[
        :, None
    ]
    parts = [np.concatenate([users, items])[node], users[block.targets.users][unit], explained[unit]]
    return torch.as_tensor(np.hstack(parts).astype(np.float32))


def _model(block: Block, readout: Callable[[Block, Any], Any]) -> Any:
    """A module (x, edge_index) -> ``readout`` of the block under the edge mask that an algorithm sets on its layer."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = _mask_layer()()

        def forward(self, x: Any, edge_index: Any) -> Any:
            _, weights = self.layer(x, edge_index)
            return readout(block, 1.0 - weights)

    return Model()


@functools.cache
def _mask_layer() -> Any:
    """The class of a layer that passes x through and returns the mask of each edge: 1 where none is set."""
    from torch_geometric.nn import MessagePassing

    class EdgeMask(MessagePassing):  # type: ignore[misc]
        def forward(self, x: Any, edge_index: Any) -> Any:
            ones = x.new_ones((edge_index.shape[1], 1)).double()
            return x, self.propagate(edge_index, ones=ones, size=(len(x), len(x)))[:, 0]

        def message(self, ones: Any) -> Any:
            return ones

        def aggregate(self, inputs: Any) -> Any:
            return inputs

    return EdgeMask


@functools.cache
def _gnn_explainer() -> Any:
    """The class of PyTorch Geometric's GNNExplainer for the units of a block."""
    import torch
    from torch_geometric.explain import GNNExplainer

    class UnitsGNNExplainer(GNNExplainer):  # type: ignore[misc]
        def __init__(
            self, block: Block, epochs: int, learning_rate: float, coefficients: Mapping[str, float]
        ) -> None:
            super().__init__(epochs=epochs, lr=learning_rate, **coefficients)
            self.block = block

        def _initialize_masks(self, x: Any, edge_index: Any) -> None:
            keys, size = _nodes(self.block)
            nodes = np.bincount(np.unique(keys) // size, minlength=len(self.block))
            width = torch.nn.init.calculate_gain("relu") * (1.0 / np.maximum(nodes, 1)) ** 0.5
            noise = self.block.noise("pyg", "gnnexplainer")
            self.node_mask = self.hard_node_mask = None
            self.hard_edge_mask: Any = None
            self.edge_mask = torch.nn.Parameter(noise * torch.as_tensor(width)[self.block.rows])

        def _loss(self, y_hat: Any, y: Any) -> Any:
            real = torch.as_tensor(self.block.targets.items >= 0)
            entropy = torch.where(real, torch.nn.functional.softplus(-y_hat), 0.0).sum(dim=1) / real.sum(
                dim=1
            )
            if self.hard_edge_mask is None:
                return entropy.sum()
            m = self.edge_mask.sigmoid()
            eps = self.coeffs["EPS"]
            uncertain = -m * torch.log(m + eps) - (1 - m) * torch.log(1 - m + eps)
            counted = self.hard_edge_mask.double()
            means = self.block.sums(uncertain * counted) / self.block.sums(counted).clamp(min=1)
            size = self.block.sums(m * counted)
            return (entropy + self.coeffs["edge_size"] * size + self.coeffs["edge_ent"] * means).sum()

    return UnitsGNNExplainer
