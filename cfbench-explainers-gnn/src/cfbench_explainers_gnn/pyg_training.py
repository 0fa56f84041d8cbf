"""Training of modules of PyTorch Geometric with BPR."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.errors import UserError
from cfbench_explainers_gnn.pyg_modules import GraphModule, index_tensors
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.real_arrays import array_of_tensor
from cfbench_recsys.recommenders.training import State


class Options(Protocol):
    """Of a training; those of the recommender ``pyg``."""

    @property
    def learning_rate(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def negatives(self) -> int: ...
    @property
    def batch(self) -> int: ...


def state_of(graph: GraphModule) -> State:
    """Copies of the arrays that a module consists of."""
    return {
        (short := name.removeprefix("module.")): array_of_tensor(tensor, short, f"pyg: {graph.reference}")
        for name, tensor in graph.wrapper.state_dict().items()
    }


class Training:
    """BPR with negatives drawn for a whole batch, the whole graph propagated for each batch."""

    def __init__(
        self,
        graph: GraphModule,
        interactions: scipy.sparse.csr_matrix,
        config: Options,
        random: np.random.Generator,
    ) -> None:
        import torch

        self.torch, self.graph, self.config, self.random = torch, graph, config, random
        self.by_item = interactions.tocsc()
        self.pairs = np.stack(interactions.nonzero()).astype(np.int64)
        self.edges = index_tensors((self.pairs[0], self.pairs[1]))
        parameters = [p for p in graph.wrapper.parameters() if p.requires_grad]
        if not parameters:
            raise UserError(f"pyg: {graph.reference} has no parameters to train; give its weights")
        self.optimizer = torch.optim.Adam(
            parameters, lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def _embeddings(self) -> tuple[Any, Any]:
        dtype = next(self.graph.wrapper.parameters()).dtype
        ones = self.torch.ones(len(self.edges[0]), dtype=dtype)
        users, items = self.graph.embeddings(1, self.torch.zeros_like(self.edges[0]), *self.edges, ones)
        return users[0], items[0]

    def final_embeddings(self) -> tuple[FloatArray, FloatArray]:
        """Those of the users and of the items as they are now, float64."""
        self.graph.wrapper.eval()
        with self.torch.no_grad():
            users, items = self._embeddings()
        return users.double().numpy(), items.double().numpy()

    def epoch(self) -> float:
        """Once over all interactions; the mean loss."""
        from cfbench_recsys.ranking_loss import bpr

        self.graph.wrapper.train()
        total, count = 0.0, self.by_item.shape[1]
        order = self.random.permutation(self.pairs.shape[1])
        for start in range(0, len(order), self.config.batch):
            users, items = self.pairs[:, np.sort(order[start : start + self.config.batch])]
            drawn = self.random.choice(count, size=min(self.config.negatives, count), replace=False)
            seen = self.by_item[:, drawn].tocoo()
            arrays = (users, items, drawn, seen.row, seen.col)
            user, item, negative, *owned = (
                self.torch.from_numpy(np.asarray(array, dtype=np.int64)) for array in arrays
            )
            loss: Any = bpr(*self._embeddings(), user, item, negative, (owned[0], owned[1]))
            if not loss.requires_grad:
                raise UserError(
                    f"pyg: the embeddings of {self.graph.reference} do not depend on its parameters; give its weights"
                )
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += float(loss.detach()) * len(users)
        return total / max(1, len(order))
