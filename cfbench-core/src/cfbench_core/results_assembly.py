"""Puts the artifacts of a run together into its tables, in the order of the plan: equal results, equal files.

Tables are written part by part, in row groups of ``GROUP`` rows across cells, so that memory does not grow with the run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core import units_file
from cfbench_core.csv_cells import protected
from cfbench_core.errors import UserError
from cfbench_core.files import make_room
from cfbench_core.model_quality import FIELDS, Quality
from cfbench_core.outcomes import Outcome
from cfbench_core.owners import temporary_name
from cfbench_core.plan import Cell, Plan
from cfbench_core.runner import Results
from cfbench_core.stages import UNITS, Task
from cfbench_core.store import Store

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

GROUP = 100_000
"""Rows of a row group."""


@dataclass(frozen=True)
class Part:
    """Rows of one cell: a file of an artifact, or rows made here for what is missing."""

    cell: str
    labels: dict[str, str | int]
    source: Path | pa.Table

    def schema(self) -> pa.Schema:
        """Of the labelled rows; of a file, its rows are not read for it."""
        return self.labelled(
            _read(self.source, schema_only=True) if isinstance(self.source, Path) else self.source.schema
        )

    def labelled(self, own: pa.Schema) -> pa.Schema:
        """The schema of rows of this schema under the labels."""
        import pyarrow as pa

        fields = [pa.field(name, _label_type(value)) for name, value in self.labels.items()]
        return pa.schema(fields + [pa.field(f.name, f.type) for f in own if f.name not in self.labels])

    def rows(self) -> pa.Table:
        """Without labels."""
        return _read(self.source) if isinstance(self.source, Path) else self.source


def _label_type(value: str | int) -> pa.DataType:
    import pyarrow as pa

    return pa.string() if isinstance(value, str) else pa.int64()


class Tables:
    """What the cells of a plan came to."""

    def __init__(self, plan: Plan, results: Results, store: Store) -> None:
        self.plan = plan
        self.results = results
        self.store = store
        self.intact: set[str] = set()

    def rows(self, role: str, file: str, optional: bool = False) -> Iterator[Part]:
        """A file of the artifacts in one role, cell by cell; an ``optional`` one where it is."""
        for cell in self.plan.to_run:
            if role in cell.stages:
                for task, outcome in self.results.of(cell.stages[role]):
                    if outcome.done and ((path := self.path(task, file)).exists() or not optional):
                        yield self.part(cell, path)

    def scores(self) -> Iterator[Part]:
        """Scores, and for units whose work did not end well a row for each metric with its status."""
        for cell in self.plan.to_run:
            stage = cell.stages["scores"]
            for task, outcome in self.results.of(stage):
                done = outcome.done
                yield self.part(
                    cell, self.path(task, "scores.parquet") if done else self.missing(cell, task, outcome)
                )
            problem = self.results.problem(stage)
            if stage.key not in self.results.tasks and problem is not None:
                yield self.part(cell, self.missing(cell, None, problem))

    def part(self, cell: Cell, source: Path | pa.Table) -> Part:
        return Part(cell.id, {"cell": cell.id, "suite": self.plan.suite, **cell.labels}, source)

    def path(self, task: Task, file: str) -> Path:
        """A file of a task's artifact, whose SHA-256 is as it should be.

        Raises:
            UserError: when the artifact was damaged or removed since the task ended.
        """
        if task.key not in self.intact:
            if self.store.fetch(task.kind, task.key) is None:
                raise UserError(
                    f"{self.store.path(task.kind, task.key)}: was damaged or removed during the run;"
                    " the same command computes it again"
                )
            self.intact.add(task.key)
        return self.store.path(task.kind, task.key) / file

    def missing(self, cell: Cell, task: Task | None, outcome: Outcome) -> pa.Table:
        import pandas as pd
        import pyarrow as pa

        units = self.units_of(cell, task) if task else pd.DataFrame({"unit": [None]})
        columns = ["unit", *(column for column in self.plan.layout.unit_columns if column in units)]
        frames = [
            units[columns].assign(metric=column.name, value=float("nan"), status=outcome.status)
            for column in cell.columns
        ]
        frame = pd.concat(frames, ignore_index=True)[["metric", "unit", "value", "status", *columns[1:]]]
        return pa.Table.from_pandas(frame, preserve_index=False)

    def units_of(self, cell: Cell, task: Task) -> pd.DataFrame:
        """The units of a chunk, as the units artifact lists them."""
        units_work, _ = next(self.results.of(cell.stages[UNITS]))
        path = self.path(units_work, "units.parquet")
        with _readable(path):
            rows = _read(path) if task.chunk is None else units_file.read_range(path, *task.chunk)
        units: pd.DataFrame = rows.to_pandas()
        return units

    def quality(self) -> str:
        """``quality.csv``: what each model's stage reported of its quality on held-out data, with n and interval."""
        lines = [",".join(("dataset", "model", "metric", *FIELDS))]
        seen = set()
        for cell in self.plan.to_run:
            if "model" not in cell.stages or cell.stages["model"].key in seen:
                continue
            seen.add(cell.stages["model"].key)
            for _, outcome in self.results.of(cell.stages["model"]):
                lines += [
                    ",".join(
                        [
                            _csv(cell.labels["dataset"]),
                            _csv(cell.labels["model"]),
                            metric,
                            *Quality.of(reported).cells(),
                        ]
                    )
                    for metric, reported in outcome.summary.get("quality", {}).items()
                ]
        return "\n".join(lines) + "\n"


def write_parquet(path: Path, parts: Sequence[Part]) -> None:
    """Parts one after the other into one file. A table without parts leaves no file."""
    import pyarrow as pa

    make_room(path)
    if not parts:
        path.unlink(missing_ok=True)
        return
    schema, temporary = parts[0].schema(), path.with_name(temporary_name(path.name))
    try:
        while (further := _write(temporary, parts, schema)) is not None:
            schema = pa.unify_schemas([schema, *further], promote_options="permissive")
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write(path: Path, parts: Sequence[Part], schema: pa.Schema) -> list[pa.Schema] | None:
    """Writes the parts with a schema; the schemas of all, each once, where one does not fit into it.

    Most often all are equal, and each file is read once.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Labels that are text are written as codes, which Parquet stores them as anyway, and read as text again: the types
    # of columns before the coding are not stored.
    labels = {name for part in parts for name, value in part.labels.items() if isinstance(value, str)}
    code = pa.dictionary(pa.int32(), pa.string())
    coded = pa.schema([field.with_type(code) if field.name in labels else field for field in schema])
    # a file of our own: when the disk is full, the writer's would stay open
    with path.open("wb") as to, pq.ParquetWriter(to, coded, compression="zstd", store_schema=False) as writer:
        try:
            for rows in _in_groups(_labelled(alike, schema, coded) for alike in _alike(parts)):
                writer.write_table(rows.unify_dictionaries(), row_group_size=GROUP)
        except _OtherSchemaError:
            return _distinct(part.schema() for part in parts)
    return None


class _Alike:
    """Parts whose labels and rows have the same columns, one after the other."""

    def __init__(self, first: Part, rows: pa.Table) -> None:
        self.parts = [first]
        self.tables = [rows]
        self.labels = {name: _label_type(value) for name, value in first.labels.items()}
        self.count: int = rows.num_rows

    def add(self, part: Part, rows: pa.Table) -> bool:
        """Whether the part is like the others, and there is room for it."""
        labels = {name: _label_type(value) for name, value in part.labels.items()}
        if self.count + rows.num_rows > GROUP or labels != self.labels:
            return False
        if not rows.schema.equals(self.tables[0].schema):
            return False
        self.parts.append(part)
        self.tables.append(rows)
        self.count += rows.num_rows
        return True


def _alike(parts: Iterable[Part]) -> Iterator[_Alike]:
    """Reads the parts, and puts neighbours that are alike together: labels are cheap for many at once."""
    found: _Alike | None = None
    for part in parts:
        rows = part.rows()
        if found is None or not found.add(part, rows):
            if found is not None:
                yield found
            found = _Alike(part, rows)
    if found is not None:
        yield found


def _labelled(alike: _Alike, schema: pa.Schema, coded: pa.Schema) -> pa.Table:
    """The rows under their cells' labels; columns that they lack are null.

    Raises:
        _OtherSchemaError: when they have columns, or types, that ``schema`` does not have.
    """
    import numpy as np
    import pyarrow as pa

    own = alike.parts[0].labelled(alike.tables[0].schema)
    if not own.equals(schema) and not _fits(own, schema):
        raise _OtherSchemaError
    rows = pa.concat_tables(alike.tables)
    part_of_row = pa.array(np.repeat(np.arange(len(alike.parts)), [table.num_rows for table in alike.tables]))

    def column(field: pa.Field) -> Any:
        if field.name in alike.labels:
            labels = pa.array([part.labels[field.name] for part in alike.parts])
            if pa.types.is_dictionary(field.type):
                labels = labels.dictionary_encode()
            return labels.take(part_of_row)
        if field.name in rows.column_names:
            found = rows[field.name]
            return found if found.type == field.type else found.cast(field.type)
        return pa.nulls(rows.num_rows, field.type)

    return pa.table([column(field) for field in coded], schema=coded)


class _OtherSchemaError(Exception):
    """A part has columns, or types of columns, that the table does not have."""


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables as tables of ``GROUP`` rows and a rest, whatever the size of those that come in."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows >= GROUP:
            together = pa.concat_tables(waiting)
            whole = rows - rows % GROUP
            for start in range(0, whole, GROUP):
                yield together.slice(start, GROUP)
            waiting, rows = [together.slice(whole)], rows - whole
    yield pa.concat_tables(waiting)


def _fits(own: pa.Schema, schema: pa.Schema) -> bool:
    """Whether unifying the two adds nothing to ``schema``."""
    import pyarrow as pa

    return bool(pa.unify_schemas([schema, own], promote_options="permissive").equals(schema))


def _distinct(schemas: Iterable[pa.Schema]) -> list[pa.Schema]:
    """Each schema once, in order of appearance."""
    found: list[pa.Schema] = []
    for schema in schemas:
        if not any(schema.equals(known) for known in found):
            found.append(schema)
    return found


def _read(path: Path, schema_only: bool = False) -> Any:
    """A file of an artifact, or only its schema.

    Raises:
        UserError: if it cannot be read.
    """
    from pyarrow import parquet

    with _readable(path), parquet.ParquetFile(path, pre_buffer=False) as file:
        # without threads and reading ahead: they cost more than they save, for files as small as these
        return file.schema_arrow if schema_only else file.read(use_threads=False)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns what reading a file raises into a UserError."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{path}: cannot be read ({why}); 'cfbench cache verify --remove' removes what is damaged, "
            "then the same command computes it again"
        ) from error


def _csv(value: object) -> str:
    text = protected(str(value))
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text
