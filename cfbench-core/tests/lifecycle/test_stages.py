"""The optional parts of a suite's steps: details of units, several answers for a unit, further models."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cfbench_core.errors import UserError
from cfbench_core.lifecycle import stages
from cfbench_core.lifecycle.models import save_state
from cfbench_core.stages import Task, TaskContext


class Length:
    """A metric of each answer."""

    def __init__(self, config):
        pass

    def columns(self, point):
        return []

    def compute(self, observed):
        return {"length": np.array(observed.lengths, dtype=float)}


class Model:
    """A model that is one number."""

    def load_state(self, state, data):
        self.number = float(state["number"][0]) + data


@dataclass
class Observed:
    """Three answers: two for the first unit, and one for the second."""

    lengths: tuple[float, ...] = (1.0, 3.0, 5.0)

    @property
    def owner(self):
        return np.array([0, 0, 1])


UNITS = pd.DataFrame({"unit": ["a", "b"], "group": [0, 1]})
STEPS = {
    "load_data": f"{__name__}:load_data",
    "restore": f"{__name__}:restore",
    "open_chunk": f"{__name__}:open_chunk",
    "from_rows": f"{__name__}:from_rows",
    "to_rows": f"{__name__}:to_rows",
    "observe": f"{__name__}:observe",
    "describe": f"{__name__}:describe",
}


def load_data(context):
    return 10


def restore(component, state, data):
    model = Model()
    model.load_state(state, data)
    return model


def open_chunk(context, data, model, units):
    return SimpleNamespace(units=units, model=model, number=model.number)


def from_rows(chunk, rows):
    return rows["length"].to_numpy(), np.ones(len(chunk.units), dtype=bool)


def to_rows(chunk, answers):
    return chunk.units[["unit"]].assign(length=answers)


def observe(context, chunk, answers):
    return Observed()


def describe(chunk):
    return {"number": np.full(len(chunk.units), chunk.number)}


def too_short(chunk):
    return {"number": np.zeros(1)}


@pytest.fixture
def context(tmp_path):
    """``context(**changed)``: a task on two units, their external rows, and two models (1 and 2)."""
    folders = {name: tmp_path / name for name in ("units", "model", "second", "external", "out")}
    for folder in folders.values():
        folder.mkdir()
    UNITS.to_parquet(folders["units"] / "units.parquet")
    rows = UNITS[["unit"]].assign(length=[4.0, 5.0])
    rows.to_parquet(folders["external"] / "explanations.parquet")
    for number, name in enumerate(("model", "second"), start=1):
        save_state({"number": np.array([float(number)])}, folders[name])
    paths = {**folders, "explanations": folders["external"]}

    def made(parameters=None, **changed):
        steps = {**STEPS, **changed}
        steps = {name: step for name, step in steps.items() if step}
        keys = {role: f"{tmp_path}/{role}" for role in paths}
        models = {"model": {}, "second": {}}
        task = Task("k", "k", "scores", "a test", "", parameters or {}, keys, {}, 0, None, steps, "", models)
        return TaskContext(task, folders["out"], paths)

    return made


def test_the_class_of_a_cached_model_comes_from_the_plan_not_from_the_cache(context, tmp_path):
    hostile = {"component": "a/model/b", "target": "os:system", "config": None, "options": {}, "files": {}}
    for name in ("component.json", "recommender.json"):
        (tmp_path / "model" / name).write_text(json.dumps(hostile))
    given = []
    task = context(restore=f"{__name__}:record")
    record.calls = given
    stages.model_of(task)
    assert given == [task.task.models["model"]]


def record(component, state, data):
    record.calls.append(component)
    return restore(component, state, data)


def test_the_details_of_units_are_written_for_external_explanations(context):
    task = context()
    stages.import_explanations(task)
    details = pd.read_parquet(task.output / "details.parquet")
    assert details.to_dict("list") == {"unit": ["a", "b"], "name": ["number"] * 2, "value": [11.0, 11.0]}


def test_a_suite_without_details_of_units_writes_none(context):
    task = context(describe="")
    stages.import_explanations(task)
    assert not (task.output / "details.parquet").exists()


def test_details_of_units_of_another_shape_are_an_error(context):
    with pytest.raises(UserError, match=r"the detail 'number' has shape \(1,\), must be \(2,\)"):
        stages.import_explanations(context(describe=f"{__name__}:too_short"))


def test_metrics_of_several_answers_are_reduced_to_one_value_for_each_unit(context):
    metric = {"component": "", "target": f"{__name__}:Length", "config": None, "options": {}}
    task = context({"metrics": [{"metric": metric, "columns": {"length": "length"}}], "unit_columns": []})
    stages.score(task)
    scores = pd.read_parquet(task.output / "scores.parquet")
    assert scores[["unit", "value"]].to_dict("list") == {"unit": ["a", "b"], "value": [2.0, 5.0]}


class PartlyFailed(Observed):
    """The first answer of the first unit, and the only one of the second, could not be judged."""

    def failed(self, entry):
        return np.array([True, False, True])


def observe_failures(context, chunk, answers):
    return PartlyFailed()


def test_a_score_that_could_not_be_determined_is_missing_with_the_status_failed(context):
    metric = {"component": "", "target": f"{__name__}:Length", "config": None, "options": {}}
    parameters = {"metrics": [{"metric": metric, "columns": {"length": "length"}}], "unit_columns": []}
    task = context(parameters, observe=f"{__name__}:observe_failures")
    stages.score(task)
    scores = pd.read_parquet(task.output / "scores.parquet")
    assert scores["status"].tolist() == ["ok", "failed"]
    np.testing.assert_array_equal(scores["value"], [3.0, np.nan])  # the mean of the answers that were judged


def test_a_model_of_an_incomplete_input_is_not_reused(context, tmp_path):
    task = dataclasses.replace(context(), provisional=True)
    assert stages.model_of(task)[1].number == 11.0
    save_state({"number": np.array([5.0])}, tmp_path / "model")
    assert stages.model_of(task)[1].number == 15.0


def test_a_stage_reads_a_model_in_another_role(context):
    task = context()
    assert [stages.model_of(task, role)[1].number for role in ("model", "second")] == [11.0, 12.0]
