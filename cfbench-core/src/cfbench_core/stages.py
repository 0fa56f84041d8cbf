"""Stages and tasks: what there is to compute, as plain data, named by the hash of all that determines it.

A *stage* is a function (``target``), the functions of its suite that it calls (``steps``), their parameters, and the
stages whose results it reads. Its key is the hash of these and of the code behind them, so equal computations have one
name within a run and across runs, and its result is an artifact under that name.

A stage may be *chunked*: then it is computed a range of *groups* at a time (a group is what must stay together, for
example one user with all explained items). The groups are listed by the stage in the role ``"units"``: its artifact holds
``units.parquet``, with a column ``unit`` and a column ``group`` (0, 1, ...), and its summary ``{"groups": n}``. A chunk
of a chunked stage reads the same chunk of its chunked inputs.

A *task* is a stage, or one chunk of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cfbench_core.devices.choice import CPU, without_ordinals
from cfbench_core.hashing import digest
from cfbench_core.lifecycle.streams import Streams

UNITS = "units"
T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """One step of a suite's life cycle.

    Attributes:
        kind: "data", "model", "units", "explainer", "explanations", "scores", ...; the artifact's folder.
        label: for people: "mf on debian-python".
        target: the function to call with a :class:`TaskContext`, ``"package.module:name"``.
        parameters: JSON; with ``inputs``, ``seed`` and the code all that determines the result (component ids,
            their configuration, fingerprints of files, ...).
        inputs: the stages it reads, by role.
        seed: the run's seed (0 for stages that draw nothing, so that runs of other seeds share them).
        chunked: computed a range of groups at a time, as listed by the input in the role ``"units"``.
        steps: functions of the suite that the target calls, by name, ``"package.module:name"``.
        dataset: the name of the dataset's component; names the stage's random streams.
        device: where it computes, "cpu", or "cuda" with the rules for its numbers (see ``devices/choice.py``).
    """

    kind: str
    label: str
    target: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Stage] = field(default_factory=dict)
    seed: int = 0
    chunked: bool = False
    steps: Mapping[str, str] = field(default_factory=dict)
    dataset: str = ""
    device: str = CPU

    @functools.cached_property
    def key(self) -> str:
        """64 hexadecimal digits. Labels do not count: renaming something does not change it.

        The code of the target, of the steps and of every component among the parameters counts, with all in-house
        modules that they import and the minor versions of the libraries.
        """
        from cfbench_core.lifecycle.code import closure

        code = closure(self.target, *self.steps.values(), *sorted(set(references(self.parameters))))
        return digest(
            {
                "kind": self.kind,
                "target": self.target,
                "steps": dict(self.steps),
                "parameters": self.parameters if self.device == CPU else without_ordinals(self.parameters),
                "device": self.device,
                "inputs": {role: stage.key for role, stage in self.inputs.items()},
                "seed": self.seed,
                "dataset": self.dataset,
                "code": code.digest,
                "libraries": dict(code.libraries),
            }
        )


DATA = "data"
"""The kind of a stage that reads a data set."""

MODEL = "model"
"""The parameter of a stage that makes a model: the parameters of its component."""


def models_of(inputs: Mapping[str, Stage]) -> Mapping[str, Mapping[str, Any]]:
    """The parameters of the components of those inputs that are models, by role."""
    return {role: needed.parameters[MODEL] for role, needed in inputs.items() if MODEL in needed.parameters}


CODE = ("target", "config", "factory")
"""Names of parameters whose values are references to code, ``"package.module:Name"``."""


def references(value: Any) -> Iterator[str]:
    """The references to code anywhere among parameters."""
    if isinstance(value, (str, int, float)):  # most values; the check for Mapping is slow
        return
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name in CODE and isinstance(inner, str) and inner.count(":") == 1:
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from references(inner)


@dataclass(frozen=True)
class Task:
    """A stage, or one chunk of it, ready to be computed: JSON all through, so that it can cross a pipe.

    ``key`` names the artifact to write; ``stage_key`` the stage (equal for all its chunks); ``inputs`` the
    artifacts to read, by role; ``chunk`` the half-open range of groups, None for a whole stage. ``models`` says which
    component made the inputs that are models, by role: an artifact of the cache is data and names no class.
    ``device`` says where it computes, as in its stage.
    ``domain`` names the packages of other distributions whose code the task runs (see ``isolation/domains.py``), empty if
    there are none. ``code`` describes the code and the libraries that the plan was made with (see
    ``lifecycle/same_code.py``) where another machine may compute the task; empty if they need not be compared.
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
    steps: Mapping[str, str] = field(default_factory=dict)
    dataset: str = ""
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    device: str = CPU
    domain: str = ""
    code: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pool(self) -> str:
        """Tasks share a worker process only if they have the same domain and compute on the same class of device."""
        return self.domain if self.device == CPU else f"{self.domain} on {self.device}"


@functools.lru_cache(maxsize=24)
def _loaded(loader: Callable[[Path], Any], path: Path, key: str) -> Any:
    return loader(path)


def forget_loaded() -> None:
    """Releases what :meth:`TaskContext.load` has cached in this process."""
    _loaded.cache_clear()


@dataclass(frozen=True)
class TaskContext:
    """What a stage's function receives: the task, its inputs, and a folder to write its files into.

    The function returns a summary (JSON) or None; a ``"note"`` in it is shown with the cell, one line for people;
    warnings of the class ``ResultWarning`` are added to it. Whatever it raises becomes the outcome "failed".
    """

    task: Task
    output: Path
    input_paths: Mapping[str, Path]
    report: Callable[[int, int], None] = lambda done, total: None
    """Reports progress: ``context.report(epoch, epochs)``; shown as a progress bar."""
    provisional: bool = False
    """Whether an input is incomplete, so that its key does not determine its content: it must not be memoized."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.task.parameters

    @property
    def chunk(self) -> tuple[int, int] | None:
        return self.task.chunk

    @property
    def streams(self) -> Streams:
        """The random streams of the run's seed on the dataset: equal in every process, chunk and order."""
        return Streams(self.task.seed, self.task.dataset)

    def step(self, name: str) -> Any:
        """A function of the suite, by its name among the stage's steps."""
        from cfbench_core.specs import resolve

        return resolve(self.task.steps[name])

    def load(self, role: str, loader: Callable[[Path], T]) -> T:
        """``loader(folder)`` of an input's artifact, its arrays read-only.

        It stays in this process for the next task that reads it.
        """
        from cfbench_core.isolation.protection import protect

        path = self.input_paths[role]
        value: T = loader(path) if self.provisional else _loaded(loader, path, self.task.inputs[role])
        return protect(f"the {role}", value)
