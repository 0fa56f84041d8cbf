"""Tables and reports of finished runs, as artifacts of the kind "run": a new directory of an equal run gets copies.

The key is the digest of ``run_inputs.inputs_of``: the plan, every result, and the code that makes tables and reports.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cfbench_core import checksums, run_inputs
from cfbench_core.errors import UserError
from cfbench_core.files import disk_trouble, make_room, write_atomically
from cfbench_core.stages import Task

if TYPE_CHECKING:
    from cfbench_core.plan import Plan
    from cfbench_core.store import Store

KIND = "run"
LARGEST = 100_000_000
"""Bytes of the tables and reports of a run. Those of larger ones are made again: copies would fill the disk."""
_FIXED = ("quality.csv", "summary.csv", "report.json", "environment.json", run_inputs.FILE, run_inputs.REPORT)
_TABLES = ("scores.parquet", "explanations.parquet", "costs.parquet", "details.parquet")


def restore_end(directory: Path, plan: Plan, store: Store, inputs: str) -> bool:
    """Copies tables and reports of these inputs into a directory; whether the store has them, undamaged."""
    manifest = store.fetch(KIND, inputs)
    if manifest is None:
        return False
    folder = store.path(KIND, inputs)
    remove_end(directory, plan)
    for name in _names(plan):
        if name in manifest["files"]:
            try:
                content = (folder / name).read_bytes()
            except FileNotFoundError:  # somebody clears the cache
                return False
            write_atomically(directory / name, content)
    store.mark_used(KIND, inputs)
    return True


def remove_end(directory: Path, plan: Plan) -> None:
    """Removes tables and reports before others are written, so that an interruption does not leave some of each."""
    for name in (checksums.FILE, *_names(plan)):
        make_room(directory / name)
        (directory / name).unlink(missing_ok=True)


def store_end(directory: Path, plan: Plan, store: Store, inputs: str) -> None:
    """Copies tables and reports of a directory into the store, unless they are too large.

    The run is complete without the copy: a store that is full or may only be read is left as it is.
    """
    files = [directory / name for name in _names(plan) if (directory / name).is_file()]
    if sum(file.stat().st_size for file in files) > LARGEST:
        return
    try:
        folder = store.begin()
        try:
            with disk_trouble(store.root):
                for file in files:
                    shutil.copyfile(file, folder / file.name)
            store.commit(folder, _task(plan, inputs), {}, 0.0, 0, replace=True)
        finally:
            store.abandon(folder)
    except UserError:
        return


def _names(plan: Plan) -> Sequence[str]:
    return [*_FIXED, *_TABLES, *plan.layout.tables]


def _task(plan: Plan, inputs: str) -> Task:
    return Task(
        key=inputs,
        stage_key=inputs,
        kind=KIND,
        label=f"tables and reports of {len(plan.to_run)} cells",
        target="cfbench_core.api:execute",
        parameters={},
        inputs={},
        input_kinds={},
        seed=0,
    )
