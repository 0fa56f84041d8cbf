"""The certified methods on columns of whole numbers and ordered levels, against every row that could exist."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Column, Table

LEVELS = ("low", "middle", "high")


def small_data(seed: int) -> PreparedDataset:
    """Two columns of few whole numbers, one of half numbers, and ordered levels: up to 7 * 5 * 9 * 3 rows."""
    draw = np.random.default_rng(seed)
    values = {
        "a": draw.integers(0, 7, size=60).astype(float),
        "b": draw.integers(-2, 3, size=60).astype(float),
        "c": draw.integers(0, 9, size=60) / 2,
        "grade": draw.choice(np.array(LEVELS, dtype=object), size=60),
    }
    columns = (
        Column("a", step=1.0, direction="up" if seed % 2 else "any"),
        Column("b", step=1.0),
        Column("c", step=0.5),
        Column("grade", "categorical", LEVELS, ordered=True, direction="any" if seed % 3 else "down"),
    )
    target = np.array(["x", "y"] * 30, dtype=object)
    return PreparedDataset.make(Table("small", columns, values, target), 0.2, 0.2, draw)


def all_rows(data: PreparedDataset) -> np.ndarray:
    raw = data.table.values
    sides = [
        np.arange(raw[name].min(), raw[name].max() + step / 2, step)
        for name, step in (("a", 1), ("b", 1), ("c", 0.5))
    ]
    rows = list(itertools.product(*sides, LEVELS))
    cells = list(zip(*rows, strict=True))
    values = {name: np.array(cells[place]) for place, name in enumerate("abc")}
    return data.encoding.encode(values | {"grade": np.array(cells[3], dtype=object)})


def distance(name: str, data: PreparedDataset, rows: np.ndarray, factual: np.ndarray) -> np.ndarray:
    """The sum of the changes (optimum), or their mean share of the ranges (mace)."""
    changes = np.abs(rows - factual)
    if name == "optimum":
        return changes.sum(axis=1)
    return (changes / (data.encoding.high - data.encoding.low)).mean(axis=1)


@pytest.mark.parametrize("name", ["optimum", "mace"])
@pytest.mark.parametrize("seed", [1, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_the_result_is_the_nearest_of_all_rows(name, seed, network):
    if name == "mace":
        pytest.importorskip("z3")
    data, model = small_data(seed), network(4, 5, seed)
    spec = installed().find("tabular", "explainer", name).spec
    explainer = resolve(spec.target)(resolve(str(spec.config))(seconds=30.0))
    vectors = data.vectors[:4]
    factuals = Factuals(vectors, predicted_classes(model, vectors), tuple("0123"))
    background, labels = data.sample("train")
    context = Context(data.encoding, background, lambda unit: generator("x", unit), labels=labels)
    found = explainer.counterfactuals(model, factuals, context)
    rows, (low, high) = all_rows(data), data.encoding.allowed(vectors)
    classes = predicted_classes(model, rows)
    for place, factual in enumerate(vectors):
        other = (classes != factuals.classes[place]) & ((rows >= low[place]) & (rows <= high[place])).all(
            axis=1
        )
        result = found.counterfactuals[place]
        assert found.details["proven"][place] == 1
        if not other.any():
            assert np.isnan(result).all()
            continue
        assert (rows[other] == result).all(axis=1).any()  # one of them, bit by bit
        best = distance(name, data, rows[other], factual).min()
        own = distance(name, data, result[None], factual)[0]
        assert own <= best * (1 + 1e-4) + (2e-3 if name == "mace" else 1e-6)
