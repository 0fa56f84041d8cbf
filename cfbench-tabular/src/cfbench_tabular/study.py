"""The published files of CF-tabular, for ``protocol: paper``.

A folder contains, for each data set, the rows (``datasets/NAME.csv.gz``; columns 0, 1, ... and ``output``), the row
numbers of the splits (``splits/NAME_train.npy``, ``_validation``, ``_test``), mean and scale (``scalers/NAME.json``,
fitted on all rows), the factuals (``factuals/NAME.npz``: X0, X1, encoded) and the network (``models/NAME.npz``), and
for all of them the order of the encoded columns (``onehot_layout.json``) and their types (``var_types.json``). It is
searched for as ``tabular/`` in the data directories.

The table has the published rows and order of columns; the names of the columns, immutable columns and constraints
come from the data set of that name in cfbench.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.prepared_dataset import PARTS, UNKNOWN, PreparedDataset
from cfbench_tabular.table import AnyArray, FloatArray, IntArray, Table

if TYPE_CHECKING:
    from cfbench_core.config import ConfiguredComponent
    from cfbench_core.data_files import DataAccess

NAMES: Mapping[str, str] = {
    "adult": "Adult",
    "balance-scale": "BalanceScale",
    "bcw": "BCW",
    "car-evaluation": "CarEvaluation",
    "chess": "Chess",
    "cmsc": "CMSC",
    "default-of-credit-card-clients": "DefaultOfCCC",
    "ecoli": "Ecoli",
    "hayes-roth": "HayesRoth",
    "internet-advertisements": "InternetAdv",
    "iris": "Iris",
    "isolet": "ISOLET",
    "lymphography": "Lymphography",
    "magic": "MagicGT",
    "nursery": "Nursery",
    "pbc": "PBC",
    "sdd": "SDD",
    "soybean-small": "SoybeanSmall",
    "statlog-german-credit": "StatlogGC",
    "student-performance": "StudentPerf",
    "tic-tac-toe": "TicTacToe",
    "wine": "Wine",
}
"""The names of the data sets in CF-tabular, by their names in cfbench."""

SAME = 1e-6
"""Maximum difference between a factual and its row in any encoded column."""


@dataclass(frozen=True)
class StudyFiles:
    """The published files of one data set."""

    folder: Path
    name: str

    @property
    def rows(self) -> Path:
        return self.folder / "datasets" / f"{self.name}.csv.gz"

    @property
    def factuals(self) -> Path:
        return self.folder / "factuals" / f"{self.name}.npz"

    @property
    def network(self) -> Path:
        return self.folder / "models" / f"{self.name}.npz"

    @property
    def scaler(self) -> Path:
        """Missing if no column is numeric."""
        return self.folder / "scalers" / f"{self.name}.json"

    def split(self, part: str) -> Path:
        return self.folder / "splits" / f"{self.name}_{part}.npy"

    def lacking(self, rows: bool = True) -> str:
        """The missing files, as a message; empty if the data set is complete, or has all but its ``rows``."""
        needed = [self.factuals, self.folder / "onehot_layout.json", self.folder / "var_types.json"]
        if rows:
            needed = [self.rows, *needed, *(self.split(part) for part in PARTS)]
        missing = [str(path.relative_to(self.folder)) for path in needed if not path.is_file()]
        return f"{self.folder} has no {', '.join(missing)}" if missing else ""

    def parameters(self) -> dict[str, Any]:
        """The parameters of a stage, as JSON, with the digests of the files."""
        files = [self.rows, self.factuals, self.scaler, *(self.split(part) for part in PARTS)]
        files += [self.folder / "onehot_layout.json", self.folder / "var_types.json"]
        digests = {str(path.relative_to(self.folder)): file_digest(path) for path in files if path.is_file()}
        return {"folder": str(self.folder.resolve()), "name": self.name, "sha256": digests}

    @staticmethod
    def of(parameters: Mapping[str, Any]) -> StudyFiles:
        return StudyFiles(Path(parameters["folder"]), parameters["name"])

    def reading(self, dataset: ConfiguredComponent) -> ConfiguredComponent:
        """The data set, reading the published rows if it reads a file."""
        if not hasattr(dataset.options, "path"):
            return dataset
        return dataset.with_options({"path": str(self.rows.resolve())})

    def prepared_dataset(self, like: Table) -> PreparedDataset:
        """The published table, split and encoding; ``like`` is the table of the same data set in cfbench."""
        table, labels, mean, scale = self._table(like)
        split = np.full(len(table), -1)
        for number, part in enumerate(PARTS):
            split[np.load(self.split(part), allow_pickle=False)] = number
        if (split < 0).any():
            raise UserError(
                f"{self.name}: the published splits do not contain row {int(np.argmax(split < 0))}"
            )
        low, high = np.zeros(len(mean)), np.ones(len(mean))
        for place, column in enumerate(table.columns):
            if column.kind == "numeric":
                numbers = (table.values[column.name] - mean[place]) / scale[place]
                low[place], high[place] = numbers.min(), numbers.max()
        encoding = Encoding(table.columns, mean, scale, low, high, table.constraints)
        return PreparedDataset(table, table.classes(), labels, split, encoding)

    def _table(self, like: Table) -> tuple[Table, IntArray, FloatArray, FloatArray]:
        """The rows with columns in the published order, their labels, and the mean and scale of each column."""
        import pandas as pd

        raw = pd.read_csv(self.rows, dtype=str, keep_default_na=False)
        layout = json.loads((self.folder / "onehot_layout.json").read_text())[self.name]
        numerical = json.loads((self.folder / "var_types.json").read_text())[self.name]["numerical"]
        scaler = json.loads(self.scaler.read_text()) if self.scaler.is_file() else {"mean": [], "scale": []}
        scales = dict(zip(numerical, zip(scaler["mean"], scaler["scale"], strict=True), strict=True))
        if len(like.columns) != len(raw.columns) - 1:
            raise UserError(
                f"{self.rows}: has {len(raw.columns) - 1} columns, {like.name} has {len(like.columns)}"
            )
        in_file = sorted(like.columns, key=lambda column: column.kind == "numeric")  # categories first
        columns, values = [], {}
        levels_of = levels_of_columns(layout, numerical)
        for own, levels in levels_of.items():
            column = in_file[int(own)]
            if (column.kind == "numeric") != (own in scales):
                raise UserError(
                    f"{self.rows}: column {own} must be {'numeric' if own in scales else 'categorical'}, but "
                    f"{column.name!r} of {like.name} is not"
                )
            cells: AnyArray = raw[own].to_numpy(object)
            if own in scales:
                columns.append(replace(column, step=None, low=None, high=None, format="number", epoch=""))
                values[column.name] = cells.astype(np.float64)
            else:
                cells, levels = _named(cells, levels, like.values[column.name])
                columns.append(replace(column, levels=levels, ordered=False))
                values[column.name] = cells
        target: AnyArray = raw["output"].to_numpy(object)
        majority = Table(like.name, tuple(columns), values, target).classes()[1]
        labels = (target == majority).astype(np.int64)
        target, (majority,) = _named(target, (majority,), like.target)
        mean, scale = np.array([scales.get(own, (0.0, 1.0)) for own in levels_of]).T.copy()
        return (
            Table(like.name, tuple(columns), values, target, majority, like.constraints),
            labels,
            mean,
            scale,
        )

    def factual_rows(self, data: PreparedDataset, most: int) -> tuple[IntArray, int, int]:
        """The rows of the published factuals, up to ``most`` of each class.

        Returns:
            the distinct row numbers, with test rows preferred among equal rows; the number of factuals; and the
            number of factuals that equal a row.
        """
        with np.load(self.factuals, allow_pickle=False) as archive:
            factuals = np.concatenate([archive[name][:most] for name in ("X0", "X1")])
        if factuals.shape[1] != data.encoding.width:
            raise UserError(
                f"{self.factuals}: has {factuals.shape[1]} encoded columns, {data.table.name} has "
                f"{data.encoding.width}"
            )
        parts = [data.rows(part) for part in ("test", "validation", "train")]
        candidates = np.concatenate([*parts, np.flatnonzero(data.split == UNKNOWN)])
        vectors = data.vectors[candidates]
        direction = np.random.default_rng(0).normal(size=data.encoding.width)
        projections, factual_projections = vectors @ direction, factuals @ direction
        slack = SAME * np.abs(direction).sum()
        found, matched = [], 0
        taken = np.zeros(len(vectors), dtype=bool)
        for vector, place in zip(factuals, factual_projections, strict=True):
            near = np.flatnonzero(np.abs(projections - place) <= slack)
            same = near[(np.abs(vectors[near] - vector) <= SAME).all(axis=1)]
            matched += len(same) > 0
            free = same[~taken[same]]
            if len(free):
                taken[free[0]] = True
                found.append(candidates[free[0]])
        return np.array(found, dtype=np.int64), len(factuals), matched


def levels_of_columns(layout: Mapping[str, Any], numerical: list[str]) -> dict[str, tuple[str, ...]]:
    """The levels of each column of the published files, in the order of the encoded columns; empty if numeric.

    Encoded columns are called "3" (a number, or 0 and 1) or "3_red" (a level); with numbers among the columns of
    a data set "0003" and "0003_red".
    """
    numbers = iter(numerical)
    found: dict[str, tuple[str, ...]] = {}
    for place, label in enumerate(layout["columns"]):
        base, _, level = label.partition("_")
        if place in layout["num_positions"]:
            found[next(numbers)] = ()
        elif level:
            own = str(int(base))
            found[own] = (*found.get(own, ()), level)
        else:
            found[str(int(base))] = ("0", "1")
    return found


def _named(raw: AnyArray, levels: tuple[str, ...], ours: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
    """Published values and levels, renamed to ours if the rows give a one-to-one correspondence."""
    if len(raw) != len(ours):
        return raw, levels
    names = dict(zip(raw.tolist(), ours.tolist(), strict=True))
    known = [names.get(level, level) for level in levels]
    one_to_one = all(names[old] == new for old, new in zip(raw.tolist(), ours.tolist(), strict=True))
    if not one_to_one or len(set(names.values())) < len(names) or len(set(known)) < len(known):
        return raw, levels
    return np.array([names[text] for text in raw.tolist()], dtype=object), tuple(map(str, known))


def published_files(
    dataset: ConfiguredComponent, access: DataAccess | None, folder: str | None, rows: bool = True
) -> StudyFiles | str:
    """The published files of a data set, or the reason why there are none.

    Args:
        rows: whether the rows of the data set are needed, or its factuals suffice.

    Raises:
        UserError: if the folder of the published files is not found.
    """
    name = NAMES.get(dataset.spec.name)
    if name is None or not dataset.distribution:
        return f"{dataset.label} is not one of the 22 data sets of CF-tabular"
    if getattr(dataset.options, "target", None) is not None:
        return "protocol: paper predicts the majority class: remove the option 'target'"
    files = StudyFiles(find_study(access, folder), name)
    return files.lacking(rows) or files


def published_network(label: str, parameters: Mapping[str, Any] | None) -> Path | str:
    """The published weights, or the reason why a classifier called ``label`` has none.

    Args:
        parameters: of the published data set on which it is used; None: the data set has another encoding.
    """
    if parameters is None:
        return f"{label} needs 'protocol: paper', whose encoding it was trained with"
    files = StudyFiles.of(parameters)
    if not files.network.is_file():
        return f"{files.folder} has no models/{files.network.name}"
    return files.network


def find_study(access: DataAccess | None, folder: str | None) -> Path:
    """The folder of the published files.

    Raises:
        UserError: if the folder is not found.
    """
    from cfbench_core.data_files import search_path

    if folder is not None:
        places = [Path(folder).expanduser()]
    else:
        places = [place.folder / "tabular" for place in search_path(access.data_dir if access else None)]
    for place in places:
        if (place / "onehot_layout.json").is_file():
            return place
    looked = ", ".join(str(place) for place in places)
    raise UserError(
        f"protocol: paper: no folder with onehot_layout.json (searched {looked}); "
        "set protocol.folder, or place it in a data directory as tabular/ (cfbench cannot download it)"
    )
