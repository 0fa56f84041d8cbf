"""Tasks and outcomes as JSON, all that crosses a pipe: numbers arrive to the last bit, code never does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from cfbench_core.outcomes import Outcome
from cfbench_core.plain_text import one_line, shortened
from cfbench_core.stages import Task


def to_json(value: Task | Outcome) -> str:
    """One line of JSON."""
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return json.dumps(fields, default=_plain, allow_nan=False)


def task_from_json(text: str) -> Task:
    fields = json.loads(text)
    if fields["chunk"] is not None:
        fields["chunk"] = tuple(fields["chunk"])
    return Task(**fields)


def outcome_from_json(text: str) -> Outcome:
    """The outcome that a worker reported.

    Raises:
        ValueError, TypeError: if it is none.
    """
    outcome = Outcome(**json.loads(text))
    return dataclasses.replace(
        outcome, reason=one_line(outcome.reason), traceback=shortened(outcome.traceback)
    )


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} ({type(value).__name__}) is not JSON")
