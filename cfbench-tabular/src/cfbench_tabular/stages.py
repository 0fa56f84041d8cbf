"""The stages of the suite's life cycle: what a worker computes, each from the files of those before it.

data -> model -> units -> explanations -> scores. A unit is one row of the table, named by its number in it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.plan import EVALUATIONS
from cfbench_core.stages import UNITS, Task
from cfbench_tabular.classifiers.base import Classifier, Counted, predicted_classes, probabilities
from cfbench_tabular.explainers.base import Answer, Context, Factuals
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.problem import PARTS, Problem
from cfbench_tabular.table import FloatArray, complete
from cfbench_tabular.tables import read_answers, read_explanations, with_labels, write_explanations


def read_data(task: Task) -> dict[str, Any]:
    """Reads the table, names the target class, divides the rows and fits the encoding."""
    table = create(task.parameters["dataset"]).load()
    problem = Problem.make(
        table, task.parameters["validation"], task.parameters["test"], task.generator("split")
    )
    problem.save(task.output)
    return problem.summary()


def fit_model(task: Task) -> dict[str, Any]:
    """Trains the classifier, or takes up given weights, and judges it on the test rows."""
    from safetensors.numpy import save_file

    problem = task.load("data", Problem.load)
    model: Classifier = create(task.parameters["classifier"])
    model.fit(problem, task.generator("fit"), task.report)
    state = {name: np.ascontiguousarray(array) for name, array in model.state().items()}
    save_file(state, task.output / "model.safetensors")
    (task.output / "model.json").write_text(json.dumps(dict(task.parameters["classifier"])))
    return {"quality": quality(model, problem)}


def load_model(folder: Path) -> Classifier:
    """The classifier that :func:`fit_model` wrote."""
    from safetensors.numpy import load_file

    model: Classifier = create(json.loads((folder / "model.json").read_text()))
    model.load_state(load_file(folder / "model.safetensors"))
    return model


def quality(model: Classifier, problem: Problem) -> dict[str, float]:
    """Accuracy and area under the ROC curve on the test rows; the area only where there are both classes."""
    from sklearn.metrics import roc_auc_score

    vectors, labels = problem.sample("test")
    if len(labels) == 0:
        return {}
    accuracy = {"accuracy": float((predicted_classes(model, vectors) == labels).mean())}
    if len(np.unique(labels)) < 2:
        return accuracy
    return {"AUC": float(roc_auc_score(labels, probabilities(model, vectors)[:, 1])), **accuracy}


def choose_units(task: Task) -> dict[str, Any]:
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
    def of(task: Task) -> _Chunk:
        problem = task.load("data", Problem.load)
        units = task.load(UNITS, _load_units)
        start, stop = task.chunk or (0, len(units))
        units = units[(units["group"] >= start) & (units["group"] < stop)].reset_index(drop=True)
        vectors = problem.vectors[units["row"].to_numpy()]
        factuals = Factuals(vectors, units["factual_class"].to_numpy(), tuple(units["unit"]))
        return _Chunk(problem, task.load("model", load_model), units, factuals)

    def write(
        self, task: Task, answers: FloatArray, seconds: float, details: Mapping[str, FloatArray] | None = None
    ) -> dict[str, Any]:
        """``explanations.parquet``, ``costs.parquet``, ``details.parquet``; ``seconds`` of each factual."""
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
        if details:
            told = [self.units[["unit"]].assign(name=name, value=value) for name, value in details.items()]
            pd.concat(told).to_parquet(task.output / "details.parquet", index=False, compression="zstd")
        return {"units": len(self.units), "answered": answered}


def _load_units(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "units.parquet")


def explain(task: Task) -> dict[str, Any]:
    """Asks for all factuals of the chunk at once. The time is that of this call, shared out equally."""
    chunk = _Chunk.of(task)
    explainer = create(task.parameters["explainer"])
    context = Context(chunk.problem.encoding, chunk.problem.sample("train")[0], task.generator)
    model = Counted(chunk.model)
    started = time.perf_counter()
    answer = Answer.of(explainer.counterfactuals(model, chunk.factuals, context))
    elapsed = time.perf_counter() - started
    answers, each = answer.counterfactuals, max(1, len(chunk.units))
    if answers.shape != chunk.factuals.vectors.shape:
        raise UserError(
            f"{task.work.label}: counterfactuals has shape {answers.shape}, "
            f"must be {chunk.factuals.vectors.shape}"
        )
    none = np.isnan(answers).all(axis=1)
    if not complete(answers[~none]).all() or np.isinf(answers).any():
        raise UserError(
            f"{task.work.label}: a counterfactual must be finite, or NaN throughout for no answer"
        )
    _check_details(answer.details, len(chunk.units), task.work.label)
    details = {**answer.details, EVALUATIONS: np.full(len(chunk.units), model.evaluations / each)}
    return chunk.write(task, answers, elapsed / each, details)


def _check_details(details: Mapping[str, FloatArray], units: int, label: str) -> None:
    for name, numbers in details.items():
        if np.shape(numbers) != (units,):
            raise UserError(f"{label}: the detail {name!r} has shape {np.shape(numbers)}, must be ({units},)")


def import_explanations(task: Task) -> dict[str, Any]:
    """Explanations made elsewhere: those of the chunk's factuals. Their time is not known."""
    chunk = _Chunk.of(task)
    table = with_labels(read_explanations(Path(task.parameters["file"])), task.parameters["labels"])
    _check_rows(table, len(chunk.problem.table), task.parameters["file"])
    answers = read_answers(table, chunk.problem.encoding, chunk.factuals.units, chunk.factuals.vectors)
    return chunk.write(task, answers, np.nan)


def _check_rows(table: pd.DataFrame, rows: int, file: str) -> None:
    numbers = pd.to_numeric(table["unit"], errors="coerce")
    wrong = table["unit"][~(numbers.between(0, rows - 1) & (numbers % 1 == 0))]
    if len(wrong):
        raise UserError(f"{file}: unit {wrong.iloc[0]!r} is not a row of the data set (0 to {rows - 1})")


def score(task: Task) -> dict[str, Any]:
    """Judges explanations as they stand in their table, whoever wrote it. Validity is asked of the model."""
    chunk = _Chunk.of(task)
    encoding = chunk.problem.encoding
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    counterfactuals = read_answers(
        table.astype({"level": object}).where(table.notna(), None),
        encoding,
        chunk.factuals.units,
        chunk.factuals.vectors,
    )
    answers = judged(chunk.model, chunk.factuals, counterfactuals, chunk.problem)
    frames = []
    for parameters in task.parameters["metrics"]:
        for name, values in create(parameters).score(answers).items():
            status = np.where(np.isnan(values), "skipped", "ok")
            frames.append(
                chunk.units[["unit"]].assign(metric=name, value=values, status=status, row=chunk.units["row"])
            )
    scores = pd.concat(frames, ignore_index=True)[["metric", "unit", "value", "status", "row"]]
    scores.to_parquet(task.output / "scores.parquet", index=False, compression="zstd")
    return {"units": len(chunk.units), "valid": int(answers.valid.sum())}


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
    )
