"""Whether this machine has the devices that a plan names, found before anything is computed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from typing import Any

from cfbench_core.devices.choice import CPU
from cfbench_core.devices.gpus import VISIBLE, torch_has_cuda, visible_gpus
from cfbench_core.errors import UserError
from cfbench_core.stages import Stage

NAMED = 3
"""So many stages are named in a message."""


def check_device(executor_options: Any, stages: Iterable[Stage]) -> None:
    """Checks that this machine has the device of each stage, if the executor computes on this machine.

    An executor on other machines (``on_this_machine`` of its options is false) finds out which of them lack a GPU.

    Raises:
        UserError: if a stage computes on CUDA, and this machine cannot.
    """
    if not getattr(executor_options, "on_this_machine", True):
        return
    labels = list(dict.fromkeys(stage.label for stage in stages if _chooses_cuda(stage)))
    obstacle = cuda_obstacle() if labels else ""
    if obstacle:
        more = f" and {len(labels) - NAMED} more" if len(labels) > NAMED else ""
        raise UserError(
            f"device: cuda is not available here: {obstacle}; needed for {', '.join(labels[:NAMED])}{more}; "
            "use 'auto' or 'cpu'"
        )


def _chooses_cuda(stage: Stage) -> bool:
    """Whether a stage computes on CUDA, and not because of what it reads."""
    return stage.device != CPU and all(needed.device == CPU for needed in stage.inputs.values())


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
