"""Whose code a task runs."""

from __future__ import annotations

from cfbench_core.isolation.domains import domain
from cfbench_core.isolation.packages import own_packages
from cfbench_core.stages import Stage

TARGET = "cfbench_core.lifecycle.stages:explain"


def component(target: str) -> dict[str, object]:
    return {"component": "toy/explainer/x", "target": target, "config": None, "options": {}}


def stage(kind: str = "explanations", inputs: dict[str, Stage] | None = None, **parameters: object) -> Stage:
    return Stage(kind, "label", TARGET, parameters, inputs or {})


def test_the_packages_of_the_project_are_known() -> None:
    assert "cfbench_core" in own_packages()
    assert "cfbench_explainer_mine" not in own_packages()


def test_a_stage_with_the_projects_own_code_has_no_domain() -> None:
    assert domain(stage(explainer=component("cfbench_core.analyses:Any"))) == ""


def test_a_component_of_another_distribution_gives_its_package() -> None:
    assert domain(stage(explainer=component("mine.package:Explainer"))) == "mine"


def test_a_stage_that_reads_a_foreign_model_runs_its_code() -> None:
    model = stage("model", model=component("theirs:Model"))
    assert domain(stage(inputs={"model": model}, explainer=component("mine:X"))) == "mine+theirs"


def test_scores_of_a_foreign_explainer_are_computed_without_its_code() -> None:
    explained = stage(explainer=component("mine:Explainer"))
    assert domain(stage("scores", {"explanations": explained}, metrics=[])) == ""
