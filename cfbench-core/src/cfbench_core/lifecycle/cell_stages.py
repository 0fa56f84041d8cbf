"""From a planned cell to its stages: model, units, explainer, explanations, external explanations, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cfbench_core.lifecycle.declarations import Declarations
from cfbench_core.lifecycle.study import PlannedCell, PreparedModel, Setting, Study
from cfbench_core.stages import UNITS, Stage

AFTER_MODEL = ("load_data", "restore")
CHUNKED = (*AFTER_MODEL, "open_chunk")
DERIVED = ("derive", "from_rows_of_source", "to_rows")
"""Steps of stages that read a model, that also open a chunk, and that also derive answers from others."""


def model_stage(study: Study, model: PreparedModel) -> Stage:
    """Fits a model."""
    parameters = {"model": model.component.parameters(), "threads": study.config.threads}
    return study.stage("model", model.about, "fit_model", parameters, model.data.stages, ("load_data", "fit"))


def units_stage(suite: Declarations, setting: Setting) -> Stage:
    """Lists what is explained."""
    model = setting.model
    return setting.study.stage(
        "units",
        f"units of {model.data.dataset.label if suite.models_explain else model.about}",
        "choose_units",
        {"threads": setting.config.threads, **suite.unit_parameters(setting)},
        suite.observable(model),
        (*AFTER_MODEL, "choose_units"),
    )


def cell_stages(
    suite: Declarations, cell: PlannedCell, metrics: Sequence[Mapping[str, Any]]
) -> dict[str, Stage]:
    """The stages of a cell by role: those of its model, "units", "explanations", "scores" and others."""
    known = {**suite.observable(cell.model), UNITS: units_stage(suite, cell)}
    if suite.is_external(cell.explainer):
        explained = _external(suite, cell, known)
    else:
        explained = _explained(suite, cell, {**cell.model.stages, **known})
    further = suite.scored_inputs(cell, {**known, **explained})
    parameters = {"metrics": list(metrics), "unit_columns": list(suite.layout.unit_columns)}
    scores = cell.study.stage(
        "scores",
        f"scores of {suite.about(cell)}",
        "score",
        {**parameters, **suite.chunk_parameters(cell)},
        {**known, "explanations": explained["explanations"], **further},
        (*CHUNKED, "from_rows", "observe"),
        chunked=True,
    )
    return {**cell.model.stages, **known, **explained, **further, "scores": scores}


def _explained(suite: Declarations, cell: PlannedCell, known: Mapping[str, Stage]) -> dict[str, Stage]:
    """The stages that end in "explanations", with "explainer" where it is pre-trained."""
    source = suite.derived_from(cell)
    if source is not None:
        given = _explained(suite, replace(cell, point=source), known)
        inputs = {**known, "source": given["explanations"]}
        return {**given, "explanations": _explanations(suite, cell, "derive", {}, inputs, DERIVED)}
    explainer = {} if suite.models_explain else {"explainer": suite.explainer_as_queried(cell).parameters()}
    trained = _pretrained(suite, cell, explainer, known)
    further = suite.explained_inputs(cell)
    inputs = {**known, **trained, **further}
    explanations = _explanations(suite, cell, "explain", explainer, inputs, ("explain", "to_rows"))
    return {**trained, **further, "explanations": explanations}


def _pretrained(
    suite: Declarations, cell: PlannedCell, explainer: Mapping[str, Any], known: Mapping[str, Stage]
) -> dict[str, Stage]:
    """The stage that pre-trains an explainer, in the role "explainer"; none for one that learns nothing."""
    if "pretraining" not in cell.explainer.spec.provides:
        return {}
    label = f"{cell.explainer.label} trained for {cell.model.about}"
    parameters, inputs = {**explainer, "threads": cell.config.threads}, suite.pretraining_inputs(cell, known)
    steps = (*AFTER_MODEL, "prepare")
    return {"explainer": cell.study.stage("explainer", label, "prepare_explainer", parameters, inputs, steps)}


def _explanations(
    suite: Declarations,
    cell: PlannedCell,
    target: str,
    parameters: Mapping[str, Any],
    inputs: Mapping[str, Stage],
    steps: Sequence[str],
) -> Stage:
    """A chunked stage of kind "explanations"."""
    external = {} if "external" in inputs else suite.explanation_parameters(cell)
    threads = {} if "external" in inputs else {"threads": cell.config.threads}
    return cell.study.stage(
        "explanations",
        suite.about(cell),
        target,
        {**suite.chunk_parameters(cell), **parameters, **threads, **external},
        inputs,
        (*CHUNKED, *steps, "describe"),
        chunked=True,
    )


def _external(suite: Declarations, cell: PlannedCell, known: Mapping[str, Stage]) -> dict[str, Stage]:
    """External explanations: the rows of the table for this cell, checked at once, then chunk by chunk."""
    table = cell.study.external
    assert table is not None
    table.check_unit(suite.unit_key(cell))
    parameters = {
        "file": str(table.path.resolve()),
        "digest": table.digest,
        "labels": suite.labels(cell),
        "unit_key": list(suite.unit_key(cell)),
        "numbers": list(suite.external_numbers),
        **cell.point,
    }
    external = cell.study.stage(
        "external",
        f"external explanations of {suite.about(cell)}",
        suite.external_target,
        parameters,
        known,
        ("load_data", "read_file"),
        draws=False,
    )
    inputs, steps = {**known, "external": external}, ("from_rows", "to_rows")
    explanations = _explanations(suite, cell, "import_explanations", {}, inputs, steps)
    return {"external": external, "explanations": explanations}
