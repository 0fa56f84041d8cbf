"""Stages that stand in for those of the toy suite, and end badly or in an unusual way."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd  # at the top: what a stage's module imports does not count against its deadline
import toy_suite

from cfbench_core.errors import IncompleteWarning, ResultWarning, UserError
from cfbench_core.stages import TaskContext


def fails(task: TaskContext) -> None:
    raise UserError("the factor is not for me")


def chooses_nothing(task: TaskContext) -> dict[str, Any]:
    pd.DataFrame({"unit": pd.Series([], dtype=str), "group": pd.Series([], dtype=int)}).to_parquet(
        task.output / "units.parquet"
    )
    return {"groups": 0, "note": "every number is too large"}


def chooses_nothing_at_all(task: TaskContext) -> dict[str, Any]:
    """No units, and no word about it."""
    return {"groups": chooses_nothing(task)["groups"]}


def fits_with_a_warning(task: TaskContext) -> dict[str, Any]:
    warnings.warn("measured on few units", ResultWarning, stacklevel=1)
    return toy_suite.fit(task)


def chooses_with_more_columns(task: TaskContext) -> dict[str, Any]:
    """Two units in each of two groups; "colour" is for people, "place" for the suite's own stages."""
    units = {"unit": ["0", "1", "2", "3"], "group": [0, 0, 1, 1], "colour": list("rgrg"), "place": [[0]] * 4}
    pd.DataFrame(units).to_parquet(task.output / "units.parquet")
    return {"groups": 2}


def explains_the_first_group(task: TaskContext) -> dict[str, Any]:
    assert task.chunk is not None
    if task.chunk[0] > 0:
        raise ValueError("only the first, please")
    rows = {"unit": ["0", "1"], "digit": ["0", "2"], "noise": [0.5, 0.5]}
    pd.DataFrame(rows).to_parquet(task.output / "explanations.parquet")
    pd.DataFrame({"unit": ["0", "1"], "elapsed_seconds": 0.001}).to_parquet(task.output / "costs.parquet")
    return {"note": "2 numbers were small"}


def explains_with_warnings(task: TaskContext) -> dict[str, Any]:
    for _ in range(2):
        warnings.warn("1 number was cut", ResultWarning, stacklevel=1)
    warnings.warn("somebody else's", DeprecationWarning, stacklevel=1)
    return explains_the_first_group(task)


def explains_while_the_server_is_down(task: TaskContext) -> dict[str, Any]:
    warnings.warn("the server is down", IncompleteWarning, stacklevel=1)
    return explains_the_first_group(task)


def scores_with_failures(task: TaskContext) -> dict[str, Any]:
    """One of two units has failed, and as many may."""
    scores_with_a_colour(task)
    return {"units": 2, "failed": 1, "max_failed": 0.5}


def scores_with_too_many_failures(task: TaskContext) -> dict[str, Any]:
    return {**scores_with_failures(task), "max_failed": 0.4}


def scores_with_a_colour(task: TaskContext) -> None:
    explained = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    pd.DataFrame(
        {"metric": "sum", "unit": explained["unit"], "value": 1.0, "status": "ok", "colour": ["r", "g"]}
    ).to_parquet(task.output / "scores.parquet")


def scores_and_lists_digits(task: TaskContext) -> None:
    """Beside the scores a further table, of numbers with several digits; a chunk without one has no such table."""
    toy_suite.score(task)
    explained = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    rows = [
        {"unit": unit, "place": place, "digit": digit}
        for unit, digits in zip(explained["unit"], explained["digit"], strict=True)
        for place, digit in enumerate(digits)
        if len(digits) > 1
    ]
    if rows:
        pd.DataFrame(rows).to_parquet(task.output / "digits.parquet")
