"""The stages of the life cycle: generic functions that call the steps of a suite, in workers.

data -> model -> units -> [explainer] -> explanations -> scores

The steps, each a function of the suite named in ``Stage.steps``:

- ``read_data(context, loaded) -> summary``: writes what a dataset loaded as prepared data.
- ``load_data(context) -> data``: reads prepared data back; models are fitted to it and restored with it.
- ``fit(context, data) -> (model, summary)``: creates and trains the model, or takes given weights; the summary holds
  ``{"quality": {name: value}}`` on held-out data.
- ``restore(component, state, data) -> model``: a fitted model again, from its parameters and its ``state()``.
- ``choose_units(context, data, model) -> (units, summary)``: what is explained, a frame with ``unit``, ``group``, ...
- ``open_chunk(context, data, model, units) -> chunk``: the units of a task (a :class:`Chunk`).
- ``prepare(context, explainer, data, model) -> state``: pre-training of an explainer.
- ``explain(context, explainer, model, chunk, state) -> (answers, details)``: queries an explainer.
- ``derive(context, answers, model, chunk) -> answers``: answers of another format from existing ones.
- ``to_rows(chunk, answers) -> rows`` and ``from_rows(chunk, rows) -> (answers, answered)``: answers as rows of the
  contract's table, and back. Answers pass between stages only as this table, with identifiers of the data file, so external
  explanations are scored by the same code, to the same numbers.
- ``observe(context, chunk, answers) -> observed``: what metrics get to see; where it has a method
  ``observed.of(entry)``, that is called for the entry of each metric. If it has a method ``observed.failed(entry)``, that
  returns (R,) which values could not be determined: these are missing, with the status "failed". Where units have
  several answers, or none, ``observed.owner`` (R,) is the place of the unit of each answer: metrics then return R values,
  and the score of a unit is the mean of its own. What ``observed.summary()`` returns, if it exists, is added to the
  summary of the stage; "failed" and "max_failed" in it are the number of such answers and the share that a cell may have.
- ``describe(chunk) -> details``: optional; what is known of the units whoever explains them, as details. Not timed.

In a suite whose models explain themselves, the explainer is the model, and the stages other than the explanations get None
as the model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from cfbench_core.config.component import create
from cfbench_core.isolation.packages import foreign_package
from cfbench_core.isolation.protection import protect
from cfbench_core.lifecycle.counting import CountedModel
from cfbench_core.lifecycle.models import checked_state, load_state, save_state
from cfbench_core.lifecycle.tables import (
    BoolArray,
    checked_details,
    compute_metrics,
    means_by_unit,
    read_costs,
    read_detail,
    read_explanations,
    units_of_chunk,
    write_explanations,
    write_scores,
    write_units,
)
from cfbench_core.plan import MODEL_QUERIES
from cfbench_core.real_arrays import FloatArray
from cfbench_core.stages import TaskContext


class Chunk(Protocol):
    """The units of one task, B of them, with what the stages after the model need.

    It may have ``seconds_of_loading``: a call that loads libraries and takes less than this is timed once more, after
    ``forget()``, if the chunk has it, released what the first call computed for later ones.
    """

    units: pd.DataFrame
    """B rows of ``units.parquet``."""

    model: Any
    """The model that is explained."""

    queries: tuple[str, ...]
    """Methods by which an explainer queries the model; their first argument has a row for each query."""


def read_data(context: TaskContext) -> Mapping[str, Any]:
    """Loads a dataset, from its files where it has some, and prepares it."""
    dataset = create(context.parameters["dataset"])
    found = [context.parameters["source"]] if "source" in context.parameters else []
    summary: Mapping[str, Any] = context.step("read_data")(context, dataset.load(*found))
    return summary


def fit_model(context: TaskContext) -> Mapping[str, Any]:
    """Trains a model, judges it on held-out data, and saves it."""
    model, summary = context.step("fit")(context, _load_data(context))
    save_state(model.state(), context.output)
    return dict(summary)


def model_of(context: TaskContext, role: str = "model") -> tuple[Any, Any]:
    """The prepared data and the model of a stage after the model; both stay in the process for the next task.

    A stage that does not read the model gets None for it.
    """
    data = _load_data(context)
    if role not in context.input_paths:
        return data, None
    key = (context.input_paths[role], context.task.inputs[role])
    model = None if context.provisional else _models.get(key)
    if model is None:
        model = context.step("restore")(
            context.task.models[role], load_state(context.input_paths[role]), data
        )
    if not context.provisional:
        while key not in _models and len(_models) >= MOST_MODELS:
            _models.pop(next(iter(_models)))
        _models[key] = model
    return data, protect(f"the {role}", model)


def _load_data(context: TaskContext) -> Any:
    return protect("the data", context.step("load_data")(context))


MOST_MODELS = 4
"""Models that stay in a process."""

_models: dict[tuple[Path, str], Any] = {}


def forget_models() -> None:
    """Releases the models that stay in this process."""
    _models.clear()


def choose_units(context: TaskContext) -> Mapping[str, Any]:
    """Lists what is explained."""
    units, summary = context.step("choose_units")(context, *model_of(context))
    return {**summary, "groups": write_units(context, units), "units": len(units)}


def prepare_explainer(context: TaskContext) -> Mapping[str, Any]:
    """Pre-trains an explainer, and saves what it learned: nothing, with some options of some explainers."""
    data, model = model_of(context)
    explainer = create(context.parameters["explainer"])
    started = time.perf_counter()
    state = context.step("prepare")(context, explainer, data, model)
    seconds = time.perf_counter() - started
    learned = checked_state(state, context.task.label)
    save_state(learned, context.output)
    return {"elapsed_seconds": seconds, **({} if learned else {"learned": False})}


def _open_chunk(context: TaskContext) -> Any:
    chunk = context.step("open_chunk")(context, *model_of(context), units_of_chunk(context))
    return protect("the units", chunk, lasting=False)


def explain(context: TaskContext) -> Mapping[str, Any]:
    """Queries an explainer for all units of the chunk. The time is that of this call, in equal shares.

    A call that loads libraries on its way does not measure an answer: a fresh explainer is then called again, if the
    chunk asks for that.
    """
    chunk = _open_chunk(context)
    state = context.load("explainer", load_state) if "explainer" in context.input_paths else None
    loaded = len(sys.modules)
    answers, details, seconds, queries = _timed(context, chunk, state)
    if len(sys.modules) > loaded and seconds < getattr(chunk, "seconds_of_loading", 0.0):
        if hasattr(chunk, "forget"):
            chunk.forget()
        # another chunk: this one may remember what the model answered
        answers, details, seconds, queries = _timed(context, _open_chunk(context), state)
    details = checked_details(details, len(chunk.units), context.task.label)
    return write_explanations(
        context,
        chunk.units,
        context.step("to_rows")(chunk, answers),
        _each(seconds, chunk),
        {
            **_described(context, chunk),
            **details,
            **({MODEL_QUERIES: _each(queries, chunk)} if chunk.queries else {}),
        },
    )


def _described(context: TaskContext, chunk: Any) -> dict[str, FloatArray]:
    """The details of the units themselves; none where the suite has no step for them."""
    if "describe" not in context.task.steps:
        return {}
    return checked_details(context.step("describe")(chunk), len(chunk.units), context.task.label)


def _timed(context: TaskContext, chunk: Any, state: Any) -> tuple[Any, Mapping[str, Any], float, int]:
    """Answers and details of a fresh explainer, the seconds of the call alone, and its model queries."""
    model = CountedModel(chunk.model, chunk.queries)
    explainer = create(context.parameters["explainer"]) if "explainer" in context.parameters else model
    step = context.step("explain")
    started = time.perf_counter()
    answers, details = step(context, explainer, model, chunk, state)
    return answers, details, time.perf_counter() - started, model.queries


def _each(total: float, chunk: Any) -> FloatArray:
    """(B,) the share of each unit in what a batch took."""
    return np.full(len(chunk.units), total / max(1, len(chunk.units)))


def derive(context: TaskContext) -> Mapping[str, Any]:
    """Answers of another format, made from those in the role ``source``, whose time and queries they add to."""
    chunk = _open_chunk(context)
    given, _ = context.step("from_rows_of_source")(chunk, read_explanations(context, "source"))
    model = CountedModel(chunk.model, chunk.queries)
    started = time.perf_counter()
    answers = context.step("derive")(context, given, model, chunk)
    seconds = time.perf_counter() - started
    queries = read_detail(context, "source", MODEL_QUERIES, chunk.units)
    return write_explanations(
        context,
        chunk.units,
        context.step("to_rows")(chunk, answers),
        read_costs(context, "source") + _each(seconds, chunk),
        {MODEL_QUERIES: queries + _each(model.queries, chunk)},
    )


def import_explanations(context: TaskContext) -> Mapping[str, Any]:
    """The external explanations of the chunk's units, checked. Their time is unknown."""
    chunk = _open_chunk(context)
    rows = read_explanations(context, "external", chunk.units)
    answers, answered = context.step("from_rows")(chunk, rows)
    table = context.step("to_rows")(chunk, answers)
    unanswered = chunk.units["unit"][~answered]  # these have no answer, which is not an answer of zeros
    rows = table[~table["unit"].isin(unanswered)]
    return write_explanations(context, chunk.units, rows, np.nan, _described(context, chunk))


def score(context: TaskContext) -> Mapping[str, Any]:
    """Scores explanations as they stand in their table.

    Metrics may have ``signature()``, which says what determines their values besides their options (versions of
    libraries, revisions of models); it is recorded with the run.
    """
    chunk = _open_chunk(context)
    answers, answered = context.step("from_rows")(chunk, read_explanations(context))
    observed = context.step("observe")(context, chunk, answers)
    entries = context.parameters["metrics"]
    metrics = [create(entry["metric"]) for entry in entries]
    seen = [observed.of(entry) if hasattr(observed, "of") else observed for entry in entries]
    columns = [entry["columns"] for entry in entries]
    owner = getattr(observed, "owner", None)
    size = len(chunk.units) if owner is None else len(owner)
    listed = list(zip(metrics, columns, seen, strict=True))
    # The project's own come first: a metric of another distribution may change what it observes.
    order = sorted(range(len(listed)), key=lambda n: bool(foreign_package(entries[n]["metric"]["target"])))
    found = compute_metrics([listed[n] for n in order], size)
    values = {shown: found[shown] for chosen in columns for shown in chosen.values()}
    failed: dict[str, BoolArray] = {}
    places = np.arange(size) if owner is None else owner
    if hasattr(observed, "failed"):
        for entry in entries:
            lost = observed.failed(entry)
            for shown in entry["columns"].values():
                values[shown] = np.where(lost, np.nan, values[shown])
                failed[shown] = np.isin(np.arange(len(chunk.units)), places[lost])
    if owner is not None:
        values = {name: means_by_unit(column, owner, len(chunk.units)) for name, column in values.items()}
    write_scores(context, chunk.units, context.parameters["unit_columns"], values, answered, failed)
    reported = dict(observed.summary()) if hasattr(observed, "summary") else {}
    signatures = {
        **reported.pop("signatures", {}),
        **{
            entry["metric"]["component"]: dict(metric.signature())
            for entry, metric in zip(entries, metrics, strict=True)
            if hasattr(metric, "signature")
        },
    }
    if signatures:
        reported["signatures"] = signatures
    return {"units": len(chunk.units), **reported}
