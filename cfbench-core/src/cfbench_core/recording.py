"""Writes a run directory: what was asked, what was planned, how each piece of work ended, and the tables.

See the contract in ``docs/explanation/design.md``. Every file appears whole or not at all, except ``outcomes.jsonl``,
which grows by one line for each piece of work that ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import yaml

from cfbench_core.errors import UserError
from cfbench_core.files import disk_trouble, write_atomically
from cfbench_core.outcomes import Outcome
from cfbench_core.plan import Cell, Plan
from cfbench_core.runner import Results
from cfbench_core.stages import UNITS, Work
from cfbench_core.store import Store

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def new_run_directory(parent: Path) -> Path:
    """``runs/2026-11-21-1432``, with a number behind it where that exists."""
    stem = datetime.now().strftime("%Y-%m-%d-%H%M")
    names = [stem, *(f"{stem}-{number}" for number in range(2, 1000))]
    return next(parent / name for name in names if not (parent / name).exists())


class Recorder:
    """The writing side of one run directory; held by one process at a time."""

    def __init__(
        self,
        directory: Path,
        plan: Plan,
        document: Mapping[str, Any],
        explanations: Path | None,
        fresh: bool,
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.explanations = explanations
        self._lock = _locked(directory)
        try:
            if not fresh:
                self._check_same(document)
            write_atomically(
                directory / "config.yaml", yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)
            )
            self.write_plan(None)
            self._log = _Lines(directory / "outcomes.jsonl")
        except BaseException:
            self._unlock()
            raise

    def _check_same(self, document: Mapping[str, Any]) -> None:
        """A directory of another configuration is not overwritten by accident."""
        path = self.directory / "config.yaml"
        if not path.exists():
            return
        try:
            earlier = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError):
            earlier = None
        if not isinstance(earlier, dict):
            raise UserError(
                f"{path}: is not the configuration of a run; give another --out, or --fresh to replace it"
            )
        how = ("executor", "workers", "limits", "chunk")  # these change how it is computed, not what
        differing = sorted(
            str(key)
            for key in {*earlier, *document}
            if key not in how and earlier.get(key) != json.loads(json.dumps(document.get(key)))
        )
        if self._earlier_explanations() != (self.explanations and str(self.explanations.absolute())):
            differing.append("--explanations")
        if differing:
            raise UserError(
                f"{self.directory}: holds a run of another configuration (different: {', '.join(differing)}); "
                "give another --out, or --fresh to replace it"
            )

    def _earlier_explanations(self) -> str | None:
        """The table that the directory's run scored, if it scored one."""
        try:
            earlier = json.loads((self.directory / "plan.json").read_bytes())["explanations"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return earlier if earlier is None else str(earlier)

    def finished(self, work: Work, outcome: Outcome) -> None:
        """One line of ``outcomes.jsonl``; the traceback, if any, into ``logs/``."""
        line = {
            "key": work.key,
            "kind": work.kind,
            "label": work.label,
            "chunk": work.chunk,
            "status": outcome.status,
            "reason": outcome.reason,
            "elapsed_seconds": round(outcome.elapsed_seconds, 6),
            "peak_memory_bytes": outcome.peak_memory_bytes,
        }
        self._log.append(json.dumps(line))
        if outcome.traceback:
            write_atomically(self.directory / "logs" / f"{work.kind}-{work.key[:16]}.txt", outcome.traceback)

    def write_environment(self, environment: Mapping[str, Any]) -> None:
        write_atomically(self.directory / "environment.json", json.dumps(environment, indent=2) + "\n")

    def write_plan(self, results: Results | None) -> None:
        """``plan.json``; with results, each cell's status and reason are how it went."""
        cells = self.plan.to_json()
        if results is not None:
            for entry, cell in zip(cells, self.plan.cells, strict=True):
                if not cell.skipped:
                    entry["status"], entry["reason"] = _cell_status(cell, results)
        layout = {**vars(self.plan.layout), "by": list(self.plan.layout.by)}
        scored = str(self.explanations.absolute()) if self.explanations else None
        document = {"suite": self.plan.suite, "layout": layout, "explanations": scored, "cells": cells}
        write_atomically(
            self.directory / "plan.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        )

    def write_tables(self, results: Results, store: Store) -> None:
        """``scores.parquet``, ``explanations.parquet``, ``costs.parquet`` and ``quality.csv``."""
        tables = _Tables(self.plan, results, store)
        _write_parquet(self.directory / "scores.parquet", tables.scores())
        _write_parquet(
            self.directory / "explanations.parquet", tables.rows("explanations", "explanations.parquet")
        )
        _write_parquet(self.directory / "costs.parquet", tables.rows("explanations", "costs.parquet"))
        quality = tables.quality()
        write_atomically(self.directory / "quality.csv", quality)

    def close(self) -> None:
        self._log.close()
        self._unlock()

    def _unlock(self) -> None:
        (self.directory / ".lock").unlink(missing_ok=True)  # while it is ours: the next one makes its own
        self._lock.close()


def _locked(directory: Path) -> IO[str]:
    """The lock of a run directory, which is made if need be.

    Raises:
        UserError: when another process has it, or the directory may not be written to.
    """
    path = directory / ".lock"
    while True:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = path.open("w")
        except OSError as error:
            raise UserError(f"{directory}: cannot be written to: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise UserError(
                f"{directory}: another cfbench is running in it; wait, or give another --out"
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                return lock
        lock.close()  # its owner removed it while we opened it


class _Lines:
    """A file that grows by whole lines, also when the disk is full or the writer was killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        half_a_line = path.stat().st_size and not path.read_bytes().endswith(b"\n")
        if half_a_line:
            self.append("")

    def append(self, line: str) -> None:
        """Raises UserError when the disk is full; nothing is added then."""
        data = line.encode() + b"\n"
        before = os.fstat(self._file.fileno()).st_size
        with disk_trouble(self._path.parent):
            try:
                if self._file.write(data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                self._file.truncate(before)
                raise

    def close(self) -> None:
        self._file.close()


def _cell_status(cell: Cell, results: Results) -> tuple[str, str]:
    """ok, cached, partial, or the status that all of the cell ended in; and why.

    A cell without units is skipped: what there was to explain is known only when the model is there. Its
    reason, and a remark on a cell that went well, is what the stages' summaries say in ``"note"``.
    """
    problem = results.problem(cell.stages["scores"])
    outcomes = [outcome for _, outcome in results.of(cell.stages["scores"])]
    done = [outcome for outcome in outcomes if outcome.done]
    if problem is None and not outcomes:
        return "skipped", _notes(cell, results) or "there is nothing to explain"
    if problem is None:
        status = "cached" if all(outcome.status == "cached" for outcome in done) else "ok"
        return status, _notes(cell, results)
    if done:
        return "partial", f"{len(outcomes) - len(done)} of {len(outcomes)} chunks: {problem.reason}"
    return problem.status, problem.reason


def _notes(cell: Cell, results: Results) -> str:
    """What the stages of a cell have to remark, each remark once."""
    notes = [
        str(outcome.summary["note"])
        for stage in cell.stages.values()
        for _, outcome in results.of(stage)
        if outcome.summary.get("note")
    ]
    return "; ".join(dict.fromkeys(notes))


class _Tables:
    """The artifacts of a run, put together in the order of the plan: equal results, equal files."""

    def __init__(self, plan: Plan, results: Results, store: Store) -> None:
        self.plan = plan
        self.results = results
        self.store = store

    def rows(self, role: str, file: str) -> Iterator[pa.Table]:
        """A file of the artifacts in one role, cell by cell, under the cell's labels."""
        for cell in self.plan.to_run:
            if role in cell.stages:
                for work, outcome in self.results.of(cell.stages[role]):
                    if outcome.done:
                        yield self.labelled(cell, self.read(work, file))

    def scores(self) -> Iterator[pa.Table]:
        """Scores, and for units whose work did not end well a row for each metric with its status."""
        for cell in self.plan.to_run:
            stage = cell.stages["scores"]
            for work, outcome in self.results.of(stage):
                table = (
                    self.read(work, "scores.parquet") if outcome.done else self.missing(cell, work, outcome)
                )
                yield self.labelled(cell, table)
            problem = self.results.problem(stage)
            if stage.key not in self.results.works and problem is not None:
                yield self.labelled(cell, self.missing(cell, None, problem))

    def read(self, work: Work, file: str) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.store.path(work.kind, work.key) / file
        try:
            return pq.read_table(path)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, error) from error

    def missing(self, cell: Cell, work: Work | None, outcome: Outcome) -> pa.Table:
        import pandas as pd
        import pyarrow as pa

        units = self.units_of(cell, work) if work else pd.DataFrame({"unit": [None]})
        columns = ["unit", *(column for column in self.plan.layout.unit_columns if column in units)]
        frames = [
            units[columns].assign(metric=column.name, value=float("nan"), status=outcome.status)
            for column in cell.columns
        ]
        frame = pd.concat(frames, ignore_index=True)[["metric", "unit", "value", "status", *columns[1:]]]
        return pa.Table.from_pandas(frame, preserve_index=False)

    def units_of(self, cell: Cell, work: Work) -> pd.DataFrame:
        """The units of a chunk, as the units artifact lists them."""
        units_work, _ = next(self.results.of(cell.stages[UNITS]))
        units: pd.DataFrame = self.read(units_work, "units.parquet").to_pandas()
        if work.chunk is None:
            return units
        start, stop = work.chunk
        return units[(units["group"] >= start) & (units["group"] < stop)]

    def labelled(self, cell: Cell, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        labels = {"cell": cell.id, "suite": self.plan.suite, **cell.labels}
        columns: dict[str, Any] = {name: pa.repeat(value, table.num_rows) for name, value in labels.items()}
        columns |= {name: table[name] for name in table.column_names if name not in columns}
        return pa.table(columns)

    def quality(self) -> str:
        """``quality.csv``: what each model's stage reported of its quality on held-out data."""
        lines = ["dataset,model,metric,value"]
        seen = set()
        for cell in self.plan.to_run:
            if "model" not in cell.stages or cell.stages["model"].key in seen:
                continue
            seen.add(cell.stages["model"].key)
            for _, outcome in self.results.of(cell.stages["model"]):
                lines += [
                    f"{_csv(cell.labels['dataset'])},{_csv(cell.labels['model'])},{metric},{value:.6g}"
                    for metric, value in outcome.summary.get("quality", {}).items()
                ]
        return "\n".join(lines) + "\n"


def _damaged(path: Path, error: Exception) -> UserError:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return UserError(
        f"{path}: cannot be read ({why}); 'cfbench cache verify --remove' removes what is damaged, "
        "then the same command computes it again"
    )


def _csv(value: object) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def _write_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    """Tables one after the other into one file; columns that some lack are null there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: Sequence[pa.Table] = list(tables)
    if not parts:
        path.unlink(missing_ok=True)
        return
    whole = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        pq.write_table(whole.replace_schema_metadata(None), temporary, compression="zstd")
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
