"""The gradient method of dice-ml on a case, for ``authors_tabular_gradients.py``."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from authors_tabular_rows import Answers, Case, timed

from cfbench_tabular.explainers.base import Context
from cfbench_tabular.table import FloatArray

DIGITS = {"magic": 4}
"""Decimals of the numbers of a data set that has any."""


def with_steps(given: Case) -> Case:
    """The case with numbers in steps of their decimals, to which dice-ml rounds, and all rows of the table as background,
    because dice-ml takes ranges and deviations from the same rows."""
    step = 10.0 ** -DIGITS.get(given.name, 0)
    columns = tuple(
        replace(column, step=step) if column.scalar else column for column in given.context.encoding.columns
    )
    encoding = replace(given.context.encoding, columns=columns)
    context: Context = replace(given.context, encoding=encoding, background=given.data.vectors, labels=None)
    return replace(given, context=context)


class Library:
    """dice-ml with the network of a case.

    A category of three or more levels is a category there; one of two is a whole number from 0 to 1 of weight 1, because
    dice-ml would give it two coordinates where cfbench has one. Names have the same length, because dice-ml takes every
    encoded column whose name begins with that of a category for one of its levels.
    """

    def __init__(self, given: Case, precision: str) -> None:
        import dice_ml
        import torch

        self.given, self.precision, encoding = given, precision, given.context.encoding
        self.names = [f"c{place:02d}" for place in range(len(encoding.columns))]
        wide = [block.stop - block.start > 1 for block in encoding.blocks]
        self.numbers = [name for name, many in zip(self.names, wide, strict=True) if not many]
        self.number = np.array([not many for many in wide])
        frame = self._frame(given.data.vectors)
        frame["y"] = 0
        digits = dict.fromkeys(self.numbers, DIGITS.get(given.name, 0))
        self.data = dice_ml.Data(
            dataframe=frame,
            continuous_features=self.numbers,
            outcome_name="y",
            continuous_features_precision=digits,
        )
        if precision == "float64":  # the library stores single precision
            self.data.data_df[self.numbers] = frame[self.numbers]
            self.data.permitted_range, _ = self.data.get_features_range()
        network = self._network(torch)
        with self._quiet(torch):
            self.search = dice_ml.Dice(
                self.data, dice_ml.Model(model=network, backend="PYT", func="ohe-min-max"), method="gradient"
            )
            weights = {
                name: round(1 / deviation, 2)
                for name, deviation in self.data.get_valid_mads(normalized=True).items()
            }
            two = [len(column.levels) == 2 and not column.scalar for column in encoding.columns]
            self.weights = weights | {name: 1.0 for name, flag in zip(self.names, two, strict=True) if flag}

    def answers(self, count: int, sparse: bool) -> Answers:
        """(n, count, d) encoded; ``sparse``: after their numbers were reset."""
        import torch

        queries, encoding = self._frame(self.given.factuals.vectors), self.given.context.encoding
        found = np.full((len(queries), count, encoding.width), np.nan)

        def run() -> FloatArray:
            with self._quiet(torch):
                for place in range(len(queries)):
                    result = self.search._generate_counterfactuals(
                        queries.iloc[place : place + 1],
                        total_CFs=count,
                        feature_weights=self.weights,
                        posthoc_sparsity_param=0.1 if sparse else None,
                    )
                    rows = result.final_cfs_df_sparse if sparse else result.final_cfs_df
                    for turn, row in enumerate(rows[self.names].to_dict("records")):
                        found[place, turn] = self._encoded(row)
            return found

        return timed(run, len(queries))

    def _frame(self, vectors: FloatArray) -> pd.DataFrame:
        encoding = self.given.context.encoding
        columns: dict[str, Any] = {}
        for place, (name, block) in enumerate(zip(self.names, encoding.blocks, strict=True)):
            part = vectors[:, block]
            if part.shape[1] > 1:
                columns[name] = [f"l{level:02d}" for level in part.argmax(axis=1)]
            elif encoding.columns[place].scalar:
                raw = part[:, 0] * encoding.scale[place] + encoding.mean[place]
                digits = DIGITS.get(self.given.name, 0)
                columns[name] = raw.round(digits) if digits else raw.round().astype(np.int64)
            else:
                columns[name] = part[:, 0].astype(np.int64)
        return pd.DataFrame(columns)

    def _encoded(self, row: dict[str, Any]) -> FloatArray:
        encoding = self.given.context.encoding
        vector = np.zeros(encoding.width)
        for place, (name, block) in enumerate(zip(self.names, encoding.blocks, strict=True)):
            if block.stop - block.start > 1:
                vector[block.start + int(row[name][1:])] = 1.0
            elif encoding.columns[place].scalar:
                vector[block] = (float(row[name]) - encoding.mean[place]) / encoding.scale[place]
            else:
                vector[block] = float(row[name])
        return vector

    def _network(self, torch: Any) -> Any:
        """The network of the case on their inputs: numbers from 0 to 1 first, then the levels."""
        encoding, weights = self.given.context.encoding, self.given.model.weights
        frame, mixing, shift = self.data.data_df, [], np.zeros(encoding.width)
        for place, (name, block) in enumerate(zip(self.names, encoding.blocks, strict=True)):
            if block.stop - block.start > 1:
                continue
            line, low = np.zeros(encoding.width), float(frame[name].min())
            line[block.start] = (float(frame[name].max()) - low) / encoding.scale[place]
            shift[block.start] = (low - encoding.mean[place]) / encoding.scale[place]
            mixing.append(line)
        mixing += [
            np.eye(encoding.width)[position]
            for group in encoding.groups
            for position in range(group.start, group.stop)
        ]
        folded = np.array(mixing)
        parts = folded @ weights["W1"], shift @ weights["W1"] + weights["b1"], weights["W2"], weights["b2"]
        w1, b1, w2, b2 = (torch.tensor(part.astype(self.precision)) for part in parts)

        class Network(torch.nn.Module):
            def forward(self, vector: Any) -> Any:
                return torch.softmax(torch.relu(vector @ w1 + b1) @ w2 + b2, dim=-1)

        return Network()

    @contextlib.contextmanager
    def _quiet(self, torch: Any) -> Iterator[None]:
        """Without its messages, in the precision of this object: the library asks for ``float()`` everywhere."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(getattr(torch, self.precision))
        double = (
            patch.object(torch.Tensor, "float", torch.Tensor.double)
            if self.precision == "float64"
            else contextlib.nullcontext()
        )
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), double:
                warnings.simplefilter("ignore")
                yield
        finally:
            torch.set_default_dtype(before)
