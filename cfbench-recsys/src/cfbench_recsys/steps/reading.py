"""Reading a dataset. A module of its own: a change of the split does not read data again."""

from __future__ import annotations

from typing import Any

from cfbench_core.stages import TaskContext
from cfbench_recsys.interactions import Interactions


def read_data(context: TaskContext, loaded: Interactions) -> dict[str, Any]:
    """A dataset as it was loaded."""
    loaded.save(context.output)
    return loaded.summary()
