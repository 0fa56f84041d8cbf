"""A process that computes on CUDA: the rules for its numbers, and its share of the memory of the GPU.

Numbers of the types float32 and float64 are computed as such, never in TF32 or with sums of a narrower type. In the
deterministic mode torch uses the algorithms that give the same bits each time; an operation that has none is computed all
the same, and the result says which operation that is.
"""

from __future__ import annotations

import os
from typing import Any

from cfbench_core.devices.choice import CPU, CUDA, DETERMINISTIC
from cfbench_core.devices.gpus import SHARE, WORKSPACE
from cfbench_core.errors import UserError

NOT_DETERMINISTIC = "does not have a deterministic implementation"
"""In the words of torch."""

SEED = 67280421310721
"""Of torch's random stream in a new process."""


def set_up(device: str) -> None:
    """Sets up this process for a stage that computes on ``device``, see :func:`cfbench_core.devices.choice.device_of`.

    Imports torch for CUDA; does nothing for the CPU. What it sets is restored after the task, see
    ``isolation/global_state.py``.
    """
    if device == CPU:
        return
    for name, value in WORKSPACE.items():
        os.environ.setdefault(name, value)
    import torch

    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    switches, _, off = tf32_switches(torch)
    for owner, attribute in switches:
        setattr(owner, attribute, off)
    torch.backends.cudnn.benchmark = False
    deterministic = DETERMINISTIC in device
    torch.backends.cudnn.deterministic = deterministic
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(SEED)
        torch.cuda.set_per_process_memory_fraction(float(os.environ.get(SHARE, "1")))


def torch_device(name: str) -> Any:
    """The torch device that ``device: auto | cpu | cuda`` of a component means in this process.

    Raises:
        UserError: if cuda is requested and not available.
    """
    import torch

    if name == CUDA and not torch.cuda.is_available():
        raise UserError("device: cuda is not available here; use 'auto' or 'cpu'")
    return torch.device(CUDA if name != CPU and torch.cuda.is_available() else CPU)


def tf32_switches(torch: Any) -> tuple[list[tuple[Any, str]], Any, Any]:
    """The attributes, as owner and name, that allow cuDNN to compute float32 in TF32; and their values for yes and no.

    Since torch 2.9 parts of cuDNN have one each, and reading the older common one may raise.
    """
    cudnn = torch.backends.cudnn
    if hasattr(cudnn, "conv"):
        return [(part, "fp32_precision") for part in (cudnn.conv, cudnn.rnn)], "tf32", "ieee"
    return [(cudnn, "allow_tf32")], True, False


def nondeterministic_operation(message: str) -> str:
    """What to say of a warning of torch about an operation that is not deterministic; "" for other warnings."""
    if NOT_DETERMINISTIC not in message:
        return ""
    operation = message.partition(NOT_DETERMINISTIC)[0].strip()
    return f"{operation} has no deterministic implementation: another run may differ in the last digits"
