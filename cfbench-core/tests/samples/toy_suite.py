"""A suite of the tests: numbers are explained by their digits. Small enough to be checked by hand.

data (numbers 0..n-1) -> model (multiplies) -> units -> explanations (per chunk) -> scores (per chunk).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd  # at the top: what a stage's module imports does not count against its deadline

from cfbench_core.config import ConfiguredComponent, Help, InputFile, OfKind, Range, Search
from cfbench_core.errors import UserError
from cfbench_core.plan import Cell, Column, TableLayout
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import UNITS, Stage, TaskContext
from cfbench_core.suites import Experiment
from cfbench_core.tuning import TrialPlan, Tunable, mean_score, reported


@dataclass(frozen=True, kw_only=True)
class NumbersConfig:
    count: Annotated[int, Range(minimum=1), Help("how many numbers")] = 10


class Numbers:
    def __init__(self, config: NumbersConfig) -> None:
        self.config = config


@dataclass(frozen=True, kw_only=True)
class TimesConfig:
    factor: Annotated[float, Range(above=0), Search(0.5, 50, log=True)] = 2.0
    table: Annotated[str | None, InputFile()] = None
    pause: Annotated[float, Help("seconds that fitting takes")] = 0.0


class Times:
    def __init__(self, config: TimesConfig) -> None:
        self.config = config


@dataclass(frozen=True, kw_only=True)
class DigitsConfig:
    base: Annotated[int, Range(minimum=2, maximum=16), Search(3, 16), Help("of the digits")] = 10
    order: Literal["ascending", "descending"] = "ascending"
    misbehave: Annotated[str, Help("what goes wrong for number 7")] = ""


class Digits:
    def __init__(self, config: DigitsConfig) -> None:
        self.config = config


@dataclass(frozen=True, kw_only=True)
class Protocol:
    levels: tuple[Literal["digit", "number"], ...] = ("digit",)
    k: Annotated[tuple[int, ...], Range(minimum=1)] = (1,)
    rate: Annotated[float | None, Range(minimum=0, maximum=1)] = None


@dataclass(frozen=True, kw_only=True)
class ToyConfig(Experiment):
    data: Annotated[ConfiguredComponent, OfKind("dataset")]
    models: Annotated[tuple[ConfiguredComponent, ...], OfKind("recommender")]
    explainers: Annotated[tuple[ConfiguredComponent, ...], OfKind("explainer")]
    protocol: Protocol = field(default_factory=Protocol)


class ToySuite:
    config = ToyConfig
    layout = TableLayout(by=("dataset", "model"), row="explainer")

    def default_document(self, registry: Any) -> Mapping[str, Any]:
        return {"suite": "toy", "data": "numbers", "models": "times", "explainers": ["digits"]}

    def example_document(self, registry: Any) -> str:
        return "suite: toy\ndata: numbers\nmodels: times\nexplainers: [digits]\n"

    def imported(self, kind: str, implementation: type) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return {}, {}

    def describe_data(self, config: ToyConfig, summaries: Mapping[str, Any]) -> str:
        return ""

    def verbalize(self, run: Any) -> str:
        return "7 is explained by 7."

    def tunable(
        self,
        config: ToyConfig,
        registry: Any,
        access: Any,
        reference: ConfiguredComponent,
        metric: str | None,
        sample: int,
    ) -> Tunable:
        """A model is judged by how close its factor is to 7, an explainer by the mean sum of its digits."""
        (model,) = config.models

        def stages(candidate: ConfiguredComponent) -> Mapping[str, Stage]:
            models = candidate.kind == "recommender"
            pair = (candidate, config.explainers[0]) if models else (model, candidate)
            return self.cell(config, *pair).stages

        shared = stages(reference)
        if reference.kind == "recommender":
            return Tunable(
                f"validation {metric or 'closeness'}",
                "higher",
                config.data.label,
                lambda candidate: TrialPlan(
                    {"model": (fitted := stages(candidate)["model"])},
                    lambda results, _: reported(results, fitted, "fit", "validation", metric or "closeness"),
                ),
                {"data": shared["model"].inputs["data"]},
            )
        return Tunable(
            metric or "sum",
            "lower",
            config.data.label,
            lambda candidate: TrialPlan(
                {"scores": (scored := stages(candidate)["scores"])},
                lambda results, store: mean_score(results, scored, store, metric or "sum"),
            ),
            {"model": shared["model"], UNITS: shared["units"]},
        )

    def cells(
        self, config: ToyConfig, registry: Any, access: Any = None, explanations: Path | None = None
    ) -> Sequence[Cell]:
        return [
            self.cell(config, model, explainer) for model in config.models for explainer in config.explainers
        ]

    def cell(self, config: ToyConfig, model: ConfiguredComponent, explainer: ConfiguredComponent) -> Cell:
        labels = {"dataset": config.data.label, "model": model.label, "explainer": explainer.label}
        if explainer.label == "skipped":
            return Cell(labels, skipped="it is called skipped")
        data = Stage("data", config.data.label, "toy_suite:make_data", {"data": config.data.parameters()})
        fitted = Stage(
            "model", model.label, "toy_suite:fit", {"model": model.parameters()}, {"data": data}, config.seed
        )
        units = Stage("units", "units", "toy_suite:choose", {}, {"data": data}, config.seed)
        explained = Stage(
            "explanations",
            explainer.label,
            "toy_suite:explain",
            {"explainer": explainer.parameters()},
            {"model": fitted, UNITS: units},
            config.seed,
            chunked=True,
        )
        scored = Stage(
            "scores",
            "scores",
            "toy_suite:score",
            {},
            {"explanations": explained, UNITS: units},
            config.seed,
            chunked=True,
        )
        stages = {"model": fitted, "units": units, "explanations": explained, "scores": scored}
        return Cell(labels, (Column("sum", "lower"), Column("noise", "higher", (0, 1))), stages)


def make_data(task: TaskContext) -> dict[str, Any]:
    count = task.parameters["data"]["options"]["count"]
    (task.output / "data.json").write_text(json.dumps(list(range(count))))
    return {"count": count}


def fit(task: TaskContext) -> dict[str, Any]:
    for step in range(3):
        task.report(step + 1, 3)
    options = task.parameters["model"]["options"]
    factor = options["factor"]
    time.sleep(options.get("pause", 0.0))
    if factor > 20:
        raise UserError("it diverged")
    (task.output / "factor.json").write_text(json.dumps(factor))
    return {"quality": {"accuracy": 1.0}, "fit": {"validation": {"closeness": 1 / (1 + abs(factor - 7))}}}


def choose(task: TaskContext) -> dict[str, Any]:
    numbers = task.load("data", read_json)
    pd.DataFrame({"unit": [str(n) for n in numbers], "group": numbers}).to_parquet(
        task.output / "units.parquet"
    )
    return {"groups": len(numbers), "units": len(numbers)}


def read_json(folder: Path) -> Any:
    (file,) = [path for path in folder.glob("*.json") if path.name != "artifact.json"]
    return json.loads(file.read_text())


def explain(task: TaskContext) -> dict[str, Any]:
    options = task.parameters["explainer"]["options"]
    factor = task.load("model", read_json)
    assert task.chunk is not None
    rows = []
    for number in range(*task.chunk):
        if number == 7 and options["misbehave"]:
            misbehave(options["misbehave"])
        noise = task.streams.generator("explain", str(number)).random()
        digits = digits_of(int(number * factor), options.get("base", 10))
        rows.append({"unit": str(number), "digit": digits, "noise": noise})
    pd.DataFrame(rows).to_parquet(task.output / "explanations.parquet")
    costs = pd.DataFrame({"unit": [row["unit"] for row in rows], "elapsed_seconds": 0.001})
    costs.to_parquet(task.output / "costs.parquet")
    return {}


def digits_of(number: int, base: int) -> str:
    """ "ff" of 255 in base 16."""
    last = "0123456789abcdef"[number % base]
    return last if number < base else digits_of(number // base, base) + last


def misbehave(how: str) -> None:
    if how == "raise":
        raise ValueError("seven is not for me")
    if how == "hang":
        time.sleep(3600)
    if how == "eat":
        hoard = []
        while True:
            hoard.append(bytearray(32 * 2**20))
            time.sleep(0.005)
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(3)
    if how == "print":
        print('{"event": "finished"}')
    if how.startswith("wait:"):  # waits until a file appears: lets a test stop a run in the middle
        while not Path(how.removeprefix("wait:")).exists():
            time.sleep(0.01)


def score(task: TaskContext) -> dict[str, Any]:
    explained = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    sums = explained["digit"].map(lambda digits: float(sum(int(digit, 16) for digit in digits)))
    parts = [
        pd.DataFrame({"metric": "sum", "unit": explained["unit"], "value": sums, "status": "ok"}),
        pd.DataFrame(
            {"metric": "noise", "unit": explained["unit"], "value": explained["noise"], "status": "ok"}
        ),
    ]
    pd.concat(parts, ignore_index=True).to_parquet(task.output / "scores.parquet")
    return {}


SPECS = [
    ComponentSpec(id="toy/suite/toy", summary="Numbers and their digits", target="toy_suite:ToySuite"),
    ComponentSpec(
        id="toy/dataset/numbers",
        summary="0, 1, 2, ...",
        target="toy_suite:Numbers",
        config="toy_suite:NumbersConfig",
    ),
    ComponentSpec(
        id="toy/recommender/times",
        summary="Multiplies",
        target="toy_suite:Times",
        config="toy_suite:TimesConfig",
    ),
    ComponentSpec(
        id="toy/explainer/digits",
        summary="Says the digits",
        target="toy_suite:Digits",
        config="toy_suite:DigitsConfig",
    ),
    ComponentSpec(id="toy/explainer/plain", summary="Nothing to set", target="toy_suite:Digits"),
]
