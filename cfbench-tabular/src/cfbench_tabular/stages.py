"""The stages of the tabular life cycle; each reads the artifacts of the stages before it.

data -> model -> units -> explanations -> scores. A unit is one row of the table; its name is the row number.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.plan import MODEL_QUERIES
from cfbench_core.stages import UNITS, TaskContext
from cfbench_tabular.classifiers.adapting import adapted
from cfbench_tabular.classifiers.base import QueryCounter, area_under_curve, predicted_classes, probabilities
from cfbench_tabular.contracts import Classifier, Dataset, Explainer, FileDataset, Metric
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explanation_tables import read_counterfactuals, read_explanations, write_explanations
from cfbench_tabular.grid import REPEATED, SECOND_MODEL
from cfbench_tabular.instance_features import instance_features
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.prepared_dataset import PARTS, Part, PreparedDataset
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, Table, complete


def read_data(task: TaskContext) -> dict[str, Any]:
    """Reads the table, splits its rows and fits the encoding."""
    data = PreparedDataset.make(
        read_table(task), task.parameters["validation"], task.parameters["test"], task.generator("split")
    )
    data.save(task.output)
    return data.summary()


def read_table(task: TaskContext) -> Table:
    """The rows of the data set of the task, from its files if it has any."""
    if "source" in task.parameters:
        files: FileDataset = create(task.parameters["dataset"])
        return files.load(task.parameters["source"])
    dataset: Dataset = create(task.parameters["dataset"])
    return dataset.load()


def fit_model(task: TaskContext) -> dict[str, Any]:
    """Trains the classifier, or loads its weights, and evaluates it on the test rows."""
    from safetensors.numpy import save_file

    data = task.load("data", PreparedDataset.load)
    model = adapted(create(task.parameters["classifier"]), data.encoding)
    model.fit(data, task.generator("fit"), task.report)
    state = {name: np.ascontiguousarray(array) for name, array in model.state().items()}
    save_file(state, task.output / "model.safetensors")
    (task.output / "model.json").write_text(json.dumps(dict(task.parameters["classifier"])))
    return {"quality": quality(model, data), **_size(model)}


def _size(model: Classifier) -> dict[str, int]:
    """The number of hidden neurons of a network."""
    if not hasattr(model, "layers"):
        return {}
    return {"neurons": sum(len(biases) for _, biases in model.layers()[:-1])}


def load_model(task: TaskContext, role: str = "model") -> Classifier:
    """The classifier that :func:`fit_model` wrote into the input ``role``."""
    return task.load(role, _model_loader(task.input_paths["data"]))


@functools.lru_cache(maxsize=4)
def _model_loader(data: Path) -> Callable[[Path], Classifier]:
    """A loader of the models that were fitted on the data set in the folder ``data``; cached, so that models are."""

    def loaded(folder: Path) -> Classifier:
        from safetensors.numpy import load_file

        prepared = PreparedDataset.load(data)
        model = adapted(create(json.loads((folder / "model.json").read_text())), prepared.encoding)
        model.load_state(load_file(folder / "model.safetensors"), prepared)
        return model

    return loaded


QUALITY_PARTS: tuple[tuple[Part, str], ...] = (
    ("test", ""),
    ("validation", " of validation rows"),
    ("train", " of training rows"),
)
"""Parts of the split, and the suffixes of the quality measures computed on them."""


def quality(model: Classifier, data: PreparedDataset) -> dict[str, float]:
    """Area under the ROC curve and accuracy on the test rows, then on validation and training rows.

    The area is left out where only one class occurs.
    """
    found: dict[str, float] = {}
    for part, suffix in QUALITY_PARTS:
        vectors, labels = data.sample(part)
        if len(labels) == 0:
            continue
        scores = probabilities(model, vectors)
        if len(np.unique(labels)) == 2:
            found[f"AUC{suffix}"] = area_under_curve(labels, scores[:, 1])
        right = (scores[:, 1] > scores[:, 0]) == labels
        found[f"accuracy{suffix}"] = float(right.mean())
    return found


def choose_units(task: TaskContext) -> dict[str, Any]:
    """The rows to explain: up to ``factuals`` of each predicted class, test rows first, training rows last.

    ``units.parquet``: unit (the row's number, as text), group, row, factual_class (0 or 1, as predicted),
    part.
    """
    data = task.load("data", PreparedDataset.load)
    classes = predicted_classes(load_model(task), data.vectors)
    generator = task.generator("factuals")
    candidates = np.concatenate(
        [generator.permutation(data.rows(part)) for part in ("test", "validation", "train")]
    )
    chosen = np.concatenate(
        [candidates[classes[candidates] == label][: task.parameters["factuals"]] for label in (0, 1)]
    )
    units, counts = units_table(data, chosen, classes[chosen])
    units.to_parquet(task.output / "units.parquet", index=False)
    return {"groups": len(chosen), "factuals": counts}


def units_table(
    data: PreparedDataset, rows: IntArray, classes: IntArray
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The units of the given rows (n,) with their predicted classes (n,), and the number of units of each class."""
    units = pd.DataFrame(
        {
            "unit": [str(row) for row in rows],
            "group": np.arange(len(rows)),
            "row": rows,
            "factual_class": classes,
            "part": np.array(PARTS)[data.split[rows]],
        }
    )
    return units, {name: int((classes == label).sum()) for label, name in enumerate(data.classes)}


@dataclass(frozen=True)
class _Chunk:
    """The B factuals of one task, with the data set and the model."""

    data: PreparedDataset
    model: Classifier
    units: pd.DataFrame
    factuals: Factuals

    @staticmethod
    def of(task: TaskContext) -> _Chunk:
        data = task.load("data", PreparedDataset.load)
        units = task.load(UNITS, _load_units)
        start, stop = task.chunk or (0, len(units))
        units = units[(units["group"] >= start) & (units["group"] < stop)].reset_index(drop=True)
        vectors = data.vectors[units["row"].to_numpy()]
        factuals = Factuals(vectors, units["factual_class"].to_numpy(), tuple(units["unit"]))
        return _Chunk(data, load_model(task), units, factuals)

    def counterfactuals(self, task: TaskContext, role: str) -> FloatArray:
        """(B, n, d) the counterfactuals that the stage of that role wrote."""
        table = pd.read_parquet(task.input_paths[role] / "explanations.parquet")
        return read_counterfactuals(
            table.astype({"level": object}).where(table.notna(), None),
            self.data.encoding,
            self.factuals.units,
            self.factuals.vectors,
        )

    def write(
        self,
        task: TaskContext,
        counterfactuals: FloatArray,
        seconds: float,
        details: Mapping[str, FloatArray] | None = None,
    ) -> dict[str, Any]:
        """Writes ``explanations.parquet``, ``costs.parquet`` and ``details.parquet``.

        counterfactuals: (B, n, d); seconds: per factual.
        """
        explained = write_explanations(
            task.output,
            self.data.encoding,
            self.units,
            self.factuals.vectors,
            counterfactuals,
            self.data.classes,
        )
        costs = self.units[["unit"]].assign(elapsed_seconds=seconds)
        costs.to_parquet(task.output / "costs.parquet", index=False)
        features = instance_features(self.model, self.data, self.factuals, self.units["row"].to_numpy())
        values = {**features, **(details or {})}
        frames = [self.units[["unit"]].assign(name=name, value=value) for name, value in values.items()]
        pd.concat(frames).to_parquet(task.output / "details.parquet", index=False, compression="zstd")
        return {"units": len(self.units), "explained": explained}


def _load_units(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "units.parquet")


def explain(task: TaskContext) -> dict[str, Any]:
    """Explains all factuals of the chunk in one call; its time is divided equally among them.

    A call that imports modules is not representative. A new explainer is then called a second time, unless the first
    call was so long that the time of the imports is negligible.
    """
    chunk = _Chunk.of(task)
    background, labels = chunk.data.sample("train")
    context = Context(
        chunk.data.encoding,
        background,
        task.generator,
        counterfactuals_per_instance=task.parameters["counterfactuals_per_instance"],
        seconds=task.parameters["seconds"],
        labels=labels,
    )
    loaded = len(sys.modules)
    explanation, elapsed, queries = _timed(task, chunk, context)
    if len(sys.modules) > loaded and elapsed < NEGLIGIBLE_IMPORTS:
        explanation, elapsed, queries = _timed(task, chunk, context)
    _check_counterfactuals(
        explanation.counterfactuals, chunk.factuals, context.counterfactuals_per_instance, task.task.label
    )
    _check_details(explanation.details, len(chunk.units), task.task.label)
    size = max(1, len(chunk.units))
    details = {**explanation.details, MODEL_QUERIES: np.full(len(chunk.units), queries / size)}
    return chunk.write(task, explanation.stacked(), elapsed / size, details)


NEGLIGIBLE_IMPORTS = 20.0
"""Seconds; compared with a call of this length the time to import libraries is negligible."""


def _timed(task: TaskContext, chunk: _Chunk, context: Context) -> tuple[Explanation, float, int]:
    """The explanation of a new explainer, the seconds of that call alone, and the number of model queries."""
    explainer: Explainer = create(task.parameters["explainer"])
    model = QueryCounter(chunk.model)
    started = time.perf_counter()
    found = explainer.counterfactuals(model, chunk.factuals, context)
    elapsed = time.perf_counter() - started
    return Explanation.of(found), elapsed, model.queries


def _check_counterfactuals(
    counterfactuals: FloatArray, factuals: Factuals, per_instance: int, label: str
) -> None:
    units, width = factuals.vectors.shape
    if np.shape(counterfactuals) not in ((units, width), (units, per_instance, width)):
        several = f" or {(units, per_instance, width)}" if per_instance > 1 else ""
        raise UserError(
            f"{label}: counterfactuals has shape {np.shape(counterfactuals)}, must be {(units, width)}{several}"
        )
    flat = np.reshape(counterfactuals, (-1, width))
    missing = np.isnan(flat).all(axis=1)
    if not complete(flat[~missing]).all() or np.isinf(flat).any():
        raise UserError(
            f"{label}: a counterfactual must be finite, or NaN in every column where none was found"
        )


def _check_details(details: Mapping[str, FloatArray], units: int, label: str) -> None:
    for name, numbers in details.items():
        if np.shape(numbers) != (units,):
            raise UserError(f"{label}: the detail {name!r} has shape {np.shape(numbers)}, must be ({units},)")


def import_explanations(task: TaskContext) -> dict[str, Any]:
    """Imports the external explanations of the chunk's factuals. Their time is unknown."""
    chunk = _Chunk.of(task)
    file, labels = Path(task.parameters["file"]), task.parameters["labels"]
    table = read_explanations(file, chunk.data.table.values, labels)
    _check_explained(table, task.load(UNITS, _load_units), file, labels)
    counterfactuals = read_counterfactuals(
        table, chunk.data.encoding, chunk.factuals.units, chunk.factuals.vectors
    )
    return chunk.write(task, counterfactuals, np.nan)


def _check_explained(table: pd.DataFrame, units: pd.DataFrame, file: Path, labels: Mapping[str, Any]) -> None:
    unknown = table["unit"][~table["unit"].isin(units["unit"])].drop_duplicates()
    if len(unknown):
        few = ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else "")
        raise UserError(
            f"{file}: {len(unknown)} of its units ({few}) are not among the {len(units)} rows that are explained "
            f"for {labels['model']} on {labels['dataset']}: they are the column 'unit' of a run's scores.parquet"
        )


def score(task: TaskContext) -> dict[str, Any]:
    """Scores the explanations of a table, own or external. The model decides which counterfactuals are valid.

    The value of a factual with several counterfactuals is the mean over those for which the metric has a value.
    """
    chunk = _Chunk.of(task)
    counterfactuals = chunk.counterfactuals(task, "explanations")
    owner, observed = observe_several(chunk.model, chunk.factuals, counterfactuals, chunk.data)
    observed = replace(observed, **_repeated(task, chunk, counterfactuals, owner))
    frames = []
    for parameters in task.parameters["metrics"]:
        metric: Metric = create(parameters)
        for name, all_values in _computed(metric, observed, parameters["component"]).items():
            values = _means(owner, all_values, len(chunk.units))
            status = np.where(np.isnan(values), "skipped", "ok")
            frames.append(
                chunk.units[["unit"]].assign(metric=name, value=values, status=status, row=chunk.units["row"])
            )
    scores = pd.concat(frames, ignore_index=True)[["metric", "unit", "value", "status", "row"]]
    scores.to_parquet(task.output / "scores.parquet", index=False, compression="zstd")
    return {"units": len(chunk.units), "valid": len(set(owner[observed.valid].tolist()))}


def _computed(metric: Metric, observed: Observed, name: str) -> Mapping[str, FloatArray]:
    """The values of a metric, checked against the columns that it declares.

    Raises:
        UserError: if they differ from the declared columns or have the wrong shape.
    """
    values = metric.compute(observed)
    declared = [column.name for column in metric.columns({})]
    if sorted(values) != sorted(declared):
        raise UserError(
            f"{name}: compute returned the columns {sorted(values)}, but columns declares {declared}"
        )
    for column, array in values.items():
        if np.shape(array) != (len(observed.valid),):
            raise UserError(
                f"{name}: {column!r} has shape {np.shape(array)}, must be ({len(observed.valid)},)"
            )
    return values


def _repeated(task: TaskContext, chunk: _Chunk, first: FloatArray, owner: IntArray) -> dict[str, Any]:
    """The results of ``protocol.repeats``, as arguments of :class:`Observed`.

    first: (B, n, d) the counterfactuals of the first call; owner: (R,) the factual of each counterfactual. A second
    model that equals the first was trained without random numbers; it is left out.
    """
    found: dict[str, Any] = {}
    if SECOND_MODEL in task.input_paths:
        second = load_model(task, SECOND_MODEL)
        pairs = zip(chunk.model.state().values(), second.state().values(), strict=True)
        same = all(np.array_equal(old, new) for old, new in pairs)
        found["second_model"] = None if same else second
    if REPEATED in task.input_paths:
        repeated = chunk.counterfactuals(task, REPEATED)
        longest = max(first.shape[1], repeated.shape[1])
        padded = np.full((len(first), longest, first.shape[2]), np.nan)
        padded[:, : repeated.shape[1]] = repeated
        found["repeated"] = padded[owner, np.nonzero(_present(first))[1]]
    return found


def _present(counterfactuals: FloatArray) -> BoolArray:
    """(B, n) which of the counterfactuals (B, n, d) to score: those found, or the first where there is none."""
    present = np.asarray(~np.isnan(counterfactuals).any(axis=2))
    present[:, 0] |= ~present.any(axis=1)
    return present


def _means(owner: IntArray, values: FloatArray, size: int) -> FloatArray:
    """(size,) the mean of the ``values`` (R,) of each owner, ignoring NaN; NaN where there is no value."""
    values = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(values)
    counts = np.bincount(owner[known], minlength=size)
    sums = np.bincount(owner[known], values[known], minlength=size)
    means: FloatArray = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means


def observe_several(
    model: Classifier, factuals: Factuals, counterfactuals: FloatArray, data: PreparedDataset
) -> tuple[IntArray, Observed]:
    """Checks several counterfactuals (B, n, d) per factual one by one; returns (R,) their factuals and R results.

    A factual has one row for each of its counterfactuals, or one row of NaN where none was found.
    """
    present = _present(counterfactuals)
    owner, place = np.nonzero(present)
    repeated = Factuals(
        factuals.vectors[owner], factuals.classes[owner], tuple(factuals.units[unit] for unit in owner)
    )
    observed = observe(model, repeated, counterfactuals[owner, place], data)
    valid = np.zeros(present.shape, dtype=bool)
    valid[owner, place] = observed.valid
    return owner, replace(observed, alternatives=counterfactuals[owner], alternatives_valid=valid[owner])


def observe(
    model: Classifier, factuals: Factuals, counterfactuals: FloatArray, data: PreparedDataset
) -> Observed:
    """Counterfactuals with their validity: found, and predicted in the other class by the model."""
    found = complete(counterfactuals)
    valid = found.copy()
    valid[found] = predicted_classes(model, counterfactuals[found]) != factuals.classes[found]
    return Observed(
        factuals=factuals.vectors,
        counterfactuals=counterfactuals,
        factual_classes=factuals.classes,
        valid=valid,
        encoding=data.encoding,
        background=data.sample("train")[0],
        model=model,
        background_labels=data.sample("train")[1],
        table=data.vectors,
    )
