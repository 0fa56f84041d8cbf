"""Settings of the process that a task may change, and that do not outlive it.

Each is a name for messages, a function that reads it, and one that sets it to what was read. Libraries that are not
imported have no settings; they are not imported from here.
"""

from __future__ import annotations

import contextlib
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfbench_core.devices.cuda import tf32_switches


@dataclass(frozen=True)
class Setting:
    """A setting of the process.

    Attributes:
        name: for people.
        read: returns its value; what it returns must not change with the setting.
        write: sets a value that ``read`` returned.
        default: the value in a new process, for a setting of a library that a task imports; None: left as it is.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    default: Any = None

    def put_back(self, value: Any) -> None:
        """Sets the value unless it is there already: some settings cost time once they are set."""
        if not _same(self.read(), value):
            self.write(value)


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (ValueError, RuntimeError):  # arrays, tensors
        return False


def _environment(values: dict[str, str]) -> None:
    for name in os.environ.keys() - values.keys():
        del os.environ[name]
    os.environ.update(values)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _working_directory() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return None


def _change_directory(folder: str | None) -> None:
    if folder is not None:
        os.chdir(folder)


_SIGNALS = tuple(
    number
    for number in signal.valid_signals()
    if number not in (getattr(signal, "SIGKILL", 0), getattr(signal, "SIGSTOP", 0))
)


def _signal_handlers() -> tuple[Any, ...] | None:
    if threading.current_thread() is not threading.main_thread():
        return None
    return tuple(signal.getsignal(number) for number in _SIGNALS)


def _set_signal_handlers(handlers: tuple[Any, ...] | None) -> None:
    if handlers is None or threading.current_thread() is not threading.main_thread():
        return
    for number, handler in zip(_SIGNALS, handlers, strict=True):
        if handler is not None and signal.getsignal(number) is not handler:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, handler)


def _logging() -> tuple[int, int, list[Any]]:
    root = logging.getLogger()
    return root.level, root.manager.disable, list(root.handlers)


def _set_logging(state: tuple[int, int, list[Any]]) -> None:
    root = logging.getLogger()
    level, disabled, handlers = state
    if root.level != level:
        root.setLevel(level)
    if root.manager.disable != disabled:
        logging.disable(disabled)
    root.handlers[:] = handlers


def _streams() -> tuple[Any, ...]:
    return (sys.stdin, sys.stdout, sys.stderr, sys.excepthook, sys.displayhook)


def _set_streams(values: tuple[Any, ...]) -> None:
    sys.stdin, sys.stdout, sys.stderr, sys.excepthook, sys.displayhook = values


def _tracing() -> tuple[Any, Any]:
    return sys.gettrace(), sys.getprofile()


def _set_tracing(values: tuple[Any, Any]) -> None:
    if sys.gettrace() is not values[0]:
        sys.settrace(values[0])
    if sys.getprofile() is not values[1]:
        sys.setprofile(values[1])


def _set_garbage_collection(state: tuple[bool, tuple[int, ...]]) -> None:
    enabled, thresholds = state
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*thresholds)


def _set_recursion_limit(limit: int) -> None:
    if sys.getrecursionlimit() != limit:
        sys.setrecursionlimit(limit)


def _alarm_is_set() -> bool:
    return hasattr(signal, "getitimer") and signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0)


def _cancel_alarm(before: bool) -> None:
    if not before:
        signal.setitimer(signal.ITIMER_REAL, 0)


SETTINGS = (
    Setting("the random state", random.getstate, random.setstate),
    Setting("the environment", lambda: dict(os.environ), _environment),
    Setting("the working directory", _working_directory, _change_directory),
    Setting("signal handlers", _signal_handlers, _set_signal_handlers),
    Setting(
        "the locale",
        lambda: locale.setlocale(locale.LC_ALL),
        lambda value: locale.setlocale(locale.LC_ALL, value),
    ),
    Setting("sys.path", lambda: list(sys.path), lambda value: sys.path.__setitem__(slice(None), value)),
    Setting("logging", _logging, _set_logging),
    Setting("the recursion limit", sys.getrecursionlimit, _set_recursion_limit),
    Setting("the file mode mask", _umask, os.umask),
    Setting("garbage collection", lambda: (gc.isenabled(), gc.get_threshold()), _set_garbage_collection),
    Setting("standard streams", _streams, _set_streams),
    Setting("tracing", _tracing, _set_tracing),
    Setting("the switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Setting("the alarm", _alarm_is_set, _cancel_alarm),
)
"""Settings of Python and the system."""


def _numpy_settings(numpy: Any) -> tuple[Setting, ...]:
    def set_errors(state: tuple[dict[str, Any], Any]) -> None:
        numpy.seterr(**state[0])
        numpy.seterrcall(state[1])

    return (
        Setting("NumPy's random state", numpy.random.get_state, numpy.random.set_state),
        Setting("numpy.seterr", lambda: (numpy.geterr(), numpy.geterrcall()), set_errors),
    )


def _attributes(name: str, places: Sequence[tuple[Any, str]], default: tuple[Any, ...]) -> Setting:
    """A setting whose value is in several attributes of objects."""

    def read() -> tuple[Any, ...]:
        return tuple(getattr(owner, attribute) for owner, attribute in places)

    def write(values: tuple[Any, ...]) -> None:
        for (owner, attribute), value in zip(places, values, strict=True):
            setattr(owner, attribute, value)

    return Setting(name, read, write, default)


def _torch_settings(torch: Any) -> tuple[Setting, ...]:
    def deterministic() -> tuple[bool, bool]:
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )

    def set_deterministic(state: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(state[0], warn_only=state[1])

    def device() -> str:
        return str(torch.get_default_device())

    def set_device(name: str) -> None:
        torch.set_default_device(None if name == "cpu" else name)

    backends = torch.backends
    products = backends.cuda.matmul
    sums = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    convolutions = ("deterministic", "benchmark")
    tf32, on, _ = tf32_switches(torch)
    precision = (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision)
    anomalies = (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly)
    return (
        Setting("torch's random state", torch.get_rng_state, torch.set_rng_state),
        Setting("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        Setting("torch's default device", device, set_device, "cpu"),
        Setting("torch's gradient mode", torch.is_grad_enabled, torch.set_grad_enabled, True),
        Setting("torch's deterministic algorithms", deterministic, set_deterministic, (False, False)),
        Setting("torch's matrix products", *precision, "highest"),
        _attributes("torch's sums of narrow types", [(products, name) for name in sums], (True, True)),
        _attributes("cuDNN's algorithms", [(backends.cudnn, name) for name in convolutions], (False, False)),
        _attributes("TF32 in cuDNN", tf32, (on,) * len(tf32)),
        Setting("torch's anomaly detection", *anomalies, False),
    )


def _settings() -> tuple[Setting, ...]:
    """Those of Python and of the libraries that are imported."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (
        *SETTINGS,
        *(_numpy_settings(numpy) if hasattr(numpy, "random") else ()),
        *(_torch_settings(torch) if hasattr(torch, "set_float32_matmul_precision") else ()),
    )


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """All settings are at the end what they were at the beginning, also after an exception.

    A library that is imported inside gets the settings that it has in a new process.
    """
    before = {setting.name: setting.read() for setting in _settings()}
    with warnings.catch_warnings():
        # torch warns that it could write into a read-only array; whether it did is checked by fingerprints.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        try:
            yield
        finally:
            for setting in _settings():
                value = before.get(setting.name, setting.default)
                if value is not None:
                    setting.put_back(value)
