"""What the tables and reports of a run directory were made of. Where that is the same, they are not made again.

``inputs.json`` holds one digest of the plan, of every result, and of the code that makes tables and reports of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.checksums import is_as_written, recorded
from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.hashing import digest, file_digest
from cfbench_core.lifecycle.code import closure

if TYPE_CHECKING:
    from cfbench_core.plan import Plan
    from cfbench_core.registry import Registry
    from cfbench_core.runner import Results
    from cfbench_core.store import Store

FILE = "inputs.json"
REPORT = "report.html"


def inputs_of(
    plan: Plan, results: Results, store: Store, document: Mapping[str, Any], registry: Registry
) -> str:
    """The digest of all that tables and reports depend on, except the environment."""
    component = registry.find(plan.suite, "suite", plan.suite)
    analyses = [one.spec.target for one in registry.components("analysis", plan.suite)]
    code = closure("cfbench_core.api:execute", component.spec.target, *sorted(analyses))
    ends = [
        [task.key, store.digest(task.kind, task.key) if outcome.done else [outcome.status, outcome.reason]]
        for stage in plan.stages()
        for task, outcome in results.of(stage)
    ]
    problems = [
        [cell.id, problem.status, problem.reason]
        for cell in plan.to_run
        if (problem := results.problem(cell.stages["scores"])) is not None
    ]
    return digest(
        {
            "cells": plan.to_json(),
            "remarks": [cell.remark for cell in plan.cells],
            "layout": repr(plan.layout),
            "ends": ends,
            "problems": problems,
            "document": json.loads(json.dumps(document)),
            "code": code.digest,
            "libraries": dict(code.libraries),
        }
    )


def is_unchanged(directory: Path, inputs: str) -> bool:
    """Whether a run directory has tables and reports of these inputs, each as it was written."""
    try:
        known = json.loads((directory / FILE).read_bytes())
        if known["inputs"] != inputs or known["report"] != file_digest(directory / REPORT):
            return False
        names = recorded(directory)
        return FILE in names and all(is_as_written(directory, name) for name in names)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UserError):
        return False


def write_inputs(directory: Path, inputs: str) -> None:
    """Notes what the tables and reports were made of, when they are written."""
    known = {"inputs": inputs, "report": file_digest(directory / REPORT)}
    write_atomically(directory / FILE, json.dumps(known) + "\n")
