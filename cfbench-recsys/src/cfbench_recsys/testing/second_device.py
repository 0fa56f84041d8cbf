"""A simulated second device, so that a machine without a GPU can find tensors that were made in the wrong place.

    with second_device() as device:
        torch.ones(3, device=device) + torch.ones(3)      # raises, as on a GPU: one of them is on the CPU

Tensors of the device compute on the CPU, with the same numbers, but refuse what a GPU refuses: operations with tensors of
the CPU (except for numbers, which have no dimension, and CPU indices into tensors of the device), and conversion to NumPy
without a copy to the CPU first. The device is called "simulated:0".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from cfbench_core.devices import cuda
from cfbench_core.devices.choice import CUDA

NAME = "simulated"


class _Module(_DummyBackendModule):
    """What ``torch.simulated`` must answer for activation checkpointing."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


# Autograd must know a device of this name. It can be registered once in a process.
_setup_privateuseone_for_python_backend(NAME, _Module())
DEVICE = torch.device(NAME, 0)
_aten = torch.ops.aten
COPIES = (_aten._to_copy.default, _aten.copy_.default)
"""Operations that move data between devices."""
INDEXED = (
    _aten.index.Tensor,
    _aten.index_put.default,
    _aten.index_put_.default,
    _aten._index_put_impl_.default,
)
"""Operations on a tensor and indices, which may be on the CPU."""


class SecondDeviceError(RuntimeError):
    """An operation that no real second device could do."""


class DeviceTensor(torch.Tensor):
    """A tensor of the simulated device; ``stored`` is the tensor on the CPU that computes for it."""

    stored: torch.Tensor

    @staticmethod
    def __new__(cls, stored: torch.Tensor) -> DeviceTensor:
        strided = stored.layout == torch.strided
        tensor: DeviceTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            stored.shape,
            strides=stored.stride() if strided else None,
            storage_offset=stored.storage_offset() if strided else None,
            dtype=stored.dtype,
            layout=torch.strided,
            device=DEVICE,
            requires_grad=stored.requires_grad,
        )
        return tensor

    def __init__(self, stored: torch.Tensor) -> None:
        self.stored = stored

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]  # the default would compute on the device
        return f"DeviceTensor({self.stored!r})"

    def tolist(self) -> Any:  # a GPU copies
        return self.stored.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise SecondDeviceError(f"a tensor of {DEVICE} is converted to NumPy; copy it to the CPU first")
        return self.stored.numpy(force=True)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _computed(function, args, kwargs or {})


class _SecondDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Makes tensors of the device where it is named, for example ``torch.zeros(3, device="cuda")``."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(function, args, kwargs or {})


# What torch.tensor(..., device=...) calls, which the mode does not see.
_library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]


@torch.library.impl(_library, "empty_strided", "PrivateUse1")
def _empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, device: Any = None, **_: Any
) -> DeviceTensor:
    return DeviceTensor(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


@torch.library.impl(_library, "_copy_from", "PrivateUse1")
def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    ends = [tensor.stored if isinstance(tensor, DeviceTensor) else tensor for tensor in (source, target)]
    ends[1].copy_(ends[0])
    return target


def _mode() -> TorchDispatchMode:
    return _SecondDevice()  # type: ignore[no-untyped-call]


@contextmanager
def second_device() -> Iterator[torch.device]:
    """The simulated device, inside of the ``with`` block."""
    # Autograd would compute on a thread of the device, where the mode does not apply.
    with _mode(), torch.autograd.set_multithreading_enabled(False):
        yield DEVICE


@contextmanager
def second_device_as_cuda() -> Iterator[torch.device]:
    """The simulated device, on which components with ``device: cuda`` compute inside of the ``with`` block."""
    chosen = cuda.torch_device

    def torch_device(name: str) -> torch.device:
        return DEVICE if name == CUDA else torch.device("cpu")

    # Components have imported the function by its name. Those that are imported inside find it in its own module.
    holders = [
        module for module in list(sys.modules.values()) if getattr(module, "torch_device", None) is chosen
    ]
    with second_device() as device:
        for module in holders:
            vars(module)["torch_device"] = torch_device
        try:
            yield device
        finally:
            for module in list(sys.modules.values()):
                if getattr(module, "torch_device", None) is torch_device:
                    vars(module)["torch_device"] = chosen


def _computed(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
    named = kwargs.get("device")
    there = bool(ours) if named is None else torch.device(named).type == DEVICE.type
    if function not in COPIES:
        _check(function, args, tensors, ours)
    stored_args, stored_kwargs = tree_map_only(
        DeviceTensor, lambda tensor: tensor.stored, (args, dict(kwargs))
    )
    if named is not None:
        stored_kwargs["device"] = torch.device("cpu")
    if function is _aten._to_copy.default and named is not None:
        stored_kwargs.pop("non_blocking", None)
    found = function(*stored_args, **stored_kwargs)
    if function is _aten._to_copy.default:
        return DeviceTensor(found) if there else found
    if not there:
        return found
    wrapped = tree_map_only(torch.Tensor, DeviceTensor, found)
    return return_and_correct_aliasing(function, args, kwargs, wrapped)  # type: ignore[no-untyped-call]


def _check(function: Any, args: Any, tensors: list[torch.Tensor], ours: list[DeviceTensor]) -> None:
    if not ours:
        return
    if function in INDEXED and isinstance(args[0], DeviceTensor):
        values = args[2] if len(args) > 2 else None
        tensors = [args[0], *([values] if isinstance(values, torch.Tensor) else [])]
    others = [tensor for tensor in tensors if not isinstance(tensor, DeviceTensor) and tensor.dim()]
    if others:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in others)
        message = f"{function} mixes devices: tensors of shape {shapes} are on the CPU, others on {DEVICE}"
        if torch._C._current_graph_task_id() >= 0:  # autograd may end the process with the exception
            print(message, file=sys.stderr, flush=True)
        raise SecondDeviceError(message)
