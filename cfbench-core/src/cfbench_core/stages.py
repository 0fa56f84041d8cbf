"""Stages and work: what there is to compute, as plain data, named by the hash of all that determines it.

A *stage* is a function (``target``), its parameters, and the stages whose results it reads. Its key is the hash of
these, so equal work has one name within a run and across runs, and its result is an artifact under that name.

A stage may be *chunked*: then it is computed a range of *groups* at a time (a group is what must stay together, for
example one user with all explained items). What the groups are is told by the stage in the role ``"units"``: its
artifact holds ``units.parquet``, with a column ``unit`` and a column ``group`` (0, 1, ...), and its summary
``{"groups": n}``. A chunk of a chunked stage reads the same chunk of its chunked inputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cfbench_core.hashing import digest
from cfbench_core.seeds import generator, seed_of

if TYPE_CHECKING:
    import numpy as np

UNITS = "units"
T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """One step of a suite's life cycle.

    Attributes:
        kind: "data", "model", "units", "explainer", "explanations", "scores"; the artifact's folder.
        label: for people: "mf on debian-python".
        target: the function to call with a :class:`Task`, ``"package.module:name"``.
        parameters: JSON; with ``inputs`` and ``seed`` all that determines the result (component ids and versions,
            their configuration, fingerprints of files, ...).
        inputs: the stages it reads, by role.
        seed: the run's seed (0 for stages that draw nothing, so that runs of other seeds share them).
        chunked: computed a range of groups at a time, as told by the input in the role ``"units"``.
    """

    kind: str
    label: str
    target: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Stage] = field(default_factory=dict)
    seed: int = 0
    chunked: bool = False

    @functools.cached_property
    def key(self) -> str:
        """64 hexadecimal digits. The label does not count: what a thing is called does not change it."""
        return digest(
            {
                "kind": self.kind,
                "target": self.target,
                "parameters": self.parameters,
                "inputs": {role: stage.key for role, stage in self.inputs.items()},
                "seed": self.seed,
            }
        )


@dataclass(frozen=True)
class Task:
    """A stage, or one chunk of it, ready to be computed: JSON all through, so that it can cross a pipe.

    ``key`` names the artifact to write; ``stage_key`` the stage (equal for all its chunks); ``inputs`` the
    artifacts to read, by role; ``chunk`` the half-open range of groups, None for a whole stage.
    """

    key: str
    stage_key: str
    kind: str
    label: str
    target: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, str]
    input_kinds: Mapping[str, str]
    seed: int
    chunk: tuple[int, int] | None = None


@functools.lru_cache(maxsize=24)
def _loaded(loader: Callable[[Path], Any], path: Path, key: str) -> Any:
    return loader(path)


@dataclass(frozen=True)
class TaskContext:
    """What a stage's function is given: its parameters, its inputs, and a folder to write its files into.

    The function returns a summary (JSON) or None; a ``"note"`` in it is shown beside the cell, one line for people;
    warnings of the class ``Remark`` are added to it.
    Whatever it raises becomes the outcome "failed".
    """

    task: Task
    output: Path
    input_paths: Mapping[str, Path]
    report: Callable[[int, int], None] = lambda done, total: None
    """Tells how far the work is: ``task.report(epoch, epochs)``; shown as a progress bar."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.task.parameters

    @property
    def chunk(self) -> tuple[int, int] | None:
        return self.task.chunk

    def load(self, role: str, loader: Callable[[Path], T]) -> T:
        """``loader(folder)`` of an input's artifact; kept in this process for the next task that reads it."""
        value: T = _loaded(loader, self.input_paths[role], self.task.inputs[role])
        return value

    def generator(self, *names: str | int) -> np.random.Generator:
        """The random stream of (run seed, stage, names): the same in every process, chunk and order."""
        return generator(self.task.seed, self.task.stage_key, *names)

    def integer_seed(self, *names: str | int) -> int:
        """A 63-bit seed for libraries that want an integer."""
        return seed_of(self.task.seed, self.task.stage_key, *names) >> 65
