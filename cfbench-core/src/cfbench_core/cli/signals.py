"""SIGTERM and SIGHUP end a command as Ctrl-C does: workers end, nothing is left behind, the cursor is shown again."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from cfbench_core.cli.exit_codes import STOPPED

_NAMES = ("SIGTERM", "SIGHUP")


class Ended:
    """The signal that ended the command; SIGINT, which Python turns into KeyboardInterrupt, unless another did."""

    def __init__(self) -> None:
        self.number: int | None = None

    @property
    def exit_code(self) -> int:
        """As a shell has it: 128 and the number of the signal."""
        return STOPPED if self.number is None else 128 + self.number


@contextlib.contextmanager
def as_interrupts() -> Iterator[Ended]:
    """Raises KeyboardInterrupt in the block for SIGTERM and SIGHUP. A second signal ends the process at once.

    A signal that is ignored (``nohup``) or that somebody handles already stays as it is.
    """
    ended = Ended()

    def handle(number: int, frame: FrameType | None) -> None:
        ended.number = number
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may handle signals
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield ended
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def end_quietly() -> None:
    """Lets a late Ctrl-C, while the interpreter shuts down, end it without a traceback."""
    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(ValueError):
            if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
