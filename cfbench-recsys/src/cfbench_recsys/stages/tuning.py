"""The users on whom ``cfbench tune`` judges an explainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError
from cfbench_core.seeds import generator
from cfbench_core.stages import TaskContext
from cfbench_recsys.stages.common import WITHHELD, setting_of
from cfbench_recsys.stages.units import users_to_explain, write_units


def choose_tuning_units(task: TaskContext) -> dict[str, Any]:
    """As ``choose_units``, for ``sample`` users (fewer, where there are fewer) whom a run does not explain.

    Those whom it explains are withheld from what explainers learn, in addition to the sample.
    """
    setting = setting_of(task)
    explained = users_to_explain(task, setting)
    others = np.setdiff1d(setting.split.explainable, explained)
    if not len(others):
        raise UserError(
            f"all {len(explained)} users who may be explained are explained, none is left to tune on: lower"
            " protocol.users"
        )
    stream = generator(task.task.seed, "tuning users", setting.interactions.name)
    drawn = stream.permutation(len(others))[: task.parameters["sample"]]
    pd.DataFrame({"user_index": explained}).to_parquet(task.output / WITHHELD, index=False)
    return write_units(task, setting, np.sort(others[drawn]))
