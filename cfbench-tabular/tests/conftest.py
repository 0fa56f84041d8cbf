"""Small models and tables that several tests share, and CF-tabular's files where they are to be had."""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.classifiers.mlp import MLP, from_weights
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import Column
from cfbench_tabular.testing import Constant

sys.path.insert(0, str(Path(__file__).parent / "samples"))


@pytest.fixture
def linear() -> Callable[..., LogisticRegression]:
    """``linear([w...], b)``: class 1 where w . x + b > 0."""

    def make(weights: Any, bias: float = 0.0) -> LogisticRegression:
        model = LogisticRegression(LogisticConfig())
        model.coefficients, model.intercept = np.asarray(weights, dtype=float), float(bias)
        return model

    return make


@pytest.fixture
def network() -> Callable[..., MLP]:
    """``network(d, hidden, seed)``: random weights."""

    def make(d: int, hidden: int = 6, seed: int = 0) -> MLP:
        draw = np.random.default_rng(seed)
        return from_weights(
            {
                "W1": draw.normal(size=(d, hidden)),
                "b1": draw.normal(size=hidden),
                "W2": draw.normal(size=(hidden, 2)),
                "b2": draw.normal(size=2),
            }
        )

    return make


@pytest.fixture
def numbers() -> Callable[[int], Encoding]:
    """``numbers(d)``: an encoding of d numeric columns x0, x1, ... that changes nothing, ranges -9 to 9."""

    def make(d: int) -> Encoding:
        columns = tuple(Column(f"x{place}") for place in range(d))
        return Encoding(columns, np.zeros(d), np.ones(d), np.full(d, -9.0), np.full(d, 9.0))

    return make


@pytest.fixture
def explain() -> Callable[..., np.ndarray]:
    """``ask(explainer, model, encoding, vectors, background)``: its counterfactuals to the rows ``vectors``."""

    def results(explainer: Any, model: Any, encoding: Encoding, vectors: Any, background: Any) -> np.ndarray:
        vectors = np.asarray(vectors, dtype=float)
        found = model.predict_proba(vectors)
        units = tuple(str(row) for row in range(len(vectors)))
        factuals = Factuals(vectors, (found[:, 1] > found[:, 0]).astype(np.int64), units)
        context = Context(encoding, np.asarray(background, dtype=float), lambda unit: generator("test", unit))
        return Explanation.of(explainer.counterfactuals(model, factuals, context)).counterfactuals

    return results


@pytest.fixture
def make_observed(numbers: Callable[[int], Encoding]) -> Callable[..., Observed]:
    """``judge(factuals, counterfactuals, ...)``: counterfactuals of class 1 to factuals of class 0, taken as valid."""

    def make(factuals: Any, counterfactuals: Any, **given: Any) -> Observed:
        factuals, counterfactuals = np.atleast_2d(factuals), np.atleast_2d(counterfactuals)
        given = {n: np.asarray(v, dtype=float) if n == "background" else v for n, v in given.items()}
        usual = {
            "factual_classes": np.zeros(len(factuals), dtype=np.int64),
            "valid": ~np.isnan(counterfactuals).any(axis=1),
            "encoding": numbers(factuals.shape[1]),
            "background": factuals,
            "model": Constant(),
        }
        return Observed(factuals.astype(float), counterfactuals.astype(float), **{**usual, **given})

    return make


@dataclass(frozen=True)
class Study:
    """The files of CF-tabular: networks, factuals, raw data, and reference values."""

    data: Path
    reference: Path

    def datasets(self) -> list[str]:
        return sorted(path.stem for path in (self.data / "models").glob("*.npz"))

    def network(self, name: str) -> MLP:
        from cfbench_tabular.classifiers.mlp import read_weights

        return from_weights(read_weights(self.data / "models" / f"{name}.npz"))

    def factuals(self, name: str, label: int) -> np.ndarray:
        with np.load(self.data / "factuals" / f"{name}.npz", allow_pickle=False) as archive:
            assert (archive[f"y{label}"] == label).all()
            return archive[f"X{label}"]

    def rows(self, name: str) -> list[tuple[str, ...]]:
        """The rows of a set as they stand in its file, as text; the last value is the class, coded."""
        with gzip.open(self.data / "datasets" / f"{name}.csv.gz", "rt", newline="") as lines:
            return [tuple(row) for row in csv.reader(lines)][1:]

    def vectors(self, name: str) -> np.ndarray:
        """(N, d) all rows of a set, encoded as CF-tabular did."""
        import pandas as pd

        raw = pd.read_csv(self.data / "datasets" / f"{name}.csv.gz")
        layout = json.loads((self.data / "onehot_layout.json").read_text())[name]
        types = json.loads((self.data / "var_types.json").read_text())[name]
        encoding, found = self.encoding(name), np.zeros((len(raw), len(layout["columns"])))
        numbers = iter(types["numerical"])
        for place, label in enumerate(layout["columns"]):
            column, _, level = label.partition("_")
            if place in layout["num_positions"]:
                at = encoding.column_of[place]
                found[:, place] = (raw[next(numbers)] - encoding.mean[at]) / encoding.scale[at]
            elif level:
                found[:, place] = raw[str(int(column))].astype(str) == level
            else:
                found[:, place] = raw[str(int(column))]
        return found

    def encoding(self, name: str) -> Encoding:
        """CF-tabular's own: one-hot layout, scaler fitted on all rows, ranges of all rows."""
        import pandas as pd

        raw = pd.read_csv(self.data / "datasets" / f"{name}.csv.gz")
        layout = json.loads((self.data / "onehot_layout.json").read_text())[name]
        types = json.loads((self.data / "var_types.json").read_text())[name]
        scaler_file = self.data / "scalers" / f"{name}.json"
        scaler = json.loads(scaler_file.read_text()) if scaler_file.exists() else {"mean": [], "scale": []}
        numeric = {
            place: (column, mean, scale)
            for place, column, mean, scale in zip(
                layout["num_positions"], types["numerical"], scaler["mean"], scaler["scale"], strict=True
            )
        }
        group_of = {places[0]: places for places in layout["onehot_groups"].values()}
        grouped = {place for places in layout["onehot_groups"].values() for place in places}
        rows = []
        for place, label in enumerate(layout["columns"]):
            if place in numeric:
                column, mean, scale = numeric[place]
                values = (raw[column] - mean) / scale
                rows.append((Column(label), mean, scale, values.min(), values.max()))
            elif place in group_of:
                levels = tuple(layout["columns"][inner] for inner in group_of[place])
                rows.append((Column(label, "categorical", levels), 0.0, 1.0, 0.0, 1.0))
            elif place not in grouped:
                rows.append((Column(label, "categorical", ("0", "1")), 0.0, 1.0, 0.0, 1.0))
        columns, *arrays = zip(*rows, strict=True)
        return Encoding(columns, *(np.array(array, dtype=float) for array in arrays))


SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
if SHARED_DATA.is_dir():
    os.environ.setdefault("CFBENCH_DATA_DIR", str(SHARED_DATA))


@pytest.fixture(scope="session")
def study() -> Study:
    data = Path(os.environ.get("CFBENCH_DATA_DIR", SHARED_DATA)) / "tabular"
    reference = data.parent.parent / "reference" / "tabular"
    if not (data / "models").is_dir():
        pytest.skip(f"the study's networks are not in {data} (set CFBENCH_DATA_DIR)")
    return Study(data, reference)
