"""Everything a command does is one call away: ``cfbench_core.run("study.yaml")``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import (
    ConfiguredComponent,
    Document,
    decode_experiment,
    loaded,
    resolved_document,
)
from cfbench_core.config.code_references import add_module_folder, names_code
from cfbench_core.config.component import with_defaults
from cfbench_core.config.options_by_setting import auto_notes
from cfbench_core.cores import usable_cores
from cfbench_core.data_files import DataAccess
from cfbench_core.devices.availability import check_device, device_problem
from cfbench_core.devices.choice import resolved_device
from cfbench_core.errors import UserError
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.plain_text import one_line
from cfbench_core.plan import Plan
from cfbench_core.primary_metric import with_primary
from cfbench_core.redaction import remember
from cfbench_core.registry import Registry, installation_advice, installed
from cfbench_core.specs import CORE
from cfbench_core.stages import Task
from cfbench_core.used_components import check_all_contribute

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Runs
    from cfbench_core.executors import Executor
    from cfbench_core.run_directory import Run
    from cfbench_core.runner import Observer, Results
    from cfbench_core.store import Store

Configuration = str | Path | Mapping[str, Any] | None
"""A YAML file, the same as Python data, or None for the default of what is installed."""


@dataclass(frozen=True)
class Prepared:
    """A configuration that was read and understood: the suite, its settings, the plan, and who computes it.

    ``explanations`` is the table of external explanations to score; None if cfbench computes them. ``notes`` are lines for
    people, on which presets ``preset: auto`` took.
    """

    suite: Any
    config: Any
    plan: Plan
    document: Mapping[str, Any]
    search_path: tuple[str, ...]
    registry: Registry
    explanations: Path | None = None
    notes: tuple[str, ...] = ()


def prepare(
    configuration: Configuration = None,
    *,
    set: Sequence[str] = (),
    suite: str | None = None,
    executor: str | None = None,
    workers: int | None = None,
    access: DataAccess | None = None,
    explanations: Path | None = None,
    registry: Registry | None = None,
    allow_env: Sequence[str] = (),
) -> Prepared:
    """Reads a configuration and plans it. Trains nothing, and imports neither torch nor pandas.

    Args:
        configuration: a file, a mapping, or None for the default of ``suite`` (or of the first suite installed; with
            ``explanations``, of a suite that can score them without data and models).
        set: changes such as ``["protocol.k=[3, 5]"]``; a plain string is one change.
        executor, workers: in place of the configuration's. An executor that the configuration names as well has the
            options given there, except for its number of workers.
        access: where data sets are looked for, and whether they may be downloaded.
        explanations: a table of external explanations to score; no explainer runs.
        allow_env: environment variables that the configuration may name as keys, in addition to ``*_API_KEY``.

    Raises:
        UserError: with a line for everything that is wrong.
    """
    registry = registry or installed()
    document = _document(configuration, suite, registry, explanations)
    document.allowed_variables = frozenset(allow_env)
    remember(allow_env)
    document.set(set)
    folders = (str(document.folder),) if names_code(document) else ()
    for folder in folders:
        add_module_folder(folder)
    the_suite, config = decode_experiment(document, registry)
    config = _executed_by(config, executor, workers, registry)
    config = dataclasses.replace(config, device=resolved_device(config))
    with document.named_in_errors():
        cells = the_suite.cells(config, registry, access or DataAccess(), explanations)
        layout = with_primary(the_suite.layout, config.primary_metric, cells)
    plan = Plan(config.suite, tuple(cells), layout)
    with document.named_in_errors():
        _check_kinds(config.executor.options, plan)
    if explanations is None:  # external explanations take the place of components of the configuration
        check_all_contribute(config, plan, document)
    notes = tuple(auto_notes(document, config, getattr(the_suite, "models_key", "")))
    written = resolved_document(config)
    return Prepared(the_suite, config, plan, written, folders, registry, explanations, notes)


def _check_kinds(executor_options: Any, plan: Plan) -> None:
    """An executor whose options name kinds of tasks has ``check_kinds``, which raises a UserError for an unknown one."""
    check = getattr(executor_options, "check_kinds", None)
    if check is not None:
        check({stage.kind for stage in plan.stages()})


def _executed_by(config: Any, executor: str | None, workers: int | None, registry: Registry) -> Any:
    """A configuration with another executor, and another number of workers, where they are given."""
    if workers is not None and (type(workers) is not int or workers < 1):
        raise UserError(f"workers: must be a whole number >= 1, got {one_line(repr(workers), 40)}")
    chosen: ConfiguredComponent = config.executor
    if executor is not None and executor != chosen.spec.name:
        chosen = with_defaults(registry.find(CORE, "executor", executor))
    if workers is None:
        return dataclasses.replace(config, executor=chosen)
    if hasattr(chosen.options, "workers"):
        chosen = chosen.with_options({"workers": None})
    return dataclasses.replace(config, executor=chosen, workers=workers)


def _document(
    configuration: Configuration, suite: str | None, registry: Registry, explanations: Path | None
) -> Document:
    if isinstance(configuration, (str, Path)):
        return Document.read(Path(configuration))
    if configuration is not None:
        return Document.of(configuration)
    if explanations is not None:
        return Document.of(_document_for(explanations, suite, registry), source="default configuration")
    the_suite = _suite(suite or _default_suite(registry), registry)
    return Document.of(the_suite.default_document(registry), source="default configuration")


def _suite(name: str, registry: Registry) -> Any:
    spec = registry.find(name, "suite", name).spec
    return loaded(spec.target, spec, "")()


def _document_for(explanations: Path, suite: str | None, registry: Registry) -> Mapping[str, Any]:
    """The configuration by which explanations are scored that come without one."""
    if not explanations.is_file():
        raise UserError(f"no such file: {explanations}")
    names = [suite] if suite is not None else registry.suites()
    able = [one for one in (_suite(name, registry) for name in names) if hasattr(one, "document_for")]
    if len(able) != 1:
        whose = f"explanations of the suite {suite}" if suite is not None else "these explanations"
        raise UserError(
            f"{explanations}: {whose} are scored with the data and models of a configuration: "
            "cfbench evaluate study.yaml --explanations FILE"
            + (", or name a suite with --suite" if len(able) > 1 else "")
        )
    found: Mapping[str, Any] = able[0].document_for(explanations)
    return found


def _default_suite(registry: Registry) -> str:
    """The first installed suite that has something to explain with."""
    suites = registry.suites_to_run()
    if not suites:
        raise UserError(f"nothing to run: no explainer is installed. Try: {installation_advice()}")
    return suites[0]


def plan(configuration: Configuration = None, **options: Any) -> Plan:
    """The plan of a configuration: every cell, with the reason where it is skipped. Options as in :func:`prepare`.

    Downloads nothing: stages of a data set that is yet to be downloaded have other keys than those of the run.
    """
    return prepare(configuration, **{"access": DataAccess(planning=True), **options}).plan


def run(
    configuration: Configuration = None,
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    observer: Observer | None = None,
    **options: Any,
) -> Run:
    """Runs a configuration to its end and returns the run: ``run.scores``, ``run.explanations``, ``run.summary``.

    Args:
        configuration: a YAML file, a mapping, or None for the small default of what is installed.
        out: the run directory; a new one below ``runs/`` if None. A directory that holds an earlier, unfinished run
            of the same configuration is completed.
        fresh: compute everything again, whatever the cache holds.
        observer: is notified of progress.
        options: as in :func:`prepare`.
    """
    prepared = prepare(configuration, **options)
    return execute(prepared, out=out, fresh=fresh, observer=observer)


def execute(
    prepared: Prepared,
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    observer: Observer | None = None,
) -> Run:
    """Runs what :func:`prepare` made.

    Raises:
        UserError: before anything is computed, if this machine lacks the device of a task that is not cached; and where
            the disk, the cache or the run directory cannot be used.
    """
    from cfbench_core.environment import capture
    from cfbench_core.files import check_path, disk_trouble
    from cfbench_core.run_directory import Run
    from cfbench_core.run_ends import restore_end, store_end
    from cfbench_core.run_inputs import inputs_of, is_unchanged, write_inputs
    from cfbench_core.run_writer import RunWriter, new_run_directory
    from cfbench_core.runner import computed_by
    from cfbench_core.store import default_root
    from cfbench_core.used_components import describe_used

    for folder in (Path("runs" if out is None else out), default_root()):
        check_path(folder)
    _check_cache(prepared, fresh)
    _check_devices(prepared, fresh)
    directory = Path(out) if out is not None else new_run_directory(Path("runs"))
    with disk_trouble(directory):
        recorder = RunWriter(directory, prepared.plan, prepared.document, prepared.explanations, fresh)
        try:
            environment = {**capture(), "seed": prepared.config.seed}
            recorder.begin_environment(environment)
            used = describe_used(prepared.plan.suite, prepared.config, prepared.plan, prepared.registry)
            recorder.write_components(used)
            results, store = _compute(prepared, recorder, fresh, observer)
            inputs = inputs_of(prepared.plan, results, store, prepared.document, prepared.registry)
            if is_unchanged(directory, inputs) or (
                not fresh and restore_end(directory, prepared.plan, store, inputs)
            ):
                recorder.write_plan(results, _data_description(prepared, results))
                run = Run(directory)
            else:
                recorder.remove_end()
                recorder.write_environment({**environment, "computed_by": computed_by(results)})
                recorder.write_tables(results, store)
                recorder.write_plan(results, _data_description(prepared, results))
                run = Run(directory)
                _write_reports(run, prepared)
                write_inputs(directory, inputs)
                store_end(directory, prepared.plan, store, inputs)
            recorder.write_checksums()
        finally:
            recorder.close()
    return run


def _check_cache(prepared: Prepared, fresh: bool) -> None:
    """Where all is cached, nothing needs to be written, unless everything is computed again."""
    from cfbench_core.files import cache_root, check_cache
    from cfbench_core.runner import uncomputed

    if check_cache(cache_root()):
        return
    stages = prepared.plan.stages()
    missing = stages if fresh else uncomputed(stages, store_of(prepared), prepared.config.chunk)
    if missing:
        raise UserError(
            f"{cache_root()}: the cache folder (CFBENCH_CACHE_DIR) cannot be written to, and {len(missing)} of "
            f"{len(stages)} stages are to be computed; change its permissions, or choose another folder"
        )


def _check_devices(prepared: Prepared, fresh: bool) -> None:
    """What is cached needs no device, unless everything is computed again."""
    from cfbench_core.runner import uncomputed

    options, stages = prepared.config.executor.options, prepared.plan.stages()
    if device_problem(options, stages):
        store = store_of(prepared)
        check_device(options, stages if fresh else uncomputed(stages, store, prepared.config.chunk))


def _compute(
    prepared: Prepared, recorder: Any, fresh: bool, observer: Observer | None
) -> tuple[Results, Any]:
    from cfbench_core.runner import run_plan

    store = store_of(prepared)
    store.clean_abandoned()
    executor = open_executor(prepared, store, recorder.directory / "logs" / "output.txt", fresh)
    try:
        watch = _Recording(recorder, observer)
        return run_plan(prepared.plan, store, executor, prepared.config.chunk, fresh, watch), store
    finally:
        executor.close()
        store.clean_abandoned()


def store_of(prepared: Prepared) -> Store:
    """The store that a configuration names.

    Raises:
        UserError: where it cannot be reached.
    """
    from cfbench_core.stores import open_store

    options = prepared.config.store.options
    return open_store(remote=getattr(options, "remote", None))


def open_executor(prepared: Prepared, store: Store, log: Path, fresh: bool = False) -> Executor:
    """The executor that a configuration names. The caller closes it."""
    config, chosen = prepared.config, prepared.config.executor
    options = {"config": chosen.options} if chosen.spec.config else {}
    if store.remote is not None:
        options["remote"] = store.remote
    executor: Executor = chosen.implementation()(
        store.root,
        workers=config.workers or usable_cores(),
        threads=config.threads,
        limits=config.limits,
        search_path=list(prepared.search_path),
        fresh=fresh,
        log=log,
        **options,
    )
    return executor


class _Recording:
    """Records each outcome before it notifies the observer."""

    def __init__(self, recorder: Any, observer: Observer | None) -> None:
        self.recorder = recorder
        self.observer = observer

    def started(self, task: Task) -> None:
        if self.observer is not None:
            self.observer.started(task)

    def progress(self, task: Task, done: int, total: int) -> None:
        if self.observer is not None:
            self.observer.progress(task, done, total)

    def finished(self, task: Task, outcome: Outcome, done: int, total: Total) -> None:
        self.recorder.finished(task, outcome)
        if self.observer is not None:
            self.observer.finished(task, outcome, done, total)


def _data_description(prepared: Prepared, results: Results) -> str:
    read = [stage for stage in prepared.plan.stages() if stage.kind == "data"]
    summaries = {
        stage.label: outcome.summary for stage in read for _, outcome in results.of(stage) if outcome.done
    }
    description: str = prepared.suite.describe_data(prepared.config, summaries)
    return description


def _write_reports(run: Run, prepared: Prepared) -> None:
    """``summary.csv``, ``report.json`` and ``report.html``."""
    from cfbench_core.reports import write_html
    from cfbench_core.reports.saved import save
    from cfbench_core.reports.tables import tables
    from cfbench_core.run_directory import write_summary
    from cfbench_core.threads import limited_threads

    # The matrices are small: further threads would take processor time in waiting, and may change the last bits.
    with limited_threads(1):
        write_summary(run)
        words = prepared.suite.verbalize(run)
        save(run, tables(run), words)
        write_html(run, verbalization=words, registry=prepared.registry)


def analyse(
    name: str,
    runs: Runs,
    /,
    *,
    registry: Registry | None = None,
    **options: Any,
) -> pd.DataFrame:
    """The table of an analysis of one run, or of several of one suite, as a tidy frame with unrounded numbers.

    Args:
        name: of the analysis; ``cfbench list analyses`` has them.
        runs: a run, its directory, or several.
        options: of the analysis, as ``cfbench describe NAME`` lists them.

    Raises:
        UserError: for an unknown name, wrong options, runs to which it does not apply, or an analysis that fails.
    """
    from cfbench_core import analyses

    registry = registry or installed()
    opened = analyses.opened(runs)
    answer = analyses.run_analysis(analyses.find(name, opened, registry), opened, registry, options)
    return answer.required_table(opened)
