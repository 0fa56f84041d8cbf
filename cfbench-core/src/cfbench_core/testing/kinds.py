"""The checks of each kind that no suite defines alone: contracts, data sets, analyses, replications, executors, stores and
suites."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from cfbench_core.analyses import Analysis
from cfbench_core.api import prepare
from cfbench_core.contracts import Contract
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.executors import Executor, Finished, Started
from cfbench_core.outcomes import Outcome
from cfbench_core.papers import papers_for
from cfbench_core.registry import Registry
from cfbench_core.replications import SCALES, Replication, prepare_study
from cfbench_core.specs import ComponentSpec, resolve
from cfbench_core.stages import Task
from cfbench_core.store import Store
from cfbench_core.suites import Limits, Suite
from cfbench_core.testing.checks import Check, Misbehaviour, NotApplicable, Subject, checks_of, require
from cfbench_core.testing.every_component import require_light
from cfbench_core.testing.sameness import difference
from cfbench_core.view.viewers import Viewer

CORE_CONTRACTS: Mapping[str, Contract] = {
    "analysis": Contract(protocol=Analysis),
    "executor": Contract(protocol=Executor),
    "suite": Contract(protocol=Suite),
    "viewer": Contract(protocol=Viewer),
}
"""The contracts of the kinds that are the same in every suite."""


def contract_check(spec: ComponentSpec, registry: Registry) -> Check:
    """The check that a component has the methods which its suite, or the core, requires of its kind."""

    def fulfils_its_contract(subject: Subject) -> None:
        """Does it have the methods of its kind, with their arguments?"""
        contract = contract_of(subject.spec, registry)
        if contract is None:
            raise NotApplicable(
                f"the suite {subject.spec.suite} states no contract for the kind {subject.spec.kind}"
            )
        problem = contract.problem(resolve(subject.spec.target), subject.spec.kind)
        if problem:
            raise Misbehaviour(f"{subject.spec.target}: {problem}")

    (check,) = checks_of(fulfils_its_contract)
    return check


def contract_of(spec: ComponentSpec, registry: Registry) -> Contract | None:
    """The contract for a component's kind, or None if its suite states none."""
    if spec.kind in CORE_CONTRACTS:
        return CORE_CONTRACTS[spec.kind]
    suites = [component.spec for component in registry.components("suite", spec.suite)]
    contracts = getattr(resolve(suites[0].target), "contracts", {}) if suites else {}
    found: Contract | None = contracts.get(spec.kind)
    return found


# Data sets


def loads_the_same_data_again(subject: Subject) -> None:
    """Does it load the same data twice, from two instances?"""
    try:
        first, second = (_loaded(subject.create()) for _ in range(2))
    except UserError as error:
        raise NotApplicable(f"its files are not available: {' '.join(error.lines)}") from error
    found = difference(first, second)
    require(not found, f"loading again gives other data: {found}")


def _loaded(dataset: Any) -> Any:
    if not hasattr(dataset, "find"):
        return dataset.load()
    return dataset.load(dataset.find(DataAccess(offline=True)))


# Analyses


def analysis_is_light(subject: Subject) -> None:
    """Can it be imported without torch, pandas and the like, so that listing what applies costs nothing?"""
    require_light(subject.spec.target)


# Replications


def replication_is_light(subject: Subject) -> None:
    """Can it be imported without torch, pandas and the like, so that listing papers costs nothing?"""
    require_light(subject.spec.target)


def names_what_exists(subject: Subject) -> None:
    """Do its paper, its analysis and the configurations of its studies exist, and do its studies measure something?"""
    from cfbench_core.registry import installed

    found = subject.create()
    require(isinstance(found, Replication), f"{subject.spec.target} must return a Replication")
    require(found.paper in subject.spec.papers, f"its spec does not cite its paper {found.paper!r}")
    papers_for(subject.spec)
    installed().find(subject.spec.suite, "analysis", found.analysis)
    measured = {name for item in found.items for name in item.studies}
    for study in found.studies:
        require(study.name in measured, f"no table or figure needs the study {study.name}")
        require(bool(study.changes), f"the study {study.name} exists at no scale")
        unknown = sorted({*study.changes, *study.minutes} - {*SCALES})
        require(not unknown, f"the study {study.name} has the unknown scales {', '.join(unknown)}")
        package, _, path = study.config.partition(":")
        require((resources.files(package) / path).is_file(), f"{study.config} does not exist")


def plans_its_studies(subject: Subject) -> None:
    """Can each study be planned at each of its scales that needs nothing special?"""
    for study in subject.create().studies:
        for scale in study.changes.keys() - study.needs.keys():
            access = DataAccess(planning=True)
            try:
                planned = prepare_study(study, scale, (), prepare, access=access)
            except UserError as error:
                where = f"the study {study.name} cannot be planned at the scale {scale}"
                raise Misbehaviour(f"{where}: {' '.join(error.lines)}") from error
            require(bool(planned.plan.cells), f"the study {study.name} has no cell at the scale {scale}")


# Executors


def ends_every_task_once(subject: Subject) -> None:
    """Does it start and finish every task once, with the results and failures in the outcomes?"""
    with tempfile.TemporaryDirectory() as folder:
        options = {"config": subject.configuration()} if subject.spec.config else {}
        executor = resolve(subject.spec.target)(
            Path(folder), workers=2, threads=1, limits=Limits(), search_path=[], fresh=False, **options
        )
        try:
            names = ["good", "another", "bad"]
            for name in names:
                executor.submit(_task(name))
            started: list[str] = []
            finished: dict[str, Outcome] = {}
            while len(finished) < len(names):
                event = executor.wait()
                if isinstance(event, Started):
                    started.append(event.task.label)
                elif isinstance(event, Finished):
                    require(
                        event.task.label in started, f"task {event.task.label!r} finishes before it starts"
                    )
                    require(event.task.label not in finished, f"task {event.task.label!r} finishes twice")
                    finished[event.task.label] = event.outcome
        finally:
            executor.close()
            executor.close()
        require(sorted(started) == sorted(names), f"tasks {names} were submitted, {started} were started")
        statuses = {name: outcome.status for name, outcome in finished.items()}
        require(
            statuses == {"good": "ok", "another": "ok", "bad": "failed"},
            f"the outcomes are {statuses}, must be ok, ok and failed (ValueError)",
        )
        require(
            "on purpose" in finished["bad"].reason, "the reason of a failure does not say what was raised"
        )
        labels = sorted(entry.label for entry in Store(Path(folder)).entries())
        require(labels == ["another", "good"], f"the store holds {labels}, must hold those that succeeded")


def _task(name: str) -> Task:
    return Task(
        key=name.encode().hex().ljust(64, "0"),
        stage_key="0" * 64,
        kind="example",
        label=name,
        target=f"{__name__}:example_stage",
        parameters={"name": name},
        inputs={},
        input_kinds={},
        seed=0,
    )


def example_stage(context: Any) -> dict[str, Any]:
    """A stage that writes a file, or fails."""
    if context.parameters["name"] == "bad":
        raise ValueError("it fails on purpose")
    (context.output / "name.txt").write_text(context.parameters["name"])
    return {}


# Stores


def keeps_artifacts_whole(subject: Subject) -> None:
    """Is an artifact there only after its commit, as the first to commit wrote it, and absent when it is damaged?"""
    if subject.spec.config:
        raise NotApplicable("it needs an address")
    with tempfile.TemporaryDirectory() as folder:
        root, task = Path(folder), _task("good")
        store = resolve(subject.spec.target)(root)
        require(not store.has(task.kind, task.key), "an empty store has an artifact")
        _committed(store, task, b"first", {"number": 1})
        unfinished = store.begin()
        (unfinished / "data").write_bytes(b"unfinished")
        store.abandon(unfinished)
        require(not unfinished.exists(), "a folder that was abandoned is still there")
        _committed(store, task, b"second", {"number": 2})
        other = resolve(subject.spec.target)(root)
        manifest = other.manifest(task.kind, task.key)
        require(manifest is not None, "another store on the same folder does not find the artifact")
        require(manifest["summary"] == {"number": 1}, "a second commit of a key replaces the first")
        file = other.path(task.kind, task.key) / "data"
        require(file.read_bytes() == b"first", "the artifact has other content than was committed")
        require([entry.key for entry in other.entries()] == [task.key], "its entries are not its artifacts")
        file.chmod(0o644)
        file.write_bytes(b"worse")
        fresh = resolve(subject.spec.target)(root)
        require(not fresh.has(task.kind, task.key), "an artifact with changed bytes counts as whole")
        require(bool(fresh.remove_if_damaged(task.kind, task.key)), "damage is not reported")
        require(not fresh.path(task.kind, task.key).exists(), "a damaged artifact is not removed")


def _committed(store: Store, task: Task, content: bytes, summary: Mapping[str, Any]) -> None:
    folder = store.begin()
    (folder / "data").write_bytes(content)
    store.commit(folder, task, summary, 0.0, 0)


# Suites


def suite_is_light(subject: Subject) -> None:
    """Can it be imported without torch, pandas and the like, so that planning stays fast?"""
    require_light(subject.spec.target)


def plans_its_default_configuration(subject: Subject) -> None:
    """Does its default configuration give cells, each with the labels that its layout names?"""
    from cfbench_core.api import prepare
    from cfbench_core.registry import installed

    suite, registry = resolve(subject.spec.target)(), installed()
    if subject.spec.name not in registry.suites():
        raise NotApplicable("it is not installed")
    try:
        plan = prepare(suite.default_document(registry), access=DataAccess(planning=True)).plan
    except UserError as error:
        raise Misbehaviour(f"its default configuration cannot be planned: {' '.join(error.lines)}") from error
    require(bool(plan.cells), "its default configuration has no cell")
    for cell in plan.cells:
        lacking = {*suite.layout.by, suite.layout.row} - cell.labels.keys()
        require(not lacking, f"cell {cell.id} lacks the labels {', '.join(sorted(lacking))} of the layout")
    ids = [cell.id for cell in plan.cells]
    require(len(ids) == len(set(ids)), "two cells have the same labels")
    again = prepare(suite.default_document(registry), access=DataAccess(planning=True)).plan
    keys = [[stage.key for stage in one.stages()] for one in (plan, again)]
    require(keys[0] == keys[1], "planning again gives other keys")


KIND_CHECKS: Mapping[str, tuple[Check, ...]] = {
    "dataset": checks_of(loads_the_same_data_again),
    "analysis": checks_of(analysis_is_light),
    "replication": checks_of(replication_is_light, names_what_exists, plans_its_studies),
    "executor": checks_of(ends_every_task_once),
    "store": checks_of(keeps_artifacts_whole),
    "suite": checks_of(suite_is_light, plans_its_default_configuration),
}
"""By kind; a suite adds those of its own kinds."""
