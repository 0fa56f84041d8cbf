"""The published factuals of a data set of CF-tabular without its rows, which are not published for all.

``cfbench evaluate`` scores counterfactuals of these factuals by the metrics that need no training rows. The columns are
called 0, 1, ... as in the published files, and the unit of a factual is its number: those of X0 from 0, then those of X1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import ConfiguredComponent, Help
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.prepared_dataset import UNKNOWN, PreparedDataset
from cfbench_tabular.study import StudyFiles, levels_of_columns
from cfbench_tabular.table import Column, FloatArray, IntArray, Table

CLASSES = ("0", "1")

FACTUALS = ComponentSpec(
    id="tabular/dataset/published-factuals",
    summary="Published factuals of CF-tabular without the rows of the data set",
    target=f"{__name__}:PublishedFactuals",
    config=f"{__name__}:Config",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    folder: Annotated[str, Help("with the published files")]
    name: Annotated[str, Help("of the data set in CF-tabular")]


class PublishedFactuals:
    def __init__(self, config: Config) -> None:
        self.files = StudyFiles(Path(config.folder), config.name)

    def load(self) -> Table:
        vectors, labels = factuals_of(self.files)
        encoding = encoding_of(self.files, vectors)
        names = np.array(CLASSES, dtype=object)[labels]
        return Table(self.files.name, encoding.columns, encoding.decode(vectors), names, CLASSES[1])


def in_place_of(dataset: ConfiguredComponent, files: StudyFiles) -> ConfiguredComponent:
    """The component that reads the factuals of a data set whose rows are missing."""
    options = Config(folder=str(files.folder.resolve()), name=files.name)
    return ConfiguredComponent("dataset", dataset.label, FACTUALS, options, dataset.distribution)


def prepared_factuals(files: StudyFiles, table: Table) -> PreparedDataset:
    """The factuals as rows that belong to no part of the split; ``table`` is that of :class:`PublishedFactuals`."""
    vectors, labels = factuals_of(files)
    split = np.full(len(table), UNKNOWN)
    return PreparedDataset(table, CLASSES, labels, split, encoding_of(files, vectors))


def factuals_of(files: StudyFiles) -> tuple[FloatArray, IntArray]:
    """(F, d) encoded, X0 before X1, and (F,) their classes."""
    with np.load(files.factuals, allow_pickle=False) as archive:
        parts = [np.asarray(archive[name], dtype=np.float64) for name in ("X0", "X1")]
    return np.concatenate(parts), np.repeat([0, 1], [len(part) for part in parts])


def encoding_of(files: StudyFiles, vectors: FloatArray) -> Encoding:
    """The published encoding; the ranges are those of the factuals (F, d), because others are unknown."""
    layout: dict[str, Any] = json.loads((files.folder / "onehot_layout.json").read_text())[files.name]
    numerical = json.loads((files.folder / "var_types.json").read_text())[files.name]["numerical"]
    scaler = json.loads(files.scaler.read_text()) if files.scaler.is_file() else {"mean": [], "scale": []}
    scales = dict(zip(numerical, zip(scaler["mean"], scaler["scale"], strict=True), strict=True))
    columns, position = [], 0
    low, high = [], []
    for name, levels in levels_of_columns(layout, numerical).items():
        if name in scales:
            columns.append(Column(name))
            low.append(float(vectors[:, position].min()))
            high.append(float(vectors[:, position].max()))
        else:
            columns.append(Column(name, "categorical", levels))
            low.append(0.0)
            high.append(1.0)
        position += len(levels) if len(levels) > 2 else 1
    mean, scale = np.array([scales.get(column.name, (0.0, 1.0)) for column in columns]).T.copy()
    return Encoding(tuple(columns), mean, scale, np.array(low), np.array(high))
