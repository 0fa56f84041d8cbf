"""The stages of the suite's life cycle: what a worker computes, each from the files of those before it.

data -> model -> units -> explanations -> scores. A unit is one row of the table, named by its number in it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
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
from cfbench_tabular.classifiers.base import (
    Classifier,
    Counted,
    area_under_curve,
    predicted_classes,
    probabilities,
)
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Answer, Context, Factuals
from cfbench_tabular.facts import facts
from cfbench_tabular.grid import AGAIN, SECOND_MODEL
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.problem import PARTS, Part, Problem
from cfbench_tabular.table import FloatArray, IntArray, Table, complete
from cfbench_tabular.tables import read_answers, read_explanations, write_explanations


def read_data(task: TaskContext) -> dict[str, Any]:
    """Reads the table, names the target class, divides the rows and fits the encoding."""
    problem = Problem.make(
        read_table(task), task.parameters["validation"], task.parameters["test"], task.generator("split")
    )
    problem.save(task.output)
    return problem.summary()


def read_table(task: TaskContext) -> Table:
    """The rows of the data set that the task names, from its files where it has some."""
    dataset = create(task.parameters["dataset"])
    found = [task.parameters["source"]] if "source" in task.parameters else []
    table: Table = dataset.load(*found)
    return table


def fit_model(task: TaskContext) -> dict[str, Any]:
    """Trains the classifier, or takes up given weights, and judges it on the test rows."""
    from safetensors.numpy import save_file

    problem = task.load("data", Problem.load)
    model = adapted(create(task.parameters["classifier"]), problem.encoding)
    model.fit(problem, task.generator("fit"), task.report)
    state = {name: np.ascontiguousarray(array) for name, array in model.state().items()}
    save_file(state, task.output / "model.safetensors")
    (task.output / "model.json").write_text(json.dumps(dict(task.parameters["classifier"])))
    (task.output / "encoding.json").write_text(json.dumps(problem.encoding.to_json()))
    return {"quality": quality(model, problem), **_size(model)}


def _size(model: Any) -> dict[str, int]:
    """How many hidden neurons a network has."""
    if not hasattr(model, "layers"):
        return {}
    return {"neurons": sum(len(biases) for _, biases in model.layers()[:-1])}


def load_model(folder: Path) -> Classifier:
    """The classifier that :func:`fit_model` wrote."""
    from safetensors.numpy import load_file

    encoding = Encoding.from_json(json.loads((folder / "encoding.json").read_text()))
    model = adapted(create(json.loads((folder / "model.json").read_text())), encoding)
    model.load_state(load_file(folder / "model.safetensors"))
    return model


JUDGED: tuple[tuple[Part, str], ...] = (
    ("test", ""),
    ("validation", " of validation rows"),
    ("train", " of training rows"),
)
"""Parts of the split, and what the names of the model's quality there end in."""


def quality(model: Classifier, problem: Problem) -> dict[str, float]:
    """Area under the ROC curve and accuracy on the test rows, then on validation and training rows.

    The area only where there are both classes.
    """
    found: dict[str, float] = {}
    for part, of_part in JUDGED:
        vectors, labels = problem.sample(part)
        if len(labels) == 0:
            continue
        scores = probabilities(model, vectors)
        if len(np.unique(labels)) == 2:
            found[f"AUC{of_part}"] = area_under_curve(labels, scores[:, 1])
        right = (scores[:, 1] > scores[:, 0]) == labels
        found[f"accuracy{of_part}"] = float(right.mean())
    return found


def choose_units(task: TaskContext) -> dict[str, Any]:
    """The rows to explain: up to ``factuals`` of each predicted class, test rows first, training rows last.

    ``units.parquet``: unit (the row's number, as text), group, row, factual_class (0 or 1, as predicted),
    part.
    """
    problem = task.load("data", Problem.load)
    classes = predicted_classes(task.load("model", load_model), problem.vectors)
    generator = task.generator("factuals")
    in_turn = np.concatenate(
        [generator.permutation(problem.rows(part)) for part in ("test", "validation", "train")]
    )
    chosen = np.concatenate(
        [in_turn[classes[in_turn] == label][: task.parameters["factuals"]] for label in (0, 1)]
    )
    units = pd.DataFrame(
        {
            "unit": [str(row) for row in chosen],
            "group": np.arange(len(chosen)),
            "row": chosen,
            "factual_class": classes[chosen],
            "part": np.array(PARTS)[problem.split[chosen]],
        }
    )
    units.to_parquet(task.output / "units.parquet", index=False)
    counts = {name: int((classes[chosen] == label).sum()) for label, name in enumerate(problem.classes)}
    return {"groups": len(chosen), "factuals": counts}


@dataclass(frozen=True)
class _Chunk:
    """The factuals of one piece of work, B of them, and what all its stages need."""

    problem: Problem
    model: Classifier
    units: pd.DataFrame
    factuals: Factuals

    @staticmethod
    def of(task: TaskContext) -> _Chunk:
        problem = task.load("data", Problem.load)
        units = task.load(UNITS, _load_units)
        start, stop = task.chunk or (0, len(units))
        units = units[(units["group"] >= start) & (units["group"] < stop)].reset_index(drop=True)
        vectors = problem.vectors[units["row"].to_numpy()]
        factuals = Factuals(vectors, units["factual_class"].to_numpy(), tuple(units["unit"]))
        return _Chunk(problem, task.load("model", load_model), units, factuals)

    def answers(self, task: TaskContext, role: str) -> FloatArray:
        """(B, n, d) what the stage of that role answered."""
        table = pd.read_parquet(task.input_paths[role] / "explanations.parquet")
        return read_answers(
            table.astype({"level": object}).where(table.notna(), None),
            self.problem.encoding,
            self.factuals.units,
            self.factuals.vectors,
        )

    def write(
        self,
        task: TaskContext,
        answers: FloatArray,
        seconds: float,
        details: Mapping[str, FloatArray] | None = None,
    ) -> dict[str, Any]:
        """``explanations.parquet``, ``costs.parquet``, ``details.parquet``.

        answers: (B, n, d); seconds: of each factual.
        """
        answered = write_explanations(
            task.output,
            self.problem.encoding,
            self.units,
            self.factuals.vectors,
            answers,
            self.problem.classes,
        )
        costs = self.units[["unit"]].assign(elapsed_seconds=seconds)
        costs.to_parquet(task.output / "costs.parquet", index=False)
        known = facts(self.model, self.problem, self.factuals, self.units["row"].to_numpy())
        every = {**known, **(details or {})}
        told = [self.units[["unit"]].assign(name=name, value=value) for name, value in every.items()]
        pd.concat(told).to_parquet(task.output / "details.parquet", index=False, compression="zstd")
        return {"units": len(self.units), "answered": answered}


def _load_units(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "units.parquet")


def explain(task: TaskContext) -> dict[str, Any]:
    """Asks for all factuals of the chunk at once. The time is that of this call, shared out equally.

    A call that loaded code on its way is no measure of an answer: then a fresh explainer is asked again, unless the
    call was so long that loading hardly counts.
    """
    chunk = _Chunk.of(task)
    background, labels = chunk.problem.sample("train")
    context = Context(
        chunk.problem.encoding,
        background,
        task.generator,
        answers=task.parameters["answers"],
        seconds=task.parameters["seconds"],
        labels=labels,
    )
    loaded = len(sys.modules)
    answer, elapsed, evaluations = _timed(task, chunk, context)
    if len(sys.modules) > loaded and elapsed < LOADING_HARDLY_COUNTS:
        answer, elapsed, evaluations = _timed(task, chunk, context)
    answers, each = answer.several(), max(1, len(chunk.units))
    _check_answers(answer.counterfactuals, chunk.factuals, context.answers, task.task.label)
    _check_details(answer.details, len(chunk.units), task.task.label)
    details = {**answer.details, MODEL_QUERIES: np.full(len(chunk.units), evaluations / each)}
    return chunk.write(task, answers, elapsed / each, details)


LOADING_HARDLY_COUNTS = 20.0
"""Seconds of a call beside which the loading of libraries is little."""


def _timed(task: TaskContext, chunk: _Chunk, context: Context) -> tuple[Answer, float, int]:
    """What a fresh explainer answers, the seconds of that call alone, and how often it asked the model."""
    explainer = create(task.parameters["explainer"])
    model = Counted(chunk.model)
    started = time.perf_counter()
    given = explainer.counterfactuals(model, chunk.factuals, context)
    elapsed = time.perf_counter() - started
    return Answer.of(given), elapsed, model.evaluations


def _check_answers(answers: FloatArray, factuals: Factuals, asked: int, label: str) -> None:
    units, width = factuals.vectors.shape
    if np.shape(answers) not in ((units, width), (units, asked, width)):
        several = f" or {(units, asked, width)}" if asked > 1 else ""
        raise UserError(
            f"{label}: counterfactuals has shape {np.shape(answers)}, must be {(units, width)}{several}"
        )
    flat = np.reshape(answers, (-1, width))
    none = np.isnan(flat).all(axis=1)
    if not complete(flat[~none]).all() or np.isinf(flat).any():
        raise UserError(f"{label}: a counterfactual must be finite, or NaN throughout for no answer")


def _check_details(details: Mapping[str, FloatArray], units: int, label: str) -> None:
    for name, numbers in details.items():
        if np.shape(numbers) != (units,):
            raise UserError(f"{label}: the detail {name!r} has shape {np.shape(numbers)}, must be ({units},)")


def import_explanations(task: TaskContext) -> dict[str, Any]:
    """Explanations made elsewhere: those of the chunk's factuals. Their time is not known."""
    chunk = _Chunk.of(task)
    file, labels = Path(task.parameters["file"]), task.parameters["labels"]
    table = read_explanations(file, chunk.problem.table.values, labels)
    _check_explained(table, task.load(UNITS, _load_units), file, labels)
    answers = read_answers(table, chunk.problem.encoding, chunk.factuals.units, chunk.factuals.vectors)
    return chunk.write(task, answers, np.nan)


def _check_explained(table: pd.DataFrame, units: pd.DataFrame, file: Path, labels: Mapping[str, Any]) -> None:
    unknown = table["unit"][~table["unit"].isin(units["unit"])].drop_duplicates()
    if len(unknown):
        few = ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else "")
        raise UserError(
            f"{file}: {len(unknown)} of its units ({few}) are not among the {len(units)} rows that are explained "
            f"for {labels['model']} on {labels['dataset']}: they are the column 'unit' of a run's scores.parquet"
        )


def score(task: TaskContext) -> dict[str, Any]:
    """Judges explanations as they stand in their table, whoever wrote it. Validity is asked of the model.

    The value of a factual with several answers is their mean, over those where the metric has one.
    """
    chunk = _Chunk.of(task)
    counterfactuals = chunk.answers(task, "explanations")
    owner, answers = judged_several(chunk.model, chunk.factuals, counterfactuals, chunk.problem)
    answers = replace(answers, **_done_again(task, chunk, counterfactuals, owner))
    frames = []
    for parameters in task.parameters["metrics"]:
        for name, every in create(parameters).score(answers).items():
            values = _mean_of_each(owner, every, len(chunk.units))
            status = np.where(np.isnan(values), "skipped", "ok")
            frames.append(
                chunk.units[["unit"]].assign(metric=name, value=values, status=status, row=chunk.units["row"])
            )
    scores = pd.concat(frames, ignore_index=True)[["metric", "unit", "value", "status", "row"]]
    scores.to_parquet(task.output / "scores.parquet", index=False, compression="zstd")
    return {"units": len(chunk.units), "valid": len(set(owner[answers.valid].tolist()))}


def _done_again(task: TaskContext, chunk: _Chunk, first: FloatArray, owner: IntArray) -> dict[str, Any]:
    """What the study did once more with another seed, as arguments of :class:`Answers`.

    first: (B, n, d) what was answered the first time; owner: (R,) whose each answer is. A second model that is
    equal to the first was not trained with random numbers, and says nothing.
    """
    found: dict[str, Any] = {}
    if SECOND_MODEL in task.input_paths:
        second = task.load(SECOND_MODEL, load_model)
        pairs = zip(chunk.model.state().values(), second.state().values(), strict=True)
        same = all(np.array_equal(old, new) for old, new in pairs)
        found["second_model"] = None if same else second
    if AGAIN in task.input_paths:
        again = chunk.answers(task, AGAIN)
        most = max(first.shape[1], again.shape[1])
        padded = np.full((len(first), most, first.shape[2]), np.nan)
        padded[:, : again.shape[1]] = again
        given = np.asarray(~np.isnan(first).any(axis=2))
        given[:, 0] |= ~given.any(axis=1)
        found["again"] = padded[owner, np.nonzero(given)[1]]
    return found


def _mean_of_each(owner: IntArray, values: FloatArray, size: int) -> FloatArray:
    """(size,) the mean of the ``values`` (R,) that belong to each owner, without NaN; NaN where there is none."""
    values = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(values)
    counts = np.bincount(owner[known], minlength=size)
    sums = np.bincount(owner[known], values[known], minlength=size)
    means: FloatArray = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means


def judged_several(
    model: Classifier, factuals: Factuals, counterfactuals: FloatArray, problem: Problem
) -> tuple[IntArray, Answers]:
    """Several answers (B, n, d) to each factual, judged one by one: R of them, and (R,) whose each is.

    A factual has a line for each answer that was given, or one of NaN when there is none.
    """
    given = np.asarray(~np.isnan(counterfactuals).any(axis=2))
    given[:, 0] |= ~given.any(axis=1)
    owner, place = np.nonzero(given)
    repeated = Factuals(
        factuals.vectors[owner], factuals.classes[owner], tuple(factuals.units[unit] for unit in owner)
    )
    answers = judged(model, repeated, counterfactuals[owner, place], problem)
    valid = np.zeros(given.shape, dtype=bool)
    valid[owner, place] = answers.valid
    return owner, replace(answers, all=counterfactuals[owner], all_valid=valid[owner])


def judged(model: Classifier, factuals: Factuals, counterfactuals: FloatArray, problem: Problem) -> Answers:
    """Answers with their validity: given, and in the other class by the model itself."""
    given = complete(counterfactuals)
    valid = given.copy()
    valid[given] = predicted_classes(model, counterfactuals[given]) != factuals.classes[given]
    return Answers(
        factuals=factuals.vectors,
        counterfactuals=counterfactuals,
        factual_classes=factuals.classes,
        valid=valid,
        encoding=problem.encoding,
        background=problem.sample("train")[0],
        model=model,
        background_labels=problem.sample("train")[1],
        table=problem.vectors,
    )
