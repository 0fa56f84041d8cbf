"""Standard output and error that never end a command: whatever their encoding, and when nobody reads them any more."""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from pathlib import Path
from typing import Any, TextIO

_HANDLER = "cfbench_core.plain"
_ASCII = "cfbench_ascii"
"""ASCII under another name: for streams in ASCII, click writes UTF-8."""
_PLAIN = {
    "±": "+/-",
    "·": "-",
    "…": "...",
    "–": "-",
    "—": "-",
    "━": "-",
    "─": "-",
    "│": "|",
    "→": "->",
    "↑": "^",
    "↓": "v",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
}


def prepare_streams() -> None:
    """Prepares ``sys.stdout`` and ``sys.stderr`` of a command, where they are those of the process.

    Characters that the terminal's encoding lacks are written in ASCII. When the reader of a pipe ends (``cfbench run |
    head``), what is written afterwards is dropped, and the command continues to its end and its own exit code.
    """
    codecs.register_error(_HANDLER, _in_ascii)
    codecs.register(_find_ascii)
    _open_missing()
    if sys.stdout is sys.__stdout__:
        sys.stdout = _prepared(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _prepared(sys.stderr)


def shows_unicode(stream: TextIO | None) -> bool:
    """Whether the stream's encoding has every character."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def _prepared(stream: Any) -> Any:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if os.name != "posix":  # the console of Windows is no file
        stream.reconfigure(errors=_HANDLER)
        return stream
    stream.flush()
    # The object of the interpreter stays open, and is flushed at the end: it is empty.
    raw = _Dropping(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=_ASCII if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding,
        errors=_HANDLER,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _Dropping(io.FileIO):
    """Becomes the null device when its reader is gone; what else writes to the descriptor is dropped then as well.

    So it does after any other error, which is raised once: the interpreter flushes the rest at its end.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if not isinstance(error, BrokenPipeError):
                raise
            return len(data)


def _open_missing() -> None:
    """The null device for streams that the caller closed (``cfbench run >&-``): files must not get their numbers."""
    if sys.stdout is not None and sys.stderr is not None:
        return
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _find_ascii(name: str) -> codecs.CodecInfo | None:
    if name != _ASCII:
        return None
    real = codecs.lookup("ascii")
    return codecs.CodecInfo(
        real.encode, real.decode, None, None, real.incrementalencoder, real.incrementaldecoder, _ASCII
    )


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return f"\\u{ord(character):04x}"
    letters = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode("ascii")
    return _PLAIN.get(character) or letters or "?"
