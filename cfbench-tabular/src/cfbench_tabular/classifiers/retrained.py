"""Models that were trained again: on a bootstrap sample of the training rows, with another seed, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.prepared_dataset import Part, PreparedDataset
from cfbench_tabular.table import IntArray

State = Mapping[str, np.ndarray[Any, Any]]

COUNT, ROWS = "retrained", "training rows"
"""Names of arrays in the state of several models: how many there are, and the rows that a model learned from."""


@dataclass(frozen=True)
class RetrainedModels:
    """Several models of one data set; ``resampled``: they learned from samples of the training rows."""

    models: tuple[Classifier, ...]
    resampled: bool


@dataclass(frozen=True, kw_only=True)
class Resampled(PreparedDataset):
    """A data set with other training rows.

    Attributes:
        drawn: (n,) their row numbers, some of them several times.
    """

    drawn: IntArray

    def rows(self, part: Part) -> IntArray:
        return self.drawn if part == "train" else super().rows(part)


def resampled(data: PreparedDataset, rows: IntArray) -> Resampled:
    """The data set with the given training rows (n,)."""
    found = Resampled(
        drawn=rows, **{field.name: getattr(data, field.name) for field in fields(PreparedDataset)}
    )
    found.__dict__["vectors"] = data.vectors  # computed once
    return found


def bootstrapped(data: PreparedDataset, generator: np.random.Generator) -> Resampled:
    """The data set with as many training rows, drawn with replacement; drawn again if a class is missing."""
    rows = data.rows("train")
    while True:
        drawn = rows[generator.integers(len(rows), size=len(rows))]
        if len(np.unique(data.labels[drawn])) == 2:
            return resampled(data, drawn)


def collected_state(states: Sequence[tuple[State, IntArray]]) -> dict[str, np.ndarray[Any, Any]]:
    """The states of several models, each with the numbers of its training rows, as one."""
    collected: dict[str, np.ndarray[Any, Any]] = {COUNT: np.array([len(states)])}
    for number, (state, rows) in enumerate(states):
        collected[f"{number}/{ROWS}"] = rows
        collected |= {f"{number}/{name}": array for name, array in state.items()}
    return collected


def separated_states(state: State) -> list[tuple[State, IntArray]]:
    """What :func:`collected_state` joined."""
    found: list[tuple[State, IntArray]] = []
    for number in range(int(state[COUNT][0])):
        prefix = f"{number}/"
        own = {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
        rows = own.pop(ROWS)
        found.append((own, rows))
    return found
