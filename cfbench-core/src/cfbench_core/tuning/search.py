"""The search: one trial after another, each an ordinary plan for the store and the executor.

Trial 0 is the component as it was configured, so a search never ends below what it began with.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from cfbench_core.api import Configuration, open_executor, prepare, store_of
from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.devices.availability import check_device
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.executors import Executor
from cfbench_core.files import disk_trouble, write_atomically
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.plan import Cell, Plan
from cfbench_core.registry import Registry
from cfbench_core.runner import Results, run_plan
from cfbench_core.specs import CORE_KINDS
from cfbench_core.stages import Stage, Task
from cfbench_core.store import Store
from cfbench_core.tuning.definition import Search, option_of
from cfbench_core.tuning.journal import Journal, Trial
from cfbench_core.tuning.protocol import TrialPlan
from cfbench_core.tuning.results import Tuned, write_configuration
from cfbench_core.tuning.sampler import Observation, propose, require_optuna
from cfbench_core.tuning.space import Dimension, search_space

TRIALS = 20
SAMPLE = 100
"""Users or rows on which an explainer is judged, unless the caller says how many."""


class Observer(Protocol):
    """Is notified of the progress of a search."""

    def begun(self, trials: Sequence[Trial]) -> None:
        """The search starts or resumes; these trials are complete."""

    def preparing(self, label: str) -> None:
        """What all trials share is being computed: this stage of it."""

    def progress(self, trial: int, share: float) -> None:
        """The running trial is so far on its way, 0 to 1."""

    def tried(self, trial: Trial, best: Trial | None) -> None:
        """A trial has ended."""


class _Nobody:
    """The observer of those who do not watch."""

    def begun(self, trials: Sequence[Trial]) -> None: ...

    def preparing(self, label: str) -> None: ...

    def progress(self, trial: int, share: float) -> None: ...

    def tried(self, trial: Trial, best: Trial | None) -> None: ...


def open_search(
    configuration: Configuration = None,
    *,
    component: str,
    metric: str | None = None,
    sample: int = SAMPLE,
    out: str | Path | None = None,
    command: str = "",
    access: DataAccess | None = None,
    registry: Registry | None = None,
    **options: Any,
) -> Search:
    """Reads a configuration and finds out what there is to search. Computes nothing.

    Args:
        configuration, access, registry, options: as in :func:`cfbench_core.api.prepare`.
        component: "recommender/mf", or "mf" where that says enough; the configuration has it.
        metric: what to judge by; the suite's choice if None.
        sample: on how many users or rows an explainer is judged.
        out: the configuration to write; "tuned-mf.yaml" if None.
        command: what to write down as the call.

    Raises:
        UserError: with a line for everything that is wrong.
    """
    access = access or DataAccess()
    prepared = prepare(configuration, access=access, registry=registry, **options)
    check_device(prepared.config.executor.options, prepared.plan.stages())
    field, place, reference = _find(prepared.config, component)
    if not hasattr(prepared.suite, "tunable"):
        raise UserError(f"the suite {prepared.config.suite!r} does not say how its components are judged")
    space = _space_of(reference)
    tunable = prepared.suite.tunable(prepared.config, prepared.registry, access, reference, metric, sample)
    target = Path(out) if out is not None else Path(f"tuned-{reference.label.replace('/', '-')}.yaml")
    return Search(prepared, field, place, reference, tunable, space, target, command)


def tune(
    configuration: Configuration = None,
    *,
    component: str,
    trials: int = TRIALS,
    timeout: float | None = None,
    restart: bool = False,
    observer: Observer | None = None,
    **options: Any,
) -> Tuned:
    """Searches the options of one component on validation data, and writes a configuration with the best.

    Called again with the same arguments, it resumes. Arguments as in :func:`open_search`
    and :func:`run_search`.
    """
    search = open_search(configuration, component=component, **options)
    return run_search(search, trials, timeout, restart, observer)


def run_search(
    search: Search,
    trials: int = TRIALS,
    timeout: float | None = None,
    restart: bool = False,
    observer: Observer | None = None,
) -> Tuned:
    """Runs until there are ``trials`` in all, those of earlier calls included.

    Args:
        timeout: seconds after which no other trial is begun.
        restart: forget the trials of earlier calls. What they computed is still in the cache.

    Raises:
        UserError: when optuna is missing, when ``out`` belongs to another search, or when what all trials
            share cannot be computed.
    """
    require_optuna()
    with disk_trouble(search.out.parent):
        journal = Journal(search.directory, search.identity, search.space, restart)
        try:
            resumed = len(journal.trials)
            if resumed < trials:
                _continue(search, journal, trials, timeout, observer or _Nobody())
            tuned = Tuned(search, tuple(journal.trials), resumed)
            tuned = dataclasses.replace(tuned, held_out=_held_out(tuned, observer or _Nobody()))
            write_configuration(tuned)
        finally:
            journal.close()
    return tuned


def _continue(
    search: Search, journal: Journal, trials: int, timeout: float | None, observer: Observer
) -> None:
    end = time.monotonic() + timeout if timeout is not None else float("inf")
    observer.begun(journal.trials)
    with _computer(search, observer) as computer:
        computer.share()
        while len(journal.trials) < trials and time.monotonic() < end:
            options = _next(search, journal.trials)
            trial = computer.trial(len(journal.trials), options)
            journal.add(trial)
            tuned = Tuned(search, tuple(journal.trials), 0)
            write_configuration(tuned)
            observer.tried(trial, tuned.best)


def _held_out(tuned: Tuned, observer: Observer) -> tuple[float, float] | None:
    """The values of the best options and of those as configured on data that judged no trial."""
    search, best = tuned.search, tuned.best
    judge = search.tunable.held_out
    if judge is None or best is None or best.number == 0:
        return None
    with _computer(search, observer) as computer:
        found = [computer.value(judge, options) for options in (best.options, search.configured)]
    return None if None in found else (found[0] or 0.0, found[1] or 0.0)


def _next(search: Search, trials: Sequence[Trial]) -> dict[str, Any]:
    if not trials:
        return search.configured
    earlier = [Observation(trial.options, trial.value) for trial in trials]
    seed = search.prepared.config.seed
    return propose(search.space, earlier, search.tunable.direction, seed, len(trials))


def _find(config: Any, component: str) -> tuple[str, int | None, ConfiguredComponent]:
    """The component that is meant: the key of the configuration, its place there, and its reference."""
    entries = [*_references(config)]
    found = [entry for entry in entries if component in _names(entry[2].kind, entry[2].label)]
    found = found or [entry for entry in entries if component in _names(entry[2].kind, entry[2].spec.name)]
    if len(found) == 1:
        return found[0]
    known = [f"{reference.kind}/{reference.label}" for _, _, reference in entries]
    if found:
        several = ", ".join(f"{reference.kind}/{reference.label}" for _, _, reference in found)
        raise UserError(f"--component {component}: is ambiguous; it may be {several}")
    hint = did_you_mean(component, [*known, *(reference.label for _, _, reference in entries)])
    raise UserError(
        f"--component {component}: is not in the configuration.{hint} It has {', '.join(known)};"
        " others are put in with --set"
    )


def _names(kind: str, name: str) -> tuple[str, str]:
    """How a component may be called: "mf", "recommender/mf"."""
    return name, f"{kind}/{name}"


def _references(config: Any) -> Iterator[tuple[str, int | None, ConfiguredComponent]]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, ConfiguredComponent) and value.kind not in CORE_KINDS:
            yield field.name, None, value
        for place, item in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(item, ConfiguredComponent):
                yield field.name, place, item


def _space_of(reference: ConfiguredComponent) -> tuple[Dimension, ...]:
    spec = reference.spec
    if reference.options_for:
        raise UserError(
            f"{reference.label} has options by data and model ('preset: auto' or 'options_for'): a search begins with one"
            " set of options"
        )
    if getattr(reference.options, "variant", None) == "paper":
        raise UserError(f"{reference.label} is a method as published, so there is nothing to search")
    try:
        space = search_space(type(reference.options)) if spec.config else ()
    except ValueError as error:
        raise UserError(f"{spec.id} cannot be tuned: {spec.config}: {error}") from error
    space = tuple(dimension for dimension in space if not _is_refused(reference, dimension))
    if not space:
        raise UserError(
            f"{spec.id} cannot be tuned: none of its options that apply here has values to try (Search)"
        )
    return space


def _is_refused(reference: ConfiguredComponent, dimension: Dimension) -> bool:
    """Whether an option has no meaning with the others: the configuration refuses all values but the present one."""
    present = option_of(reference, dimension.name)
    for value in dimension.choices or (dimension.low, dimension.high):
        if value == present:
            continue
        try:
            reference.with_options({dimension.name: value})
        except (ValueError, UserError):
            continue
        return False
    return True


@contextmanager
def _computer(search: Search, observer: Observer) -> Iterator[_Computer]:
    store = store_of(search.prepared)
    store.clean_abandoned()
    executor = open_executor(search.prepared, store, search.directory / "logs" / "output.txt")
    try:
        yield _Computer(search, store, executor, observer)
    finally:
        executor.close()
        store.clean_abandoned()


class _Computer:
    """Computes the plans of one search with one executor, whose workers cache what they loaded."""

    def __init__(self, search: Search, store: Store, executor: Executor, observer: Observer) -> None:
        self.search = search
        self.store = store
        self.executor = executor
        self.observer = observer
        self.shared: set[str] = set()

    def share(self) -> None:
        """What all trials read. Raises UserError when it fails: no trial would do better."""
        results = self._run("shared", self.search.tunable.shared, _Preparing(self.observer))
        problem = self._problem(results, "shared")
        if problem is not None:
            raise UserError(f"what all trials share cannot be computed: {problem.reason}")
        self.shared = set(results.outcomes)

    def trial(self, number: int, options: Mapping[str, Any]) -> Trial:
        """However it ends, it is a trial."""
        try:
            candidate = self.search.reference.with_options(options)
        except (ValueError, UserError) as error:  # the configuration refuses the combination
            return Trial(number, options, "failed", None, str(error))
        plan = self.search.tunable.plan(candidate)
        results = self._run(f"trial {number}", plan.stages, _Trying(self.observer, number))
        own = [outcome for key, outcome in results.outcomes.items() if key not in self.shared]
        seconds = round(sum(outcome.elapsed_seconds for outcome in own), 6)
        problem = self._problem(results, f"trial-{number:04}")
        if problem is not None:
            return Trial(number, options, problem.status, None, problem.reason, seconds)
        return self._judged(number, options, plan, results, seconds)

    def value(
        self, judge: Callable[[ConfiguredComponent], TrialPlan], options: Mapping[str, Any]
    ) -> float | None:
        """The value of a component with these options on held-out data; None where it has none."""
        plan = judge(self.search.reference.with_options(options))
        results = self._run("held out", plan.stages, _Preparing(self.observer))
        if self._problem(results, "held-out") is not None:
            return None
        try:
            found = plan.value(results, self.store)
        except UserError:
            return None
        return found if math.isfinite(found) else None

    def _judged(
        self, number: int, options: Mapping[str, Any], plan: TrialPlan, results: Results, seconds: float
    ) -> Trial:
        try:
            value = plan.value(results, self.store)
        except UserError as error:
            return Trial(number, options, "failed", None, " ".join(error.lines), seconds)
        if not math.isfinite(value):
            return Trial(number, options, "failed", None, f"its value is {value}", seconds)
        return Trial(number, options, "ok", value, "", seconds)

    def _run(self, name: str, stages: Mapping[str, Stage], watch: Any) -> Results:
        prepared = self.search.prepared
        plan = Plan(prepared.config.suite, (Cell({"trial": name}, stages=stages),), prepared.plan.layout)
        return run_plan(plan, self.store, self.executor, prepared.config.chunk, False, watch)

    def _problem(self, results: Results, name: str) -> Outcome | None:
        """The first outcome that is not done; its whole story goes to the logs."""
        problem = next((outcome for outcome in results.outcomes.values() if not outcome.done), None)
        if problem is not None and problem.traceback:
            write_atomically(self.search.directory / "logs" / f"{name}.txt", problem.traceback)
        return problem


class _Preparing:
    """Notifies the observer of a search of the stages that all trials share."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def started(self, task: Task) -> None:
        self.observer.preparing(task.label)

    def progress(self, task: Task, done: int, total: int) -> None: ...

    def finished(self, task: Task, outcome: Outcome, done: int, total: Total) -> None: ...


class _Trying:
    """Notifies the observer of a search of the progress of a trial: finished tasks and fractions of running ones."""

    def __init__(self, observer: Observer, number: int) -> None:
        self.observer = observer
        self.number = number
        self.running: dict[str, float] = {}
        self.done, self.known = 0, 1

    def started(self, task: Task) -> None:
        self.running[task.key] = 0.0

    def progress(self, task: Task, done: int, total: int) -> None:
        self.running[task.key] = min(done / total, 1.0) if total else 0.0
        self._notify()

    def finished(self, task: Task, outcome: Outcome, done: int, total: Total) -> None:
        self.running.pop(task.key, None)
        self.done, self.known = done, total.tasks
        self._notify()

    def _notify(self) -> None:
        self.observer.progress(self.number, (self.done + sum(self.running.values())) / max(self.known, 1))
