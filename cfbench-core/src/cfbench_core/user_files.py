"""Files of the user's own, which a configuration names: found, unpacked, and searched for columns.

What a row is, a suite knows and reads for itself. Whatever is wrong with a file becomes one line that says so.
"""

from __future__ import annotations

import gzip
import unicodedata
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from cfbench_core.content_checks import limited
from cfbench_core.data_files import Source
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.hashing import file_digest
from cfbench_core.plain_text import one_line

if TYPE_CHECKING:
    import pandas as pd

GZIP = b"\x1f\x8b"
"""How a gzip file begins."""


def user_files(paths: Mapping[str, str | Path]) -> Source:
    """Files by the name under which the data set knows them, with their fingerprints.

    Raises:
        UserError: if one is not there.
    """
    found = {name: Path(path).expanduser() for name, path in paths.items()}
    for path in found.values():
        if not path.is_file():
            raise UserError(f"{path}: no such file")
    digests = {name: file_digest(path) for name, path in found.items()}
    return Source(found, "the configuration", sha256=digests)


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is called ``.gz`` or begins as such a file does.

    Raises:
        UserError: if it cannot be read, now or while it is being read.
    """
    try:
        with path.open("rb") as raw:
            packed = path.suffix == ".gz" or raw.peek(len(GZIP)).startswith(GZIP)
            if not packed:
                yield raw
                return
            size = path.stat().st_size
            yield limited(cast(IO[bytes], gzip.GzipFile(fileobj=raw)), path, size)
    except (OSError, EOFError, zlib.error) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{path}: cannot be read: {reason}") from None


def find_column(
    columns: Iterable[str], path: Path, wanted: str | None, usual: Sequence[str], role: str
) -> str | None:
    """The name of a column: the one wanted, else the first of the usual ones that is there, else None.

    Usual names are found in capital letters too.

    Raises:
        UserError: if one is wanted that is not there.
    """
    columns = list(columns)
    if wanted is not None:
        if wanted in columns:
            return wanted
        hint = did_you_mean(wanted, columns)
        raise UserError(
            f"{path}: has no column {wanted!r} for {role}.{hint} Its columns: {', '.join(columns)}"
        )
    by_lower = {name.lower(): name for name in reversed(columns)}
    return next((by_lower[name.lower()] for name in usual if name.lower() in by_lower), None)


def need_column(
    columns: Iterable[str], path: Path, wanted: str | None, usual: Sequence[str], role: str
) -> str:
    """As :func:`find_column`, where there must be one."""
    columns = list(columns)
    found = find_column(columns, path, wanted, usual, role)
    if found is None:
        raise UserError(
            f"{path}: no column looks like the {role}; name it with '{role}: ...'. "
            f"Its columns: {', '.join(columns)}"
        )
    return found


def read_csv_as_text(path: Path) -> pd.DataFrame:
    """A CSV file with everything as text, since an identifier may be "NA" or "007".

    The first column is never taken for an index, as pandas does where all rows are longer than the header by a comma.

    Raises:
        UserError: where rows have more values than the header has columns.
        ValueError, OSError: where it cannot be read, as pandas has them.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False)
    except pd.errors.ParserWarning:
        raise UserError(f"{path}: its rows have more values than its header has columns") from None


LONGEST_IDENTIFIER = 1000
"""Characters of an identifier, a level or a column's name: real ones have less than a hundred."""


def check_identifier(text: str, where: str) -> None:
    """Refuses text that cannot name anything: too long for tables and file formats, or with
    characters that are none (they would reach terminals as commands, and no file can hold half of a character).

    Args:
        text: an identifier, a level of a column, or the name of a column.
        where: for the error: "ratings.csv: row 3: user".

    Raises:
        UserError: says what is wrong with it.
    """
    if len(text) > LONGEST_IDENTIFIER:
        raise UserError(
            f"{where}: {one_line(text, 40)!r} has {len(text):,} characters; at most {LONGEST_IDENTIFIER:,} are possible"
        )
    if not text.isprintable() and any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise UserError(f"{where}: {one_line(text, 40)!r} holds a control character or half of a character")
