"""Whether this machine has the devices that a plan names, found before anything is computed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from typing import Any

from cfbench_core.devices.choice import CPU
from cfbench_core.devices.gpus import VISIBLE, torch_has_cuda, visible_gpus
from cfbench_core.errors import UserError
from cfbench_core.stages import Stage

NAMED = 3
"""So many stages are named in a message."""


def check_device(executor_options: Any, stages: Sequence[Stage]) -> None:
    """Checks that the stages can be computed, see :func:`device_problem`.

    Raises:
        UserError: if a stage computes on CUDA, and this machine cannot.
    """
    problem = device_problem(executor_options, stages)
    if problem:
        raise UserError(f"{problem}; use 'auto' or 'cpu'")


def device_problem(executor_options: Any, stages: Sequence[Stage]) -> str:
    """Why this machine cannot compute stages on CUDA, and which; empty if it can, or if none is to be computed here.

    An executor on other machines (``on_this_machine`` of its options is false) finds out which of them lack a GPU.
    Named are the stages that compute on CUDA on their own account, not those that follow one of these.
    """
    if not getattr(executor_options, "on_this_machine", True):
        return ""
    on_cuda = [stage for stage in stages if stage.device != CPU]
    obstacle = cuda_obstacle() if on_cuda else ""
    if not obstacle:
        return ""
    keys = {stage.key for stage in on_cuda}
    own = [stage for stage in on_cuda if not any(needed.key in keys for needed in stage.inputs.values())]
    labels = list(dict.fromkeys(stage.label for stage in own))
    more = f" and {len(labels) - NAMED} more" if len(labels) > NAMED else ""
    return f"device: cuda is not available here: {obstacle}; needed for {', '.join(labels[:NAMED])}{more}"


def cuda_obstacle() -> str:
    """Why torch cannot compute on CUDA in this process; empty if it can.

    Imports torch where no GPU is listed: only torch is certain that there is none.
    """
    if visible_gpus():
        return ""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    import torch

    if torch.cuda.is_available():
        return ""
    if not torch_has_cuda():
        return f"torch {torch.__version__} is not built for CUDA"
    allowed = f" that {VISIBLE}={os.environ[VISIBLE]} allows" if VISIBLE in os.environ else ""
    return f"torch finds no GPU{allowed}"
