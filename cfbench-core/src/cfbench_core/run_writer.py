"""Writes a run directory: the configuration, the plan, the outcome of each task, and the tables.

See the contract in ``docs/explanation/design.md``. Every file appears whole or not at all, except ``outcomes.jsonl``,
which grows by one line for each task that ends.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from cfbench_core import checksums, owners, run_inputs
from cfbench_core.config.document import Document
from cfbench_core.errors import UserError
from cfbench_core.files import disk_trouble, make_room, write_atomically
from cfbench_core.locks import FolderLock
from cfbench_core.outcomes import Outcome, in_one_line
from cfbench_core.plan import Cell, Plan
from cfbench_core.results_assembly import Tables, write_parquet
from cfbench_core.run_ends import remove_end
from cfbench_core.runner import Results
from cfbench_core.stages import UNITS, Stage, Task
from cfbench_core.store import Store
from cfbench_core.yaml_nodes import plain

_CHANGING = {"config.yaml", "plan.json", "components.json", "outcomes.jsonl"}
"""Files that a run writes before it has computed anything. Tables of an earlier run of the same configuration stay until its
end, and so does the environment that they were computed in."""


def new_run_directory(parent: Path) -> Path:
    """Makes ``runs/2026-11-21-1432``, with a number behind it where that exists: of two runs that begin at once, too."""
    stem = datetime.now().strftime("%Y-%m-%d-%H%M")
    number, directory = 1, parent / stem
    with contextlib.suppress(OSError):  # where it cannot be made, the lock of the directory says why
        while True:
            try:
                directory.mkdir(parents=True)
                break
            except FileExistsError:
                number += 1
                directory = parent / f"{stem}-{number}"
    return directory


class RunWriter:
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
        self._lock = FolderLock(directory)
        try:
            if fresh:
                self._remove_others(document)
            else:
                self._check_same(document)
            for folder in (directory, directory / "logs"):
                owners.remove_abandoned(folder)
            checksums.forget(directory, _CHANGING)
            write_atomically(
                directory / "config.yaml", yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)
            )
            self.write_plan(None)
            self._log = _Lines(directory / "outcomes.jsonl")
        except BaseException:
            self._lock.release()
            raise

    def _check_same(self, document: Mapping[str, Any]) -> None:
        """A directory of another configuration is not overwritten by accident."""
        differing = self._differing(document)
        if differing is None:
            path = self.directory / "config.yaml"
            raise UserError(
                f"{path}: is not the configuration of a run; give another --output, or --fresh to replace it"
            )
        if differing:
            raise UserError(
                f"{self.directory}: holds a run of another configuration (different: {', '.join(differing)}); "
                "give another --output, or --fresh to replace it"
            )

    def _remove_others(self, document: Mapping[str, Any]) -> None:
        """Removes what there is of another configuration: an interrupted run must not leave it under its own."""
        if self._differing(document) == []:
            return
        remove_end(self.directory, self.plan)
        for name in ("plan.json", "outcomes.jsonl"):
            (self.directory / name).unlink(missing_ok=True)

    def _differing(self, document: Mapping[str, Any]) -> list[str] | None:
        """What the earlier run of the directory had otherwise; None where its configuration cannot be read."""
        path = self.directory / "config.yaml"
        if not path.exists():
            return []
        try:
            earlier = plain(Document.read(path).root)
        except UserError:
            earlier = {}
        if not earlier:
            return None
        how = ("executor", "store", "workers", "limits", "chunk")  # these change how it is computed, not what
        differing = sorted(
            str(key)
            for key in {*earlier, *document}
            if key not in how and earlier.get(key) != json.loads(json.dumps(document.get(key)))
        )
        scored = str(self.explanations.absolute()) if self.explanations else None
        # without a plan.json it was interrupted before it said so
        if (self.directory / "plan.json").exists() and self._earlier_explanations() != scored:
            differing.append("--explanations")
        return differing

    def _earlier_explanations(self) -> str | None:
        """The table that the directory's run scored, if it scored one."""
        try:
            earlier = json.loads((self.directory / "plan.json").read_bytes())["explanations"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return earlier if earlier is None else str(earlier)

    def finished(self, task: Task, outcome: Outcome) -> None:
        """One line of ``outcomes.jsonl``; the traceback, if any, into ``logs/``."""
        line = {
            "key": task.key,
            "stage": task.stage_key,
            "kind": task.kind,
            "label": task.label,
            "chunk": task.chunk,
            "status": outcome.status,
            "reason": outcome.reason,
            "elapsed_seconds": round(outcome.elapsed_seconds, 6),
            "peak_memory_bytes": outcome.peak_memory_bytes,
        }
        self._log.append(json.dumps(line))
        if outcome.traceback:
            write_atomically(self.directory / "logs" / f"{task.kind}-{task.key[:16]}.txt", outcome.traceback)

    def begin_environment(self, environment: Mapping[str, Any]) -> None:
        """The environment, unless tables of an earlier run are there: theirs stays with them."""
        if not (self.directory / run_inputs.FILE).is_file():
            self.write_environment(environment)

    def write_environment(self, environment: Mapping[str, Any]) -> None:
        write_atomically(self.directory / "environment.json", json.dumps(environment, indent=2) + "\n")

    def remove_end(self) -> None:
        """Those of an earlier run go before the first of this one is written."""
        remove_end(self.directory, self.plan)

    def write_components(self, components: Sequence[Mapping[str, Any]]) -> None:
        """``components.json``: what the run uses, with the papers to cite."""
        write_atomically(
            self.directory / "components.json", json.dumps(components, indent=1, ensure_ascii=False) + "\n"
        )

    def write_plan(self, results: Results | None, data: str = "") -> None:
        """``plan.json``; with results, each cell's status and reason are how it went, ``data`` says what was
        read, and ``summaries`` holds the summaries that the stages of data sets and models returned."""
        cells = self.plan.to_json()
        if results is not None:
            for entry, cell in zip(cells, self.plan.cells, strict=True):
                if not cell.skipped:
                    entry["status"], entry["reason"] = _cell_status(cell, results)
        layout = {
            **vars(self.plan.layout),
            "by": list(self.plan.layout.by),
            "tables": dict(self.plan.layout.tables),
            "label_formats": dict(self.plan.layout.label_formats),
            "primary": list(self.plan.layout.primary),
        }
        scored = str(self.explanations.absolute()) if self.explanations else None
        document = {
            "suite": self.plan.suite,
            "data": data,
            "layout": layout,
            "explanations": scored,
            "summaries": {} if results is None else _summaries(self.plan, results),
            "wrong_input": results is not None and _is_wrong_input(self.plan, results),
            "cells": cells,
        }
        write_atomically(self.directory / "plan.json", _with_a_line_for_each(document, "cells"))

    def write_tables(self, results: Results, store: Store) -> None:
        """``scores.parquet``, ``explanations.parquet``, ``costs.parquet``, ``details.parquet`` and ``quality.csv``."""
        tables = Tables(self.plan, results, store)
        for name, parts in {
            "scores.parquet": list(tables.scores()),
            "explanations.parquet": list(tables.rows("explanations", "explanations.parquet")),
            "costs.parquet": list(tables.rows("explanations", "costs.parquet")),
            "details.parquet": list(tables.rows("explanations", "details.parquet", optional=True)),
            **{
                name: list(tables.rows(role, name, optional=True))
                for name, role in self.plan.layout.tables.items()
            },
        }.items():
            write_parquet(self.directory / name, parts)
        write_atomically(self.directory / "quality.csv", tables.quality())

    def write_checksums(self) -> None:
        """``SHA256SUMS`` of everything that was written, when nothing more is."""
        checksums.write_checksums(self.directory)

    def close(self) -> None:
        self._log.close()
        self._lock.release()


class _Lines:
    """A file that grows by whole lines, also when the disk is full or the writer was killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        make_room(path)
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


def _with_a_line_for_each(document: Mapping[str, Any], last: str) -> str:
    """A JSON object whose ``last`` member is a long list: each entry stands on a line of its own.

    The library indents in Python, which takes several times as long as the rest of the writing.
    """
    head = {name: value for name, value in document.items() if name != last}
    entries = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in document[last])
    opened = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{opened},\n "{last}": [\n{entries}\n ]\n}}\n'


def _summaries(plan: Plan, results: Results) -> dict[str, dict[str, Any]]:
    """By kind and label, of those that ended well; under "signatures" what any stage said of the versions and models
    that determine its numbers, by the stage's label; under "usage" what its models used (tokens, cost), likewise."""
    found: dict[str, dict[str, Any]] = {
        "data": {},
        "model": {},
        "statements": {},
        "signatures": {},
        "usage": {},
    }
    for stage in plan.stages():
        for _, outcome in results.of(stage):
            if outcome.done and stage.kind in found:
                found[stage.kind][stage.label] = dict(outcome.summary)
            if outcome.done and "signatures" in outcome.summary:
                found["signatures"][stage.label] = outcome.summary["signatures"]
            if outcome.done and "usage" in outcome.summary:
                used = found["usage"].setdefault(stage.label, {})
                for name, number in outcome.summary["usage"].items():
                    used[name] = used.get(name, 0) + number
    return found


def _cell_status(cell: Cell, results: Results) -> tuple[str, str]:
    """ok, cached, partial, or the status that all of the cell ended in; and why.

    A cell without units is skipped: what there was to explain is known only when the model is there. Its reason is what
    the summary of its units says in ``"note"``; the warnings of a cell that succeeded are the notes of all its stages.
    """
    problem = results.problem(cell.stages["scores"])
    outcomes = [outcome for _, outcome in results.of(cell.stages["scores"])]
    done = [outcome for outcome in outcomes if outcome.done]
    if problem is None and not outcomes:
        units = {UNITS: cell.stages[UNITS]} if UNITS in cell.stages else cell.stages
        return "skipped", _notes(cell, results, units) or "there is nothing to explain"
    failures = _Failures.of(done)
    if failures.too_many:
        excess = f"{failures}, more than the permitted share of {failures.permitted:g}"
        return "failed", "; ".join([excess, *filter(None, [_notes(cell, results)])])
    if problem is None:
        notes = list(filter(None, [str(failures), _notes(cell, results)]))
        if any(outcome.summary.get("incomplete") for outcome in done):
            return "partial", "; ".join([*notes, "the same command computes what is missing"])
        status = "cached" if all(outcome.status == "cached" for outcome in done) else "ok"
        return status, "; ".join(notes)
    if done:
        return "partial", f"{len(outcomes) - len(done)} of {len(outcomes)} chunks: {problem.reason}"
    return problem.status, problem.reason


@dataclass(frozen=True)
class _Failures:
    """How many units of a cell have scores that could not be determined, and the share that may."""

    failed: int = 0
    units: int = 0
    permitted: float = 1.0

    @classmethod
    def of(cls, done: Sequence[Outcome]) -> _Failures:
        """From the summaries of the scores of all chunks; none if the suite does not report failures."""
        reported = [outcome.summary for outcome in done if "max_failed" in outcome.summary]
        if not reported:
            return cls()
        failed, units = (sum(int(summary[name]) for summary in reported) for name in ("failed", "units"))
        return cls(failed, units, float(reported[0]["max_failed"]))

    @property
    def too_many(self) -> bool:
        return self.failed > self.permitted * self.units

    def __str__(self) -> str:
        return f"scores of {self.failed} of {self.units} units could not be determined" if self.failed else ""


def _is_wrong_input(plan: Plan, results: Results) -> bool:
    """Whether nothing could be computed because no data set could be read."""
    problems = [results.problem(cell.stages["scores"]) for cell in plan.to_run]
    return bool(problems) and all(problem is not None and problem.wrong_input for problem in problems)


def _notes(cell: Cell, results: Results, stages: Mapping[str, Stage] | None = None) -> str:
    """The remark of a cell and the warnings of its stages (or some of them), each once."""
    notes = [cell.remark] if cell.remark else []
    notes += [
        str(outcome.summary["note"])
        for stage in (cell.stages if stages is None else stages).values()
        for _, outcome in results.of(stage)
        if outcome.summary.get("note")
    ]
    return in_one_line(notes)
