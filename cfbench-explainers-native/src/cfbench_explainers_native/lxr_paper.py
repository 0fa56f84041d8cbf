"""LXR as published: what differs from ``variant: cfbench`` in the initial weights, the loss and the selected epoch.

Barkan et al., "A counterfactual framework for learning and evaluating explanations for recommender systems", WWW 2024;
Gurevitch et al., "LXR: learning to explain recommendations", ACM TORS 2025; the authors' code (repository
DeltaLabTLV/LXR, commit 5b309d3: LXR_training.ipynb, "LXR configurations.txt"). The network is that of ``lxr.py``. With y
the *first* recommendation of a user, f the value that the recommender gives to an item, and B the users of a batch,

    loss = -lambda_pos mean_B log f(x * m)_y + lambda_neg mean_B log f(x * (1 - m))_y + alpha mean of all masks m_i in B

- Start: PyTorch's for linear layers, uniform in +-1 / sqrt(inputs), biases too.
- Optimiser: Adam with a constant learning rate. The code sets ``optimizer.lr`` every 15 epochs, which PyTorch does not
  read: the decay of the paper's code has no effect.
- Stopping: at most 40 epochs; from the sixth on when, in each of the last three, both POS@20 became higher and NEG@20
  lower. The epoch with the lowest POS@20 is selected (mean over the untouched profile and 10 steps of removals, up to 200
  users, their first recommendation).
- Hyperparameters: those of "LXR combined" on ML-1M and MLP, here MF, by default; the presets ``paper-DATASET-MODEL`` have
  those of the other data sets. lambda_pos 11.6, lambda_neg 0.141, alpha 1, 64 hidden units, learning rate 0.0042, batches
  of 32 users.

Adaptations: log f is computed from logits; nothing is clamped, as in the authors' code. The epoch is selected on a share
of the training users; the authors select on users that are explained. Explanations of lower ranks and at list level use the
network, which has seen first recommendations only, as it is.

Agreement with the authors' network and loss, from the same initial weights with the same batches, after five epochs
(benchmarks/authors_native.py): on ml-100k with MF, 20 users, K = 5, the order of the masks and all 100 answers (the
smallest prefix, PN-S 0.94, 11.2 edits) are identical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors for ML-1M and MLP, here MF."""

    lambda_pos: Annotated[float, Range(minimum=0), Help("weight of preserving the item under the mask")] = (
        11.59908096547193
    )
    lambda_neg: Annotated[
        float, Range(minimum=0), Help("weight of displacing the item under the complement of the mask")
    ] = 0.1414854294885049
    alpha: Annotated[float, Range(minimum=0), Help("weight of the mean mask")] = 1.0
    hidden: Annotated[int, Range(minimum=1), Help("units of each hidden layer")] = 64
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.004177
    batch: Annotated[int, Range(minimum=1), Help("users in a batch")] = 32
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 40


FIXED: Mapping[str, Any] = {"target": "probability", "k": 1, "decay_every": 0, "patience": 40}
"""Hyperparameters of variant cfbench that are no options here."""

QUALITY_AT = 20
"""The length of the list of POS and NEG by which the epoch is selected."""

WORSE = 3
"""Epochs in a row in which both measures become worse before training stops."""

FIRST_STOP = 6
"""The first epoch after which training may stop."""


def initial(items: int, hidden: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights and biases of the four layers, uniform in +-1 / sqrt(inputs)."""
    shapes = {
        "profile": ((items, hidden), items, hidden),
        "item": ((items, hidden), items, hidden),
        "hidden": ((2 * hidden, hidden), 2 * hidden, hidden),
        "output": ((items, hidden), hidden, items),
    }
    found = {}
    for layer, (shape, inputs, outputs) in shapes.items():
        bound = inputs**-0.5
        found[f"{layer}.weight"] = random.uniform(-bound, bound, shape).astype(np.float32)
        found[f"{layer}.bias"] = random.uniform(-bound, bound, outputs).astype(np.float32)
    return found


def stops(evaluations: Sequence[tuple[float, float, float]]) -> bool:
    """Whether training ends after the last of these evaluations: (epoch, POS, NEG) of each epoch."""
    if len(evaluations) < FIRST_STOP:
        return False
    last = np.array(evaluations[-WORSE - 1 :])
    return bool((np.diff(last[:, 1]) > 0).all() and (np.diff(last[:, 2]) < 0).all())
