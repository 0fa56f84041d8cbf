"""A data set prepared for training: a table, a target class, a split and the encoded rows."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.file_rows import FileRows
from cfbench_tabular.number_range import NumberRange
from cfbench_tabular.table import FloatArray, Imputation, IntArray, Table

FEWEST_ROWS = 10
"""With fewer the quality of a model is that of single rows: two rows have an area under the curve of 1."""
PARTS = ("train", "validation", "test")
UNKNOWN = len(PARTS)
"""In ``split``: a row that belongs to no part, because the split is not known."""
PART_NAMES = (*PARTS, "unknown")
IMPUTED = ("column", "method", "row")
"""The columns of ``imputed.parquet``."""
DROPPED = ("row", "reason")
"""The columns of ``dropped.parquet``."""
Part = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class PreparedDataset:
    """A data set with its target class, split and encoding.

    Attributes:
        table: N rows as they were read.
        classes: names of class 0 (the rest) and class 1 (the target class, by default the majority).
        labels: (N,) 0 or 1.
        split: (N,) the index in ``PARTS`` of the part of each row; ``UNKNOWN`` for one that belongs to none.
        encoding: the encoding, fitted on the training rows.
        decision_threshold: class 1 is predicted where its probability is above this.
    """

    table: Table
    classes: tuple[str, str]
    labels: IntArray
    split: IntArray
    encoding: Encoding
    decision_threshold: float = 0.5

    @staticmethod
    def make(
        table: Table,
        validation: float,
        test: float,
        generator: np.random.Generator,
        decision_threshold: float = 0.5,
    ) -> PreparedDataset:
        """Splits each class at random in the same proportions; the remaining rows are for training."""
        classes = table.classes()
        labels = (table.target == classes[1]).astype(np.int64)
        if len(table) < FEWEST_ROWS:
            raise UserError(
                f"{table.name}: has {len(table)} rows; at least {FEWEST_ROWS} are needed to train and to test a model"
            )
        split = _stratified(labels, validation, test, generator)
        trained = set(labels[split == 0].tolist())
        if len(trained) < 2:
            raise UserError(f"{table.name}: too few rows to have both classes among the training rows")
        encoding = Encoding.fit(table, np.flatnonzero(split == 0))
        return PreparedDataset(table, classes, labels, split, encoding, decision_threshold)

    @property
    def predictions(self) -> tuple[str, str]:
        """What a prediction of class 0 and of class 1 says, in words: "rejected", "accepted"."""
        zero, one = self.classes
        factual = self.table.factual_class
        if self.decision_threshold != 0.5:
            share = f"{100 * self.decision_threshold:g}%"
            below = factual or f"{one} with a probability of at most {share}"
            return below, f"{one} with a probability above {share}"
        return factual or zero, one

    @functools.cached_property
    def vectors(self) -> FloatArray:
        """(N, d) the encoded rows."""
        return self.encoding.encode(self.table.values)

    def rows(self, part: Part) -> IntArray:
        """The indices of the rows of a part of the split, ascending."""
        return np.flatnonzero(self.split == PARTS.index(part))

    def sample(self, part: Part) -> tuple[FloatArray, IntArray]:
        """Vectors (n, d) and labels (n,) of a part of the split."""
        rows = self.rows(part)
        return self.vectors[rows], self.labels[rows]

    def summary(self) -> dict[str, Any]:
        numeric = sum(column.kind == "numeric" for column in self.table.columns)
        types = {
            column.name: {"step": column.spacing, "unit": column.unit, "format": column.format}
            for column in self.table.columns
            if column.kind == "numeric" and (column.step is not None or column.unit)
        }
        return {
            "name": self.table.name,
            "rows": len(self.table),
            "training_rows": int((self.split == PARTS.index("train")).sum()),
            "columns": len(self.table.columns),
            "numeric_columns": numeric,
            "categorical_columns": len(self.table.columns) - numeric,
            "one_hot_columns": sum(group.stop - group.start for group in self.encoding.groups),
            "encoded_columns": self.encoding.width,
            "classes": list(self.classes),
            "majority_share": float(self.labels.mean()),
            "types": types,
            **({"predicts": self.table.number_range.column} if self.table.number_range else {}),
            **({} if self.decision_threshold == 0.5 else {"decision_threshold": self.decision_threshold}),
            **(
                {
                    "imputed": {name: len(one.rows) for name, one in self.table.imputed.items()},
                    "imputed_by": {name: one.method for name, one in self.table.imputed.items()},
                }
                if self.table.imputed
                else {}
            ),
            "size": f"{len(self.table):,} rows, {len(self.table.columns)} columns",
        }

    def save(self, folder: Path) -> None:
        """Writes ``table.parquet``, ``rows.parquet`` (row, target, label, split) and ``dataset.json``.

        And ``imputed.parquet``, where values are filled in, and ``dropped.parquet``, where rows of the file are left out.
        """
        import pyarrow as pa
        from pyarrow import parquet

        features = {column.name: self.table.values[column.name] for column in self.table.columns}
        parquet.write_table(pa.table(features), folder / "table.parquet")
        rows = {
            "row": self.table.file_rows.in_file(np.arange(len(self.table))),
            "target": self.table.target,
            "label": self.labels,
            "split": np.array(PART_NAMES)[self.split],
            **({} if self.table.numbers is None else {"number": self.table.numbers}),
        }
        parquet.write_table(pa.table(rows), folder / "rows.parquet")
        if self.table.imputed:
            gaps = [
                (name, one.method, row)
                for name, one in self.table.imputed.items()
                for row in one.rows.tolist()
            ]
            columns = dict(zip(IMPUTED, zip(*gaps, strict=True), strict=True))
            parquet.write_table(pa.table(columns), folder / "imputed.parquet")
        if self.table.file_rows.dropped:
            left_out = dict(
                zip(DROPPED, zip(*self.table.file_rows.dropped.items(), strict=True), strict=True)
            )
            parquet.write_table(pa.table(left_out), folder / "dropped.parquet")
        document = {
            "name": self.table.name,
            "classes": list(self.classes),
            "factual_class": self.table.factual_class,
            "number_range": asdict(self.table.number_range) if self.table.number_range else None,
            "decision_threshold": self.decision_threshold,
            "encoding": self.encoding.to_json(),
        }
        (folder / "dataset.json").write_text(json.dumps(document, indent=1))

    @staticmethod
    def load(folder: Path) -> PreparedDataset:
        """What :meth:`save` wrote."""
        from pyarrow import parquet

        document: Mapping[str, Any] = json.loads((folder / "dataset.json").read_text())
        encoding = Encoding.from_json(document["encoding"])
        features = parquet.read_table(folder / "table.parquet")
        rows = parquet.read_table(folder / "rows.parquet")
        values = {name: features[name].to_numpy(zero_copy_only=False) for name in features.column_names}
        zero, one = document["classes"]
        target = rows["target"].to_numpy(zero_copy_only=False)
        table = Table(
            document["name"],
            encoding.columns,
            values,
            target,
            one,
            encoding.constraints,
            _imputed(folder),
            factual_class=document["factual_class"],
            numbers=rows["number"].to_numpy() if "number" in rows.column_names else None,
            number_range=NumberRange(**document["number_range"]) if document["number_range"] else None,
            file_rows=_file_rows(folder, rows["row"].to_numpy()),
        )
        split = np.array([PART_NAMES.index(part) for part in rows["split"].to_pylist()], dtype=np.int64)
        labels = rows["label"].to_numpy()
        return PreparedDataset(table, (zero, one), labels, split, encoding, document["decision_threshold"])


def _imputed(folder: Path) -> dict[str, Imputation]:
    from pyarrow import parquet

    if not (folder / "imputed.parquet").is_file():
        return {}
    rows: dict[tuple[str, str], list[int]] = {}
    for gap in parquet.read_table(folder / "imputed.parquet").to_pylist():
        rows.setdefault((gap["column"], gap["method"]), []).append(gap["row"])
    return {name: Imputation(method, np.array(own)) for (name, method), own in rows.items()}


def _file_rows(folder: Path, positions: IntArray) -> FileRows:
    dropped = dropped_rows(folder)
    if not dropped and np.array_equal(positions, np.arange(len(positions))):
        return FileRows()
    return FileRows(positions, dropped)


def dropped_rows(folder: Path) -> dict[int, str]:
    """Why rows of the file are not in a prepared data set, by their positions in the file."""
    from pyarrow import parquet

    if not (folder / "dropped.parquet").is_file():
        return {}
    columns = parquet.read_table(folder / "dropped.parquet")
    return dict(zip(*(columns[name].to_pylist() for name in DROPPED), strict=True))


def _stratified(labels: IntArray, validation: float, test: float, generator: np.random.Generator) -> IntArray:
    split = np.zeros(len(labels), dtype=np.int64)
    for label in (0, 1):
        rows = generator.permutation(np.flatnonzero(labels == label))
        for_test = round(test * len(rows))
        for_validation = round(validation * len(rows))
        split[rows[:for_test]] = PARTS.index("test")
        split[rows[for_test : for_test + for_validation]] = PARTS.index("validation")
    return split
