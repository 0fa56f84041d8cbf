"""What a suite is to the core: a configuration, a way to make cells of it, and a layout for the results.

Suites share a life cycle, not a signature: data -> model -> units -> explainer -> explanations -> scores.
What a unit is, how it is explained and how an explanation is scored is the suite's own business.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from cfbench_core.component_specs import component_specs
from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range
from cfbench_core.config.component import with_defaults
from cfbench_core.contracts import Contract
from cfbench_core.devices.choice import Device
from cfbench_core.plan import Cell, TableLayout
from cfbench_core.registry import Component

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one task (a stage, or one chunk of it) may use before it is ended. Executors ``process`` and ``dask``."""

    seconds: Annotated[float, Range(above=0), Help("wall time")] = 1800.0
    memory_gb: Annotated[float, Range(above=0), Help("resident memory")] = 8.0
    gpu_memory_gb: Annotated[
        float,
        Range(above=0),
        Help("memory of a GPU for one task; it gets as many workers as it holds of these, at least one"),
    ] = 8.0


@functools.cache
def process_executor() -> ConfiguredComponent:
    """The executor of a configuration that names none."""
    return _of_core("executor", "process")


@functools.cache
def file_store() -> ConfiguredComponent:
    """The store of a configuration that names none."""
    return _of_core("store", "file")


def _of_core(kind: str, name: str) -> ConfiguredComponent:
    (spec,) = (spec for spec in component_specs("cfbench_core", kind) if spec.name == name)
    return with_defaults(Component(spec, "cfbench-core", metadata.version("cfbench-core")))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The part of a configuration that every suite shares. A suite's own configuration extends it."""

    suite: Annotated[str, Help("recsys, tabular, ...")]
    seed: Annotated[int, Range(minimum=0), Help("of every random stream")] = 0
    executor: Annotated[
        ConfiguredComponent, OfKind("executor"), Help("inline, process, dask; some have options")
    ] = field(default_factory=process_executor)
    store: Annotated[ConfiguredComponent, OfKind("store"), Help("file, fsspec: where results are cached")] = (
        field(default_factory=file_store)
    )
    workers: Annotated[int | None, Range(minimum=1), Help("tasks at a time; none: one per usable core")] = (
        None
    )
    threads: Annotated[
        int, Range(minimum=1), Help("of each worker; part of what determines the last bits")
    ] = 1
    device: Annotated[
        Device,
        Help("what device: auto of components means; auto: cuda where this machine has a GPU"),
    ] = "auto"
    deterministic: Annotated[
        bool, Help("on cuda: algorithms that give the same bits each time, where torch has them")
    ] = True
    chunk: Annotated[int, Range(minimum=1), Help("users or rows per unit of work")] = 50
    limits: Limits = field(default_factory=Limits)
    primary_metric: Annotated[
        tuple[str, ...],
        Help(
            "metrics that decide the order of rows and the headline: the first that a table has; none: those of the suite"
        ),
    ] = ()


class Suite(Protocol):
    """The implementation behind a component of kind "suite". Importing it must not import torch or pandas.

    One that reads tables of the user's own may also have ``csv_document(file, class_column, registry,
    encoding)``, which looks at a CSV file and returns a commented configuration for it, for ``cfbench init --csv``.
    One whose explanations can be scored by what stands next to them may have ``document_for(explanations)``, the
    configuration of ``cfbench evaluate`` without one. One that leaves units of the data out may have
    ``left_out(run, unit)``, which returns the reason for a unit, or "". One that cannot put every explanation into words may
    have ``units_in_words(run)``, the number of cells with a sentence by unit, and ``why_not_in_words(run, units)``, the
    reason why there is no sentence of some units, or "" if none of their explanations is valid.
    """

    config: type[Experiment]
    layout: TableLayout
    contracts: Mapping[str, Contract]
    """What components of each kind must offer; also gives the capabilities of classes named with ``import:``."""

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        """The configuration that ``cfbench run`` uses when none is given: small, real, over what is installed."""

    def example_document(self, registry: Registry) -> str:
        """A commented YAML configuration for ``cfbench init``."""

    def cells(
        self,
        config: Any,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        """The grid. ``access`` tells where data sets are looked for.

        With ``explanations`` (a table made elsewhere, columns of the contract) the cells score that.
        """

    def describe_data(self, config: Any, summaries: Mapping[str, Any]) -> str:
        """A few words for the head line, from what the stages of kind "data" reported, by their labels."""

    def verbalize(self, run: Run) -> str:
        """One explanation of the run as a sentence, or "" when there is none to tell."""
