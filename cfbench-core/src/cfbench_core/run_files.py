"""Reads single files of a run directory; whatever is wrong with one is a UserError of one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.checksums import is_as_written
from cfbench_core.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

AT_ONCE = 50_000
"""Rows of a large table that are read at once."""

REWRITE = "the same cfbench run with --output on this directory rewrites it"


class RunFiles:
    """The files of one run directory, as the run wrote them. Every method raises UserError where one is not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._intact: set[str] = set()

    def verified(self, name: str) -> Path:
        """The path of a file that is as the run wrote it, as far as the run has ended.

        Raises:
            UserError: when it has changed since.
        """
        path = self.directory / name
        if name not in self._intact:
            try:
                if not is_as_written(self.directory, name):
                    raise UserError(f"{path}: has changed since the run wrote it (SHA-256); {REWRITE}")
            except FileNotFoundError:
                raise UserError(f"{path}: is missing; {REWRITE}") from None
            except OSError as error:
                raise unreadable(path, error) from None
            self._intact.add(name)
        return path

    def text(self, name: str, errors: str = "strict") -> str:
        path = self.verified(name)
        try:
            return path.read_text(encoding="utf-8", errors=errors)
        except FileNotFoundError:
            raise UserError(f"{path}: is missing; {REWRITE}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(path, error) from None

    def json(self, name: str) -> dict[str, Any]:
        text = self.text(name)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise unreadable(self.directory / name, error) from None
        if not isinstance(value, dict):
            raise UserError(f"{self.directory / name}: cannot be read (not an object); {REWRITE}")
        return value

    def csv(self, name: str, columns: tuple[str, ...]) -> pd.DataFrame:
        import io

        import pandas as pd

        from cfbench_core.csv_cells import unprotected

        path = self.directory / name
        try:
            frame = pd.read_csv(
                io.StringIO(self.text(name)),
                dtype=dict.fromkeys(("cell", "dataset", "model", "metric"), str),
                keep_default_na=False,
                na_values=[""],
            )
        except ValueError as error:
            raise unreadable(path, error) from None
        for name in frame.select_dtypes(["object", "string"]).columns:
            frame[name] = frame[name].map(unprotected, na_action="ignore")
        return _checked(frame, columns, path)

    def parquet(
        self,
        name: str,
        columns: tuple[str, ...],
        expected: bool,
        filters: list[Any] | None = None,
        rows: bool = True,
    ) -> pd.DataFrame:
        """A table, or its columns alone; an empty one where no cell could have written to it."""
        import pandas as pd
        import pyarrow as pa

        path = self.verified(name)
        if not path.exists() and not expected:
            return pd.DataFrame(columns=list(columns))
        try:
            frame = pd.read_parquet(path, filters=filters) if rows else _columns(path)
        except FileNotFoundError:
            raise UserError(f"{path}: is missing; {REWRITE}") from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise unreadable(path, error) from None
        return _checked(frame, columns, path)

    def arrow(self, name: str) -> pa.Table:
        """A whole table."""
        import pyarrow as pa
        from pyarrow import parquet

        path = self.verified(name)
        try:
            return parquet.read_table(path)
        except FileNotFoundError:
            raise UserError(f"{path}: is missing; {REWRITE}") from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise unreadable(path, error) from None

    def batches(
        self,
        name: str,
        columns: Sequence[str],
        cells: Sequence[str] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Some columns of a table, of these cells and metrics only, in the order of the file and at most ``AT_ONCE`` rows
        at a time.

        Nothing where there is no such table, and without the columns that it lacks: the scores of a run in which all
        models failed name no units. A table of a large run does not fit into memory.
        """
        import pyarrow as pa
        from pyarrow import compute, parquet

        path = self.verified(name)
        if not path.exists():
            return
        wanted = {"cell": cells, "metric": metrics}
        chosen = {
            column: pa.array(names, pa.string()) for column, names in wanted.items() if names is not None
        }
        read = list(dict.fromkeys([*columns, *chosen]))
        try:
            with parquet.ParquetFile(path) as table:
                groups = [
                    n for n in range(table.num_row_groups) if _holds(table.metadata.row_group(n), cells)
                ]
                for batch in table.iter_batches(AT_ONCE, row_groups=groups, columns=read, use_threads=False):
                    for column, names in chosen.items():
                        names = names.cast(batch.column(column).type)
                        batch = batch.filter(compute.is_in(batch.column(column), names))
                    if batch.num_rows:
                        yield batch.select([c for c in columns if c in batch.schema.names]).to_pandas()
        except (OSError, ValueError, pa.ArrowException) as error:
            raise unreadable(path, error) from None


def _holds(group: Any, cells: Sequence[str] | None) -> bool:
    """Whether a group of rows may hold one of the cells: tables are written cell by cell."""
    if cells is None:
        return True
    place = next(n for n in range(group.num_columns) if group.column(n).path_in_schema == "cell")
    bounds = group.column(place).statistics
    return bounds is None or not bounds.has_min_max or any(bounds.min <= cell <= bounds.max for cell in cells)


def _checked(frame: pd.DataFrame, columns: tuple[str, ...], path: Path) -> pd.DataFrame:
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        raise UserError(f"{path}: has no column {', '.join(lacking)}; {REWRITE}")
    return frame


def unreadable(path: Path, error: Exception) -> UserError:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return UserError(f"{path}: cannot be read ({why}); {REWRITE}")


def _columns(path: Path) -> pd.DataFrame:
    """A table without its rows."""
    from pyarrow import parquet

    empty: pd.DataFrame = parquet.read_schema(path).empty_table().to_pandas()
    return empty
