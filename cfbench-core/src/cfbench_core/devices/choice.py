"""The class of device that a stage computes on: ``cpu`` or ``cuda``, with the rules for its numbers, never its ordinal.

A component that can compute on a GPU has an option ``device`` with the values of :data:`Device`. A run resolves ``auto``
when it is planned, so that the parameters of a stage, and with them the key of its result, say where it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from cfbench_core.devices.gpus import visible_gpus

Device = Literal["auto", "cpu", "cuda"]
"""The values of an option ``device``."""

CPU = "cpu"
CUDA = "cuda"
AUTO = "auto"

DETERMINISTIC = "deterministic"
NO_TF32 = "no TF32"
"""The rules of computing on CUDA, as part of a key: see :mod:`cfbench_core.devices.cuda`."""


def resolved_device(config: Any) -> str:
    """The class that ``device: auto`` of a component means under the configuration of an experiment.

    With ``device: auto`` in the experiment too, an executor on other machines says what it is (the property
    ``auto_device`` of its options); else ``cuda`` where this machine has a GPU that torch can use.
    """
    if config.device != AUTO:
        return str(config.device)
    elsewhere = getattr(config.executor.options, "auto_device", None)
    if elsewhere is not None:
        return str(elsewhere)
    return CUDA if visible_gpus() else CPU


def with_device(parameters: Mapping[str, Any], device: str) -> Mapping[str, Any]:
    """Parameters of a stage, with ``device`` in place of ``auto`` in the options of its components."""
    changed: Mapping[str, Any] = _changed(parameters, lambda value: device if value == AUTO else value, False)
    return changed


def without_ordinals(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters of a stage with ``cuda`` in place of ``cuda:1``: GPUs of a class count as equal."""
    changed: Mapping[str, Any] = _changed(parameters, lambda value: value.partition(":")[0], False)
    return changed


def device_of(parameters: Mapping[str, Any], models: Mapping[str, Any], deterministic: bool) -> str:
    """Where a stage computes: ``"cpu"``, or ``"cuda, no TF32, deterministic"``.

    Args:
        parameters: of the stage, see :func:`with_device`.
        models: parameters of the models that it restores, by role.
    """
    devices = {*_devices(parameters, False), *_devices(models, False)}
    if not any(device.partition(":")[0] == CUDA for device in devices):
        return CPU
    return ", ".join([CUDA, NO_TF32, *([DETERMINISTIC] if deterministic else [])])


def _changed(value: Any, change: Callable[[str], str], in_options: bool) -> Any:
    """A value with other devices in the options of components; the same object where nothing changes."""
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        found = {
            name: change(inner)
            if in_options and name == "device" and isinstance(inner, str)
            else _changed(inner, change, in_options or name == "options")
            for name, inner in value.items()
        }
        return value if all(found[name] is inner for name, inner in value.items()) else found
    if isinstance(value, (list, tuple)):
        members = [_changed(inner, change, in_options) for inner in value]
        same = all(one is other for one, other in zip(members, value, strict=True))
        return value if same else type(value)(members)
    return value


def _devices(value: Any, in_options: bool) -> Iterator[str]:
    """The devices named in the options of components."""
    if isinstance(value, (str, int, float)):
        return
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if in_options and name == "device" and isinstance(inner, str):
                yield inner
            else:
                yield from _devices(inner, in_options or name == "options")
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _devices(inner, in_options)
