"""Rows of a delimited text, with their lines; text whose quotes or bytes cannot be meant is refused or remarked on."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

from cfbench_core.errors import UserError

SHOWN = 40
"""Characters of a cell that a message shows."""
WORD = re.compile(r"[A-Za-z]*[^\W\x00-\x7f]\w{0,20}|[^\x00-\x7f]")
"""With a letter, or a sign, beyond ASCII."""


def separated_rows(text: str, separator: str, file: str, skipped: int = 0) -> Iterator[tuple[list[str], int]]:
    """The cells of each row of a text, and the number of its last line; ``skipped``: lines of the file before the text.

    A line without any separator and without any text is no row.

    Raises:
        UserError: if a cell cannot be read, or the quote before a cell of several lines is not closed at its end.
    """
    for row, first, last, lines in _records(text, separator, file, skipped):
        if lines and not _is_closed(lines, separator):
            cell = next((cell for cell in row if "\n" in cell or "\r" in cell), row[-1])
            raise UserError(
                f"{file}:{first}: a quoted cell continues on line {last}, and its quote is not closed in front of a "
                f"separator ({_shown(cell)}): remove the stray quote, or write it twice"
            )
        yield row, last


def on_swallowed_lines(text: str, separator: str, file: str, skipped: int = 0) -> str:
    """The first quoted cell of several lines of which each looks like a row of its own; "" for none."""
    if '"' not in text:
        return ""
    for row, first, last, lines in _records(text, separator, file, skipped):
        if lines and len(row) > 1 and all(line.count(separator) + 1 == len(row) for line in lines):
            cell = next(cell for cell in row if "\n" in cell or "\r" in cell)
            return (
                f"{file}:{first}: a quoted cell continues on line {last} ({_shown(cell)}), but each of these lines looks "
                "like a row: correct the file if the quotes are not meant so"
            )
    return ""


def check_bytes(rows: Sequence[Sequence[str]], lines: Sequence[int], names: Sequence[str], file: str) -> None:
    """Refuse NUL bytes, which are no text, with the line and the column of the first.

    Raises:
        UserError: if a cell holds one.
    """
    for row, line in zip(rows, lines, strict=True):
        for place, cell in enumerate(row):
            if "\0" in cell:
                column = f"column {names[place]!r}" if place < len(names) else f"cell {place + 1}"
                raise UserError(
                    f"{file}:{line}: {column}: holds a NUL byte ({_shown(cell)}): remove it, or set encoding to utf-16 if "
                    "the file is of that encoding"
                )


def on_mixed_encodings(data: bytes, encoding: str) -> str:
    """Of bytes that are not UTF-8 as a whole: a line that is, and how it is misread in ``encoding``; "" if none is."""
    other = ""
    bad = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.isascii():
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            bad = bad or number
            continue
        if not other and (word := WORD.search(text)):
            wrong = word[0].encode("utf-8").decode(encoding, "replace")
            other = f"line {number} is ({word[0]!r}, read as {wrong!r}): write all lines in the same encoding"
    return f"line {bad} is not UTF-8, but {other}" if bad and other else ""


def _records(
    text: str, separator: str, file: str, skipped: int
) -> Iterator[tuple[list[str], int, int, list[str]]]:
    """The cells of each row, the first and the last of its lines, and these lines if they are several."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            read.append(line)
            yield line

    source = lines() if '"' in text else io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=separator, skipinitialspace=True)
    first = 1 + skipped
    try:
        for row in reader:
            last = reader.line_num + skipped
            if len(row) > 1 or any(cell.strip() for cell in row):
                yield row, first, last, list(read) if last > first else []
            read.clear()
            first = last + 1
    except csv.Error as error:
        raise UserError(f"{file}:{reader.line_num + skipped}: cannot be read: {error}") from None


def _is_closed(lines: Sequence[str], separator: str) -> bool:
    """Whether a separator or the end of the row follows each closing quote, perhaps after blanks."""
    text = re.sub(rf'"[ \t]+(?={re.escape(separator)}|\r|\n|$)', '"', "".join(lines))
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    try:
        list(reader)
    except csv.Error:
        return False
    return True


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= SHOWN else f"{cell[:SHOWN]}...")
