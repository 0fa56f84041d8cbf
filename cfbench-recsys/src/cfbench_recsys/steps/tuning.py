"""The users on whom ``cfbench tune`` judges an explainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError
from cfbench_core.stages import TaskContext
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.steps.chunks import WITHHELD
from cfbench_recsys.steps.data import SplitData
from cfbench_recsys.steps.units import lists_of, users_to_explain


def choose_tuning_units(
    context: TaskContext, data: SplitData, model: ScoringModel
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """As ``choose_units``, for ``sample`` users (fewer, where there are fewer) whom a run does not explain.

    Those whom it explains are withheld from what explainers learn, in addition to the sample itself. With ``held_out``
    the sample consists of the next users of the same random order, whom no trial used.
    """
    explained = users_to_explain(context, data)
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
    pd.DataFrame({"user_index": explained}).to_parquet(context.output / WITHHELD, index=False)
    return lists_of(context, data, model, np.sort(others[drawn]))
