"""Explanations: requested from an explainer, derived from its importances, or read from an external table."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.plan import EVALUATIONS
from cfbench_core.stages import UNITS, TaskContext
from cfbench_recsys.answers import prune, smallest_prefix, threshold, verify
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import ADD, Edits, FloatArray
from cfbench_recsys.explanations import (
    edits_table,
    importances_table,
    read_edits,
    read_importances,
    read_table,
    unknown_units,
)
from cfbench_recsys.models import load_state, save_state
from cfbench_recsys.scoring import Counted, queries_of
from cfbench_recsys.splits import load_split
from cfbench_recsys.stages.common import (
    Chunk,
    Setting,
    chunk_of,
    load_units,
    load_withheld,
    setting_of,
)
from cfbench_recsys.targets import Answer, Context, Targets

Details = Mapping[str, FloatArray]


def _context(task: TaskContext, setting: Setting, state: dict[str, np.ndarray] | None) -> Context:
    training, cache = _learnable(task.input_paths["split"], task.input_paths[UNITS], task.task.stage_key)
    return Context(Counted(setting.model), setting.split.profiles, training, task.generator, state, cache)


@functools.lru_cache(maxsize=2)
def _learnable(split: Path, units: Path, stage_key: str) -> tuple[sparse.csr_matrix, dict[str, Any]]:
    """Interactions of users who are not explained, and room for what an explainer computes from them once."""
    training = load_split(split).train
    rows = np.repeat(np.arange(training.shape[0]), np.diff(training.indptr))
    training.data[np.isin(rows, load_withheld(units))] = 0.0
    training.eliminate_zeros()
    return training, {}


def prepare_explainer(task: TaskContext) -> dict[str, Any]:
    """Pre-training of an explainer, on users who are not explained."""
    setting = setting_of(task)
    started = time.perf_counter()
    state = create(task.parameters["explainer"]).prepare(_context(task, setting, None))
    if not isinstance(state, Mapping) or not all(isinstance(array, np.ndarray) for array in state.values()):
        raise UserError(f"{task.task.label}: prepare must return NumPy arrays by name, a dict")
    save_state(state, task.output)
    return {"elapsed_seconds": time.perf_counter() - started}


def _explainer_and_context(task: TaskContext, setting: Setting) -> tuple[Any, Context]:
    state = task.load("explainer", load_state) if "explainer" in task.input_paths else None
    return create(task.parameters["explainer"]), _context(task, setting, state)


def explain_implicit(task: TaskContext) -> dict[str, Any]:
    """Importances of the interactions of each unit's user."""
    setting = setting_of(task)
    chunk = chunk_of(task, setting, task.parameters["scope"])
    explainer, context = _explainer_and_context(task, setting)
    started = time.perf_counter()
    importances = np.asarray(explainer.importances(chunk.targets, context), dtype=np.float64)
    elapsed = time.perf_counter() - started
    _check_importances(importances, chunk.targets, task.task.label)
    table = importances_table(
        setting.interactions, chunk.targets, importances, chunk.slice(chunk.targets.level, "implicit")
    )
    details = {EVALUATIONS: _each(queries_of(context.model), chunk)}
    return _write(task, table, chunk, _each(elapsed, chunk), details)


def _each(total: float, chunk: Chunk) -> FloatArray:
    """(B,) the share of each unit in what a batch took."""
    return np.full(len(chunk.targets), total / max(1, len(chunk.targets)))


def _check_importances(importances: FloatArray, targets: Targets, label: str) -> None:
    if importances.shape != targets.history.shape:
        raise UserError(
            f"{label}: importances has shape {importances.shape}, must be {targets.history.shape}"
        )
    if not np.isfinite(importances[~targets.padding]).all():
        raise UserError(f"{label}: importances has NaN or infinity for an interaction of the user")


def _check_details(details: Details, targets: Targets, label: str) -> None:
    for name, numbers in details.items():
        if np.shape(numbers) != (len(targets),):
            raise UserError(
                f"{label}: the detail {name!r} has shape {np.shape(numbers)}, must be ({len(targets)},)"
            )


def _check_edits(edits: Edits, targets: Targets, graph: sparse.csr_matrix, label: str) -> None:
    """What would go wrong later, or unseen. Which edges may be edited is checked where they are scored."""
    if not isinstance(edits, Edits):
        raise UserError(f"{label}: counterfactuals must return Edits, not {type(edits).__name__}")
    if not np.array_equal(edits.users, targets.users):
        raise UserError(f"{label}: counterfactuals must give one edit for each target, for its user")
    if not targets.additions and (edits.ops == ADD).any():
        raise UserError(f"{label}: it adds edges, but 'protocol.edits' has removals only")
    rows = edits.rows
    if len(rows) and (rows[0] < 0 or rows[-1] >= len(targets) or (np.diff(rows) < 0).any()):
        raise UserError(f"{label}: the rows of its edits must ascend from 0 to {len(targets) - 1}")
    for name, ids, size in (
        ("user", edits.edge_users, graph.shape[0]),
        ("item", edits.edge_items, graph.shape[1]),
    ):
        outside = ids[(ids < 0) | (ids >= size)]
        if len(outside):
            raise UserError(f"{label}: it edits {name} {outside[0]}, but {name}s go from 0 to {size - 1}")


def explain_explicit(task: TaskContext) -> dict[str, Any]:
    """The edits that an explainer names itself, verified and pruned as the protocol says."""
    setting = setting_of(task)
    chunk = chunk_of(task, setting, task.parameters["scope"])
    explainer, context = _explainer_and_context(task, setting)
    started = time.perf_counter()
    answer = Answer.of(explainer.counterfactuals(chunk.targets, context))
    _check_edits(answer.edits, chunk.targets, setting.split.profiles, task.task.label)
    _check_details(answer.details, chunk.targets, task.task.label)
    edits = _finished(
        answer.edits, context.model, chunk.targets, setting.split.profiles, task.parameters["postprocess"]
    )
    elapsed = time.perf_counter() - started
    details = {**answer.details, EVALUATIONS: _each(queries_of(context.model), chunk)}
    return _write_edits(task, setting, chunk, edits, _each(elapsed, chunk), details)


def derive_explicit(task: TaskContext) -> dict[str, Any]:
    """Edits of a method that gives importances; its time and its evaluations count too."""
    setting = setting_of(task)
    chunk = chunk_of(task, setting, task.parameters["scope"])
    table = pd.read_parquet(task.input_paths["importances"] / "explanations.parquet")
    importances, _ = read_importances(table, setting.interactions, chunk.targets, chunk.units["unit"])
    costs = pd.read_parquet(task.input_paths["importances"] / "costs.parquet")["elapsed_seconds"].to_numpy()
    queries = _detail(task.input_paths["importances"], EVALUATIONS, chunk)
    postprocess, model = task.parameters["postprocess"], Counted(setting.model)
    started = time.perf_counter()
    if postprocess["derive"] == "threshold":
        edits = threshold(chunk.targets, importances)
    else:
        edits = smallest_prefix(model, chunk.targets, importances, setting.split.profiles)
    edits = _finished(edits, model, chunk.targets, setting.split.profiles, postprocess)
    elapsed = time.perf_counter() - started
    details = {EVALUATIONS: queries + _each(model.queries, chunk)}
    return _write_edits(task, setting, chunk, edits, costs + _each(elapsed, chunk), details)


def _finished(
    edits: Edits,
    model: ScoringModel,
    targets: Targets,
    graph: sparse.csr_matrix,
    postprocess: Mapping[str, Any],
) -> Edits:
    if postprocess["verify"]:
        edits = verify(model, targets, edits, graph)
    if postprocess["prune"]:
        edits = prune(model, targets, edits, graph)
    return edits


def _detail(folder: Path, name: str, chunk: Chunk) -> FloatArray:
    """(B,) a detail of the explanations in ``folder``."""
    details = pd.read_parquet(folder / "details.parquet")
    own = details[details["name"] == name].set_index("unit")["value"]
    return own.reindex(chunk.units["unit"]).to_numpy(np.float64)


def import_explanations(task: TaskContext) -> dict[str, Any]:
    """Explanations external, checked and cut to the chunk; columns of the contract.

    Units that are not explained here are left out, and noted; where that leaves none, it is an error.
    """
    setting = setting_of(task)
    chunk = chunk_of(task, setting, task.parameters["scope"])
    path = Path(task.parameters["file"])
    table = _selected(read_table(path), task.parameters["labels"])
    note = unknown_units(table, task.load(UNITS, load_units)["unit"], path)
    if task.parameters["format"] == "implicit":
        importances, answered = read_importances(
            table, setting.interactions, chunk.targets, chunk.units["unit"]
        )
        own = importances_table(
            setting.interactions, chunk.targets, importances, chunk.slice(chunk.targets.level, "implicit")
        )
        own = own[own["unit"].isin(chunk.units["unit"][answered])]  # the others have no answer, not zeros
        return {**_write(task, own, chunk, np.full(len(chunk.targets), np.nan)), "note": note}
    edits = read_edits(
        table, setting.interactions, chunk.targets, chunk.units["unit"], setting.split.profiles
    )
    return {**_write_edits(task, setting, chunk, edits, np.full(len(edits), np.nan)), "note": note}


def _selected(table: pd.DataFrame, labels: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a table that belong to a cell, as far as the table has columns for its labels."""
    for name, value in labels.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    return table


def _write_edits(
    task: TaskContext,
    setting: Setting,
    chunk: Chunk,
    edits: Edits,
    seconds: FloatArray,
    details: Details | None = None,
) -> dict[str, Any]:
    table = edits_table(setting.interactions, edits, chunk.slice(chunk.targets.level, "explicit"))
    return _write(task, table, chunk, seconds, details)


def _write(
    task: TaskContext, table: pd.DataFrame, chunk: Chunk, seconds: FloatArray, details: Details | None = None
) -> dict[str, Any]:
    table.to_parquet(task.output / "explanations.parquet", index=False, compression="zstd")
    costs = pd.DataFrame({"unit": chunk.units["unit"], "elapsed_seconds": seconds})
    costs.to_parquet(task.output / "costs.parquet", index=False)
    if details:
        rows = [
            pd.DataFrame({"unit": chunk.units["unit"], "name": n, "value": v}) for n, v in details.items()
        ]
        pd.concat(rows).to_parquet(task.output / "details.parquet", index=False, compression="zstd")
    return {"units": len(chunk.units)}
