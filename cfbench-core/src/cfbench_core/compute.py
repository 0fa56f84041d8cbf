"""Computes one task in this process. How it ends is a value."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cfbench_core.artifact_manifest import is_incomplete
from cfbench_core.devices.cuda import NOT_DETERMINISTIC, nondeterministic_operation, set_up
from cfbench_core.errors import IncompleteWarning, ResultWarning, UserError
from cfbench_core.files import disk_full_message, is_disk_full
from cfbench_core.isolation.global_state import restored
from cfbench_core.isolation.watch import ComponentChangedInputsError, Watch
from cfbench_core.lifecycle.same_code import require_same_code
from cfbench_core.outcomes import Outcome, in_one_line
from cfbench_core.plain_text import one_line, shortened
from cfbench_core.redaction import redacted
from cfbench_core.specs import resolve
from cfbench_core.stages import DATA, Task, TaskContext
from cfbench_core.store import Store


def _ignore_progress(done: int, total: int) -> None: ...


def _do_nothing() -> None: ...


def compute(
    task: Task,
    store: Store,
    report: Callable[[int, int], None] = _ignore_progress,
    fresh: bool = False,
    begin: Callable[[], None] = _do_nothing,
    unfit: Callable[[], None] = _do_nothing,
    interruptible: bool = True,
    waiting: Callable[[], None] = _do_nothing,
) -> Outcome:
    """Calls the stage's function and stores what it writes; "cached" when the artifact is there already.

    Args:
        report: called by the stage with (done, total) as it proceeds.
        fresh: compute and replace the artifact though it is there.
        begin: called when the imports are over and the stage's function is about to be called.
        unfit: called when a component changed something in this process that others use: it must not compute
            another task.
        interruptible: whether KeyboardInterrupt leaves this function, as where a user may press Ctrl-C. Nothing
            else leaves it.
        waiting: called now and then while another process computes the same.

    Settings of the process are restored afterwards, and a component that changed what is not its own fails, see
    ``isolation/``. Times and memory are those of the function alone, without its imports and without storing;
    those of a cached artifact are those of the process that computed it.
    """
    try:
        found = _found(task, store, fresh)
        if found is not None:
            return found
        with store.reserved(task.kind, task.key, waiting) as appeared:
            found = _found(task, store, fresh) if appeared else None
            return found or _computed(task, store, report, fresh, begin, unfit, interruptible)
    except (OSError, UserError) as error:  # of the store: the disk fails, or the line to it broke
        return _failure(error, store.root, 0.0, 0)


def _found(task: Task, store: Store, fresh: bool) -> Outcome | None:
    """The outcome of a task whose result is there, and is wanted."""
    manifest = None if fresh else store.manifest(task.kind, task.key)
    if manifest is None or is_incomplete(manifest):
        return None
    store.mark_used(task.kind, task.key)
    return _outcome("cached", manifest)


def _computed(
    task: Task,
    store: Store,
    report: Callable[[int, int], None],
    fresh: bool,
    begin: Callable[[], None],
    unfit: Callable[[], None],
    interruptible: bool,
) -> Outcome:
    for last in (False, True):
        watch = Watch(task)
        with restored():
            outcome = _watched(task, store, report, fresh, begin, interruptible, watch, last)
        if watch.unfit:
            unfit()
        if outcome is not None:
            return outcome
    raise AssertionError("the last attempt has an outcome")


def _watched(
    task: Task,
    store: Store,
    report: Callable[[int, int], None],
    fresh: bool,
    begin: Callable[[], None],
    interruptible: bool,
    watch: Watch,
    last: bool,
) -> Outcome | None:
    """Computes a task. None: its folder was removed meanwhile, by a component of another process; try again."""
    meter = _Meter()
    temporary: Path | None = None
    try:
        watch.begin()
        require_same_code(task)
        set_up(task.device)
        function = resolve(task.target)
        temporary = store.begin()
        paths, provisional = _input_paths(task, store)
        context = TaskContext(task, temporary, paths, report, provisional)
        begin()
        meter.start()
        with _result_warnings() as (messages, missing):
            summary = _checked_summary(function(context), task)
        if provisional or missing:
            summary = {**summary, "incomplete": missing or ["an input is incomplete"]}
        meter.stop()
        watch.leave_if_forked()
        watch.check()
        manifest = store.commit(
            temporary, task, _with_note(summary, messages), meter.seconds, meter.peak_bytes, replace=fresh
        )
        return _outcome("ok", manifest)
    except BaseException as error:
        watch.leave_if_forked()
        meter.stop()
        if interruptible and isinstance(error, KeyboardInterrupt):
            raise
        blamed = _blamed(error, watch)
        lost_folder = temporary is not None and not temporary.is_dir()
        if lost_folder and not last and blamed is error and not watch.unfit:
            return None
        failure = _failure(blamed, store.root, meter.seconds, meter.peak_bytes)
        wrong_input = task.kind == DATA and isinstance(error, UserError)
        return dataclasses.replace(failure, wrong_input=wrong_input)
    finally:
        if temporary is not None:
            store.abandon(temporary)


def _blamed(error: BaseException, watch: Watch) -> BaseException:
    """What to report: that a component changed what is not its own, rather than what came of that."""
    try:
        watch.check()
    except ComponentChangedInputsError as change:
        change.__cause__ = error
        return change
    except BaseException as problem:  # of a component's object that no longer works
        problem.__cause__ = error
        watch.unfit = True
    return error


def _failure(error: BaseException, root: Path, elapsed_seconds: float, peak_memory_bytes: int) -> Outcome:
    return Outcome(
        "out_of_memory" if _is_out_of_memory(error) else "failed",
        redacted(_reason(error, root)),
        redacted(_traceback(error)),
        elapsed_seconds=elapsed_seconds,
        peak_memory_bytes=peak_memory_bytes,
    )


def _reason(error: BaseException, root: Path) -> str:
    """One line. A component may raise an exception whose message fails, is huge or moves the cursor."""
    name = one_line(type(error).__name__)
    try:
        if isinstance(error, UserError):
            return one_line(" ".join(error.lines))
        if is_disk_full(error):
            return disk_full_message(root, error)
        first_line = (str(error)[:MESSAGE_CHARACTERS].strip().splitlines() or [""])[0]
    except BaseException as problem:
        first_line = f"its message cannot be shown ({one_line(type(problem).__name__)})"
    if first_line in READ_ONLY:
        first_line += " (components receive read-only arrays: copy an array before changing it)"
    return f"{name}: {one_line(first_line, MOST_SHOWN)}" if first_line else name


MESSAGE_CHARACTERS = 10_000
"""Of a message, so many characters are searched for its first line."""

MOST_SHOWN = 500
"""Characters of an exception's message in a reason."""

READ_ONLY = frozenset({"assignment destination is read-only", "output array is read-only"})
"""Messages of NumPy."""


def _traceback(error: BaseException) -> str:
    try:
        return shortened("".join(traceback.format_exception(error)))
    except BaseException:
        return f"{one_line(type(error).__name__)}: its traceback cannot be shown"


def _is_out_of_memory(error: BaseException) -> bool:
    """MemoryError, or what torch raises in its place (torch is not imported here, so it is known by name)."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (type(error) is RuntimeError and "DefaultCPUAllocator: can't allocate memory" in str(error))
    )


def _input_paths(task: Task, store: Store) -> tuple[dict[str, Path], bool]:
    """The folders of the inputs, and whether one of them is incomplete."""
    provisional = False
    for role, key in task.inputs.items():
        manifest = store.fetch(task.input_kinds[role], key)
        if manifest is None:
            raise UserError(
                f"{task.label}: its input '{role}' ({task.input_kinds[role]} {key[:12]}) is not in the cache"
                " any more, or damaged. Run the same command again."
            )
        provisional |= is_incomplete(manifest)
        store.mark_used(task.input_kinds[role], key)
    return {role: store.path(task.input_kinds[role], key) for role, key in task.inputs.items()}, provisional


def _checked_summary(summary: object, task: Task) -> Mapping[str, Any]:
    if summary is None:
        return {}
    if not isinstance(summary, Mapping):
        raise TypeError(
            f"{task.target} must return a summary (a mapping) or None, not {type(summary).__name__}"
        )
    return summary


@contextlib.contextmanager
def _result_warnings() -> Iterator[tuple[list[str], list[str]]]:
    """Messages of the result warnings inside, each once, in order; other warnings are shown as usual.

    Yields:
        All messages, and those of warnings that the result is incomplete.
    """
    messages: list[str] = []
    missing: list[str] = []
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if operation := nondeterministic_operation(str(message)):
                message, category = operation, ResultWarning
            if not issubclass(category, ResultWarning):
                others(message, category, *where, **more)
            elif str(message) not in messages:
                messages.append(str(message))
                missing.extend([str(message)] if issubclass(category, IncompleteWarning) else [])

        warnings.simplefilter("always", ResultWarning)
        warnings.filterwarnings("default", message=f".*{NOT_DETERMINISTIC}")
        warnings.showwarning = show
        yield messages, missing


def _with_note(summary: Mapping[str, Any], messages: list[str]) -> Mapping[str, Any]:
    own = [str(summary["note"])] if summary.get("note") else []
    return {**summary, "note": in_one_line([*own, *messages])} if messages else summary


def _outcome(status: Any, manifest: Mapping[str, Any]) -> Outcome:
    return Outcome(
        status,
        summary=manifest["summary"],
        computed_by=manifest["computed_by"],
        elapsed_seconds=manifest["elapsed_seconds"],
        peak_memory_bytes=manifest["peak_memory_bytes"],
    )


class _Meter:
    """Time and peak memory of this process between start and stop.

    On Linux the kernel's high-water mark is set back at the start, so the peak is that of this task (with all
    that the process holds by then). Elsewhere it is the highest since the process began. Child processes are
    not in it.
    """

    seconds = 0.0
    peak_bytes = 0
    _begun: float | None = None

    def start(self) -> None:
        with contextlib.suppress(OSError):  # not Linux, or not permitted: see above
            Path("/proc/self/clear_refs").write_text("5")
        self._begun = time.perf_counter()

    def stop(self) -> None:
        if self._begun is None:
            return
        self.seconds = time.perf_counter() - self._begun
        self.peak_bytes = _peak_memory()
        self._begun = None


def _peak_memory() -> int:
    """The high-water mark of resident memory, in bytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
