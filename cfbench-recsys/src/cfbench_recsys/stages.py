"""The stages of the recommender suite. Each is called with a task, writes files, and returns a summary.

read_data -> split_data -> fit_model -> choose_units -> [prepare_explainer]
          -> explain_implicit | explain_explicit | derive_explicit | import_explanations
          -> score_implicit | score_explicit

Explanations pass between stages as the table of the contract, with identifiers of the data file: so explanations made
elsewhere are scored by the same code, to the same numbers.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.seeds import generator
from cfbench_core.stages import UNITS, Task
from cfbench_recsys.answers import prune, smallest_prefix, threshold, verify
from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.explanations import (
    edits_table,
    importances_table,
    read_edits,
    read_importances,
    read_table,
    unknown_units,
)
from cfbench_recsys.interactions import Interactions, load_interactions
from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.models import load_model, load_state, save_model, save_state, state_from_file
from cfbench_recsys.observations import ExplicitObservations, ImplicitObservations
from cfbench_recsys.quality import evaluate
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.splits import Split, SplitConfig, load_split, make_split, save_split
from cfbench_recsys.targets import Context, Targets


def read_data(task: Task) -> dict[str, Any]:
    """A data set, from its file."""
    dataset = create(task.parameters["dataset"])
    interactions: Interactions = dataset.load(task.parameters["source"])
    interactions.save(task.output)
    return interactions.summary()


def split_data(task: Task) -> dict[str, Any]:
    """Training, validation, test; the data travel along, so that later stages need one input only."""
    interactions = task.load("data", load_interactions)
    split = make_split(interactions, SplitConfig(**task.parameters["split"]), task.generator("split"))
    interactions.save(task.output / "data")
    save_split(split, task.output)
    return {"interactions": {"train": int(split.train.nnz), "test": int(split.test.targets.nnz)}}


def _load_split(folder: Path) -> tuple[Interactions, Split]:
    return load_interactions(folder / "data"), load_split(folder)


def fit_model(task: Task) -> dict[str, Any]:
    """Trains a recommender (or takes its weights from a file) and tells its quality on the test part."""
    interactions, split = task.load("split", _load_split)
    parameters = task.parameters["recommender"]
    model = create(parameters)
    weights = parameters["options"].get("weights")
    if weights is not None:
        model.load_state(state_from_file(Path(weights), interactions), split.profiles)
        fitted: Mapping[str, Any] = {"weights": Path(weights).name}
    else:
        fitted = model.fit(split, task.generator, task.report) or {}
    save_model(model, parameters, task.output)
    return {"quality": evaluate(model, split.test, split.profiles), "fit": dict(fitted)}


@dataclass(frozen=True)
class Setting:
    """What every stage after the model works on."""

    interactions: Interactions
    split: Split
    model: Any


def _setting(task: Task) -> Setting:
    interactions, split = task.load("split", _load_split)
    return Setting(interactions, split, _model(task.input_paths["model"], task.input_paths["split"]))


@functools.lru_cache(maxsize=4)
def _model(folder: Path, split_folder: Path) -> Any:
    """A fitted model; kept in this process, since many chunks ask for it (a folder's name is its content's hash)."""
    return load_model(folder, load_split(split_folder).profiles)


def choose_units(task: Task) -> dict[str, Any]:
    """Draws the users to explain, and lists what is recommended to them: ``units.parquet``, a row for each unit.

    Columns: unit, group (one for each user), user, item (null at list level), rank, and for the stages
    user_index and items_index (the list, as indices).
    """
    setting = _setting(task)
    level, k = task.parameters["level"], task.parameters["k"]
    users = _users(task, setting)
    history = Targets.of(setting.split.profiles, users, np.zeros((len(users), 1)), k, level, "user-vector")
    lists = np.empty((len(users), k), dtype=np.int64)
    for rows, scores in score_blocks(setting.model, Edits.nothing(users), setting.split.profiles):
        if np.isnan(scores).any():
            user = setting.interactions.user_ids[users[rows][np.isnan(scores).any(axis=1)][0]]
            raise UserError(f"{task.work.label}: the recommender gives user {user!r} scores that are NaN")
        lists[rows] = top_k(scores, history.history[rows], history.padding[rows], k)
    units = _units_table(setting.interactions, users, lists, level)
    units.to_parquet(task.output / "units.parquet", index=False)
    summary = {"groups": units["group"].nunique(), "units": len(units)}
    short = np.count_nonzero((lists < 0).any(axis=1))
    if short:
        then = "no list to explain" if level == "list" else "what is left cannot leave the list"
        summary["note"] = f"{short} of {len(users)} users have fewer than {k} items left to recommend: {then}"
    return summary


def _users(task: Task, setting: Setting) -> IntArray:
    """The users to explain, as indices: those of a file, or a draw."""
    if "users_file" not in task.parameters:
        pool = setting.split.explainable
        stream = generator(
            task.work.seed, task.work.inputs["split"], "users"
        )  # the same users for every model
        drawn = stream.permutation(len(pool))[: task.parameters["users"]]
        return np.sort(pool[drawn])
    path = task.parameters["users_file"]
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)  # a user may be called "NA"
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as a table: {str(error).splitlines()[0]}") from None
    if "user" not in table:
        raise UserError(f"{path}: needs a column 'user', has {', '.join(table.columns)}")
    listed = table["user"].drop_duplicates()
    found = pd.Index(setting.interactions.user_ids).get_indexer(listed)
    if (found < 0).any():
        raise UserError(f"{path}: {listed[found < 0].iloc[0]!r} is not a user of {setting.interactions.name}")
    known = np.diff(setting.split.profiles.indptr)[found] > 0
    if not known.all():
        raise UserError(
            f"{path}: the split leaves {listed[~known].iloc[0]!r} no interaction to recommend from"
        )
    return found.astype(np.int64)


def _units_table(interactions: Interactions, users: IntArray, lists: IntArray, level: str) -> pd.DataFrame:
    """Users with too few candidates for a list of k have the items they have; at list level they are left out."""
    user_ids = interactions.user_ids[users]
    complete = (lists >= 0).all(axis=1)
    if level == "list":
        kept = np.flatnonzero(complete)
        return pd.DataFrame(
            {
                "unit": user_ids[kept],
                "group": np.arange(len(kept)),
                "user": user_ids[kept],
                "item": pd.Series([None] * len(kept), dtype="string"),
                "rank": pd.Series([None] * len(kept), dtype="Int64"),
                "user_index": users[kept],
                "items_index": list(lists[kept]),
            }
        )
    rows, places = np.nonzero(lists >= 0)
    items = lists[rows, places]
    item_ids = interactions.item_ids[items]
    return pd.DataFrame(
        {
            "unit": [f"{user}/{item}" for user, item in zip(user_ids[rows], item_ids, strict=True)],
            "group": np.unique(rows, return_inverse=True)[1],  # who has no candidate is no group
            "user": user_ids[rows],
            "item": pd.Series(item_ids, dtype="string"),
            "rank": pd.Series(places + 1, dtype="Int64"),
            "user_index": users[rows],
            "items_index": list(items[:, None]),
        }
    )


def _load_units(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "units.parquet")


@dataclass(frozen=True)
class Chunk:
    """The units of one piece of work."""

    units: pd.DataFrame
    targets: Targets

    def slice(self, level: str, format: str) -> pd.DataFrame:
        """The columns of the contract that say what a unit is."""
        return self.units[["unit", "user", "item", "rank"]].assign(level=level, format=format)


def _chunk(task: Task, setting: Setting, scope: str) -> Chunk:
    units = task.load(UNITS, _load_units)
    if task.chunk is not None:
        start, stop = task.chunk
        units = units[(units["group"] >= start) & (units["group"] < stop)].reset_index(drop=True)
    targets = Targets.of(
        setting.split.profiles,
        units["user_index"].to_numpy(np.int64),
        np.stack(units["items_index"].to_list()).astype(np.int64),
        task.parameters["k"],
        task.parameters["level"],
        scope,  # type: ignore[arg-type]
    )
    return Chunk(units, targets)


def _context(task: Task, setting: Setting, state: dict[str, np.ndarray] | None) -> Context:
    """What explainers may look at. They learn only from users who are not explained."""
    explained = task.load(UNITS, _load_units)["user_index"].unique()
    training = setting.split.train.copy()
    rows = np.repeat(np.arange(training.shape[0]), np.diff(training.indptr))
    training.data[np.isin(rows, explained)] = 0.0
    training.eliminate_zeros()
    return Context(setting.model, setting.split.profiles, training, task.generator, state)


def prepare_explainer(task: Task) -> dict[str, Any]:
    """Pre-training of an explainer, on users who are not explained."""
    setting = _setting(task)
    started = time.perf_counter()
    state = create(task.parameters["explainer"]).prepare(_context(task, setting, None))
    if not isinstance(state, Mapping) or not all(isinstance(array, np.ndarray) for array in state.values()):
        raise UserError(f"{task.work.label}: prepare must return NumPy arrays by name, a dict")
    save_state(state, task.output)
    return {"elapsed_seconds": time.perf_counter() - started}


def _explainer_and_context(task: Task, setting: Setting) -> tuple[Any, Context]:
    state = task.load("explainer", load_state) if "explainer" in task.input_paths else None
    return create(task.parameters["explainer"]), _context(task, setting, state)


def explain_implicit(task: Task) -> dict[str, Any]:
    """Importances of the interactions of each unit's user."""
    setting = _setting(task)
    chunk = _chunk(task, setting, task.parameters["scope"])
    explainer, context = _explainer_and_context(task, setting)
    started = time.perf_counter()
    importances = np.asarray(explainer.importances(chunk.targets, context), dtype=np.float64)
    elapsed = time.perf_counter() - started
    _check_importances(importances, chunk.targets, task.work.label)
    table = importances_table(
        setting.interactions, chunk.targets, importances, chunk.slice(chunk.targets.level, "implicit")
    )
    return _write(task, table, chunk, np.full(len(chunk.targets), elapsed / max(1, len(chunk.targets))))


def _check_importances(importances: FloatArray, targets: Targets, label: str) -> None:
    if importances.shape != targets.history.shape:
        raise UserError(
            f"{label}: importances has shape {importances.shape}, must be {targets.history.shape}"
        )
    if not np.isfinite(importances[~targets.padding]).all():
        raise UserError(f"{label}: importances has NaN or infinity for an interaction of the user")


def _check_edits(edits: Edits, targets: Targets, graph: sparse.csr_matrix, label: str) -> None:
    """What would go wrong later, or unseen. Which edges may be edited is checked where they are scored."""
    if not isinstance(edits, Edits):
        raise UserError(f"{label}: counterfactuals must return Edits, not {type(edits).__name__}")
    if not np.array_equal(edits.users, targets.users):
        raise UserError(f"{label}: counterfactuals must give one edit for each target, for its user")
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


def explain_explicit(task: Task) -> dict[str, Any]:
    """The edits that an explainer names itself, verified and pruned as the protocol says."""
    setting = _setting(task)
    chunk = _chunk(task, setting, task.parameters["scope"])
    explainer, context = _explainer_and_context(task, setting)
    started = time.perf_counter()
    edits: Edits = explainer.counterfactuals(chunk.targets, context)
    _check_edits(edits, chunk.targets, setting.split.profiles, task.work.label)
    edits = _finished(edits, setting, chunk.targets, task.parameters["answers"])
    elapsed = time.perf_counter() - started
    return _write_edits(task, setting, chunk, edits, np.full(len(edits), elapsed / max(1, len(edits))))


def derive_explicit(task: Task) -> dict[str, Any]:
    """Edits of a method that gives importances; its time counts too."""
    setting = _setting(task)
    chunk = _chunk(task, setting, task.parameters["scope"])
    table = pd.read_parquet(task.input_paths["importances"] / "explanations.parquet")
    importances, _ = read_importances(table, setting.interactions, chunk.targets, chunk.units["unit"])
    costs = pd.read_parquet(task.input_paths["importances"] / "costs.parquet")["elapsed_seconds"].to_numpy()
    answers = task.parameters["answers"]
    started = time.perf_counter()
    if answers["derive"] == "threshold":
        edits = threshold(chunk.targets, importances)
    else:
        edits = smallest_prefix(setting.model, chunk.targets, importances, setting.split.profiles)
    edits = _finished(edits, setting, chunk.targets, answers)
    elapsed = time.perf_counter() - started
    return _write_edits(task, setting, chunk, edits, costs + elapsed / max(1, len(edits)))


def _finished(edits: Edits, setting: Setting, targets: Targets, answers: Mapping[str, Any]) -> Edits:
    if answers["verify"]:
        edits = verify(setting.model, targets, edits, setting.split.profiles)
    if answers["prune"]:
        edits = prune(setting.model, targets, edits, setting.split.profiles)
    return edits


def import_explanations(task: Task) -> dict[str, Any]:
    """Explanations made elsewhere, checked and cut to the chunk; columns of the contract.

    Units that are not explained here are left out, and noted; where that leaves none, it is an error.
    """
    setting = _setting(task)
    chunk = _chunk(task, setting, task.parameters["scope"])
    path = Path(task.parameters["file"])
    table = _selected(read_table(path), task.parameters["labels"])
    note = unknown_units(table, task.load(UNITS, _load_units)["unit"], path)
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
    """The rows of a table that belong to a cell, as far as the table has columns that tell."""
    for name, value in labels.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    return table


def _write_edits(
    task: Task, setting: Setting, chunk: Chunk, edits: Edits, seconds: FloatArray
) -> dict[str, Any]:
    table = edits_table(setting.interactions, edits, chunk.slice(chunk.targets.level, "explicit"))
    return _write(task, table, chunk, seconds)


def _write(task: Task, table: pd.DataFrame, chunk: Chunk, seconds: FloatArray) -> dict[str, Any]:
    table.to_parquet(task.output / "explanations.parquet", index=False, compression="zstd")
    costs = pd.DataFrame({"unit": chunk.units["unit"], "elapsed_seconds": seconds})
    costs.to_parquet(task.output / "costs.parquet", index=False)
    return {"units": len(chunk.units)}


def score_implicit(task: Task) -> dict[str, Any]:
    """Metrics of importances."""
    setting = _setting(task)
    chunk = _chunk(task, setting, task.parameters["scope"])
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    importances, answered = read_importances(table, setting.interactions, chunk.targets, chunk.units["unit"])
    observed = ImplicitObservations(setting.model, chunk.targets, importances, setting.split.profiles)
    return _write_scores(task, chunk, observed, answered)


def score_explicit(task: Task) -> dict[str, Any]:
    """Metrics of edits."""
    setting = _setting(task)
    chunk = _chunk(task, setting, task.parameters["scope"])
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    edits = read_edits(
        table, setting.interactions, chunk.targets, chunk.units["unit"], setting.split.profiles
    )
    observed = ExplicitObservations(setting.model, chunk.targets, edits, setting.split.profiles)
    return _write_scores(task, chunk, observed, np.ones(len(edits), dtype=bool))


def _write_scores(task: Task, chunk: Chunk, observed: Any, answered: np.ndarray) -> dict[str, Any]:
    """``scores.parquet``: metric by metric, a row for each unit."""
    metrics = [create(parameters) for parameters in task.parameters["metrics"]]
    values = compute_metrics(metrics, observed)
    frame = chunk.units[["unit", "user", "item", "rank"]]
    status = np.where(answered, "ok", "skipped")
    parts = [
        frame.assign(metric=name, value=np.where(answered, column, np.nan), status=status)
        for name, column in values.items()
    ]
    scores = pd.concat(parts, ignore_index=True)[
        ["metric", "unit", "value", "status", "user", "item", "rank"]
    ]
    scores.to_parquet(task.output / "scores.parquet", index=False, compression="zstd")
    return {"units": len(chunk.units)}
