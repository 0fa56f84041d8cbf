"""A suite whose models explain themselves: its cells, and what their stages read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.models import save_state
from cfbench_core.lifecycle.stages import explain, score
from cfbench_core.lifecycle.steps import steps_in
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import MODEL_QUERIES, Cell, Column, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Task, TaskContext

UNITS = pd.DataFrame({"unit": ["a", "b", "c"], "group": [0, 1, 2]})


class WithoutOptions:
    def __init__(self, config: None = None) -> None: ...


class Writer(WithoutOptions):
    """A model that explains itself: the unit's name, but nothing for "b"."""

    def load_state(self, state: Any, data: Any) -> None: ...

    def write(self, units: list[str]) -> list[str | None]:
        return [None if unit == "b" else unit.upper() for unit in units]


class Data(WithoutOptions):
    def load(self) -> None: ...


class Length(WithoutOptions):
    def columns(self, point: Any) -> tuple[Column, ...]:
        return (Column("length"),)

    def compute(self, observed: list[str]) -> dict[str, Any]:
        return {"length": np.array([float(len(text)) for text in observed])}

    def signature(self) -> dict[str, str]:
        return {"counts": "characters"}


def component(kind: str, name: str, implementation: type, **more: Any) -> ConfiguredComponent:
    target = f"{__name__}:{implementation.__name__}"
    spec = ComponentSpec(id=f"notes/{kind}/{name}", summary="-", target=target, **more)
    return ConfiguredComponent(kind, name, spec)


@dataclass(frozen=True)
class Config:
    data: tuple[ConfiguredComponent, ...] = (component("dataset", "d", Data),)
    models: tuple[ConfiguredComponent, ...] = (
        component("model", "writer", Writer),
        component("model", "control", Writer, role="baseline"),
    )
    metrics: tuple[ConfiguredComponent, ...] | None = (component("metric", "length", Length),)
    seed: int = 0
    threads: int = 1
    device: str = "cpu"
    deterministic: bool = True


class Notes(LifecycleSuite):
    name = "notes"
    layout = TableLayout(by=("dataset",), row="model")
    steps: ClassVar[dict[str, str]] = steps_in(__name__)
    models_explain = True


# The steps that these tests run


def load_data(context: TaskContext) -> None: ...


def open_chunk(context: TaskContext, data: None, model: Any, units: pd.DataFrame) -> Any:
    @dataclass
    class Chunk:
        units: pd.DataFrame
        model: Any
        queries: tuple[str, ...] = ()

    return Chunk(units, model)


read_data = fit = choose_units = load_data


def explain_units(context: TaskContext, explainer: Any, model: Any, chunk: Any, state: None) -> Any:
    assert explainer is model
    return explainer.write(chunk.units["unit"].tolist()), {}


def to_rows(chunk: Any, answers: list[str | None]) -> pd.DataFrame:
    table = chunk.units[["unit"]].assign(text=answers)
    return table[table["text"].notna()]


def from_rows(chunk: Any, rows: pd.DataFrame) -> Any:
    found = dict(zip(rows["unit"], rows["text"], strict=True))
    answers = [found.get(unit) for unit in chunk.units["unit"]]
    return answers, np.array([one is not None for one in answers])


@dataclass
class Observed:
    texts: list[str]
    owner: Any

    def of(self, entry: Any) -> list[str]:
        return self.texts

    def summary(self) -> dict[str, Any]:
        return {"texts": len(self.texts), "signatures": {"reader": {"eyes": "2"}}}


def observe(context: TaskContext, chunk: Any, answers: list[str | None]) -> Observed:
    assert chunk.model is None
    return Observed([t for t in answers if t is not None], np.flatnonzero([t is not None for t in answers]))


def cells(explanations: Path | None = None, config: Config | None = None) -> list[Cell]:
    return list(Notes().cells(config or Config(), Registry(()), DataAccess(), explanations))


def test_a_cell_is_a_model_with_its_role_and_without_an_explainer() -> None:
    writer, control = cells()
    assert writer.labels == {"dataset": "d", "model": "writer"} and control.role == "baseline"
    assert writer.stages["scores"].label == "scores of writer on d"


def test_only_the_explanations_read_the_model() -> None:
    writer, control = cells()
    reading = {role for role, stage in writer.stages.items() if "model" in stage.inputs}
    assert reading == {"explanations"}
    assert "explainer" not in writer.stages["explanations"].parameters
    assert writer.stages["units"].key == control.stages["units"].key
    assert writer.stages["model"].key != control.stages["explanations"].key


def test_external_explanations_take_the_place_of_models(tmp_path: Path) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text("model,unit,text\nmine,a,A\nyours,a,B\n")
    found = cells(path)
    assert [cell.labels["model"] for cell in found] == ["mine", "yours"]
    assert all("model" not in cell.stages and "external" in cell.stages for cell in found)


def test_components_of_the_configuration_may_be_computed_next_to_external_ones(tmp_path: Path) -> None:
    class WithControls(Notes):
        def model_components(self, study: Any) -> Any:
            return [*super().model_components(study), study.config.models[1]]

    path = tmp_path / "theirs.csv"
    path.write_text("model,unit,text\nmine,a,A\n")
    mine, control = WithControls().cells(Config(), Registry(()), DataAccess(), path)
    assert "external" in mine.stages and "model" not in mine.stages
    assert "external" not in control.stages and "model" in control.stages and not control.skipped


@pytest.fixture
def context(tmp_path: Path) -> Any:
    def make(kind: str, **more: Any) -> TaskContext:
        cell = cells()[0]
        stage = replace(cell.stages[kind], steps={**cell.stages[kind].steps, **more})
        folders = {role: tmp_path / role for role in (*stage.inputs, kind)}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        UNITS.to_parquet(folders["units"] / "units.parquet")
        inputs = {role: str(folder) for role, folder in folders.items() if role != kind}
        models = {"model": component("model", "writer", Writer).parameters()}
        task = Task(
            "k", "s", kind, stage.label, "", stage.parameters, inputs, {}, 0, None, stage.steps, "d", models
        )
        return TaskContext(task, folders[kind], {role: Path(path) for role, path in inputs.items()})

    return make


def test_units_without_an_answer_are_not_observed_and_have_no_score(context: Any, tmp_path: Path) -> None:
    explaining = context("explanations", explain=f"{__name__}:explain_units")
    save_state({}, tmp_path / "model")
    assert explain(explaining) == {"units": 3, "answered": 2}
    details = tmp_path / "explanations" / "details.parquet"
    assert not details.exists() or MODEL_QUERIES not in set(pd.read_parquet(details)["name"])
    summary = score(context("scores"))
    assert summary["signatures"] == {
        "reader": {"eyes": "2"},
        "notes/metric/length": {"counts": "characters"},
    }
    scores = pd.read_parquet(tmp_path / "scores" / "scores.parquet")
    assert scores["status"].tolist() == ["ok", "skipped", "ok"] and scores["value"].isna().tolist()[1]
