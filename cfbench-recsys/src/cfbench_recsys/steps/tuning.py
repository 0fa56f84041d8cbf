"""The users on whom ``cfbench tune`` judges an explainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError
from cfbench_core.stages import TaskContext
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import IntArray
from cfbench_recsys.steps.chunks import write_withheld
from cfbench_recsys.steps.data import SplitData, load_data
from cfbench_recsys.steps.units import lists_of, users_to_explain


def choose_tuning_units(
    context: TaskContext, data: SplitData, model: ScoringModel
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """As ``choose_units``, for the users on whom explainers are judged."""
    return lists_of(context, data, model, _judging_users(context, data, users_to_explain(context, data)))


def withhold_tuning_users(context: TaskContext) -> dict[str, Any]:
    """As ``withhold_users``: the users whom the run explains, and those on whom explainers are judged."""
    data = load_data(context)
    explained = users_to_explain(context, data)
    return write_withheld(context, np.union1d(explained, _judging_users(context, data, explained)))


def _judging_users(context: TaskContext, data: SplitData, explained: IntArray) -> IntArray:
    """``sample`` users (fewer, where there are fewer) whom the run does not explain, as indices.

    With ``held_out`` they are the next users of the same random order, by whom no trial was judged.
    """
    others = np.setdiff1d(data.split.explainable, explained)
    if not len(others):
        raise UserError(
            f"all {len(explained)} users who may be explained are explained, none is left to tune on: lower"
            " protocol.users"
        )
    size = context.parameters["sample"]
    start = size if context.parameters.get("held_out") else 0
    drawn = context.streams.generator("tuning users").permutation(len(others))[start : start + size]
    if not len(drawn):
        raise UserError(f"all {len(others)} users who are not explained judged the trials, none is held out")
    return np.sort(others[drawn])
