"""Replications of papers: components of kind "replication", run by ``cfbench reproduce``.

A replication says which studies measure the tables, figures and claims of a paper. A study is a configuration that a
package ships, with changes for each scale; the result is one analysis of all runs of the studies, whose table names
the table or figure of each row in one column, and has the printed number, ours, and a verdict (``verdicts.py``).
Studies run as any configuration does, so they are resumed, share the cache, and use every executor.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cfbench_core.config import Document, decode_experiment, one_or_several
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plain_text import one_line
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.specs import resolve
from cfbench_core.study_changes import changes_of_studies, with_study_options

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Answer
    from cfbench_core.api import Prepared
    from cfbench_core.run_directory import Run

SMALL, PAPER = "small", "paper"
SCALES = (SMALL, PAPER)
"""A version that shows the way on a laptop, and the size of the paper (or the largest that its data allow)."""

FOLDER = Path("reproductions")
"""Where runs of replications are stored, below the working directory: FOLDER/PAPER/SCALE/STUDY."""


@dataclass(frozen=True, kw_only=True)
class ReplicationStudy:
    """A configuration that measures some tables of a paper.

    Attributes:
        name: of its run directory.
        config: ``"package:folder/file.yaml"``, shipped with the package.
        changes: for each scale that it has, changes such as ``"protocol.users=20"``.
        minutes: for each scale, the measured minutes of all tasks, added up; missing where not measured.
        needs: for a scale, what a user must bring besides the installed packages and public data, in a few words.
    """

    name: str
    config: str
    changes: Mapping[str, tuple[str, ...]]
    minutes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    needs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, kw_only=True)
class PublishedItem:
    """A table, a figure or the claims of a paper.

    Attributes:
        name: ``"table-3"``, ``"figure-2"``, ``"claims"``.
        caption: what it shows, in one line.
        studies: the studies that measure it, by name; none if it is not reproduced.
        rows: the values in the analysis's column that belong to it.
        reason: why it is not reproduced, or only in part; empty if it is whole.
        stored: the size of what the documentation's stored result has of it, such as "paper" or "100 users"; empty if none.
        scales: at which the studies measure it.
    """

    name: str
    caption: str
    studies: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    reason: str = ""
    stored: str = ""
    scales: tuple[str, ...] = SCALES


@dataclass(frozen=True, kw_only=True)
class Replication:
    """The tables, figures and claims of one paper, and how they are measured.

    Attributes:
        title: of the paper, in a few words.
        paper: its key in the package's ``papers.toml``.
        studies: what is run.
        items: what is printed.
        analysis: the name of the analysis of the same suite that compares.
        options: of the analysis.
        other_data: further options of the analysis for a study of other data sets, such as ``{"other_data": True}``.
        column: of the analysis's table, that says to which item a row belongs.
        seeds: whether the analysis compares runs of several seeds, so that each study can be run once for each.
        stored: the name of the stored result in the documentation; empty if there is none.
    """

    title: str
    paper: str
    studies: tuple[ReplicationStudy, ...]
    items: tuple[PublishedItem, ...]
    analysis: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    other_data: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    column: str = "item"
    seeds: bool = False
    stored: str = ""

    def __post_init__(self) -> None:
        known = [study.name for study in self.studies]
        for item in self.items:
            unknown = [name for name in item.studies if name not in known]
            if unknown:
                raise ValueError(
                    f"replication of {self.paper}: {item.name} names unknown studies {', '.join(unknown)}"
                )
            if not item.studies and not item.reason:
                raise ValueError(
                    f"replication of {self.paper}: {item.name} needs studies, or a reason why it has none"
                )
            if item.scales != SCALES and not item.reason:
                raise ValueError(
                    f"replication of {self.paper}: {item.name} needs a reason why it is not of all scales"
                )

    def chosen(self, names: Sequence[str], scale: str) -> list[PublishedItem]:
        """The items of these names; all that are reproduced at this scale if none is given.

        Raises:
            UserError: for an unknown name, and for an item that no study measures at this scale.
        """
        if not names:
            return [item for item in self.items if item.studies and scale in item.scales]
        found = self.named(names)
        for item in found:
            if not item.studies:
                raise UserError(f"{item.name} of {self.title} is not reproduced: {item.reason}")
            if scale not in item.scales:
                raise UserError(
                    f"{item.name} of {self.title} is not reproduced at the scale {scale}: {item.reason}"
                )
        return found

    def named(self, names: Sequence[str]) -> list[PublishedItem]:
        """The items of these names, reproduced or not, each once. "table-4" is also "table-iv".

        Raises:
            UserError: for an unknown name.
        """
        own = {item.name: item for item in self.items}
        known = {with_digits(item.name): item for item in self.items} | own
        for name in names:
            if name not in known:
                hint = did_you_mean(name, list(known))
                raise UserError(f"no table or figure {name!r} in {self.title}.{hint}  ({', '.join(own)})")
        return list(dict.fromkeys(known[name] for name in names))

    def studies_of(self, items: Sequence[PublishedItem], scale: str) -> list[ReplicationStudy]:
        """The studies that measure some items, each once, in their order.

        Raises:
            UserError: if none of them exists at this scale.
        """
        needed = {name for item in items for name in item.studies}
        found = [study for study in self.studies if study.name in needed and scale in study.changes]
        if not found:
            named = ", ".join(item.name for item in items)
            raise UserError(f"{named} of {self.title}: there is no study at the scale {scale}")
        return found

    def with_seeds(
        self, studies: Sequence[ReplicationStudy], seeds: Sequence[int], changes: Sequence[str] = ()
    ) -> list[ReplicationStudy]:
        """Each study once for each seed, named ``STUDY-seed-N``; as they are if no seed is given.

        Raises:
            UserError: if the analysis does not compare several seeds, or ``changes`` set the seed as well.
        """
        if not seeds:
            return list(studies)
        if not self.seeds:
            raise UserError(
                f"--seeds does not apply to {self.title}: its analysis does not compare runs of several seeds"
            )
        if any(change.startswith("seed=") for change in changes):
            raise UserError("the seed is set twice, by --seeds and by --set")
        return [
            dataclasses.replace(
                study,
                name=f"{study.name}-seed-{seed}",
                changes={scale: (*given, f"seed={seed}") for scale, given in study.changes.items()},
            )
            for seed in dict.fromkeys(seeds)
            for study in studies
        ]

    def rows(self, table: pd.DataFrame, items: Sequence[PublishedItem]) -> pd.DataFrame:
        """The rows of the analysis's table that belong to these items."""
        wanted = {value for item in items for value in (item.rows or (item.name,))}
        return table[table[self.column].isin(wanted)]


@dataclass(frozen=True)
class Reproduction:
    """What ``cfbench reproduce`` found: the runs, and their comparison with the printed numbers."""

    replication: Replication
    scale: str
    runs: tuple[Run, ...]
    answer: Answer

    @property
    def table(self) -> pd.DataFrame:
        """Printed and measured numbers with their verdicts."""
        return self.answer.required_table(self.runs)


def with_digits(name: str) -> str:
    """ "table-4" for "table-iv", and any other name as it is."""
    found = re.fullmatch(r"(\w+)-([ivx]+)", name)
    if found is None:
        return name
    values = [{"i": 1, "v": 5, "x": 10}[digit] for digit in found[2]]
    number = sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))
    return f"{found[1]}-{number}"


def find_replication(name: str, registry: Registry | None = None) -> tuple[Component, Replication]:
    """The replication of that name, in whatever suite.

    Raises:
        UserError: if there is none, with the nearest spelling and the broken plugins that may have it.
    """
    registry = registry or installed()
    found = {component.spec.name: component for component in registry.components("replication")}
    if name not in found:
        hint = did_you_mean(name, list(found)) + registry.broken_hint()
        known = f"  ({', '.join(found)})" if found else "  No installed suite brings one."
        raise UserError(f"no replication {name!r}.{hint}{known}")
    return found[name], loaded_replication(found[name])


def loaded_replication(component: Component) -> Replication:
    """What the function that a replication's spec names returns.

    Raises:
        UserError: if it is no Replication, or the function fails; one line that names the distribution.
    """
    try:
        found = resolve(component.spec.target)()
    except Exception as error:
        by = component.owner
        what = one_line(f"{type(error).__name__}: {error}")
        raise UserError(f"{component.spec.id} of {by} cannot be read: {what}") from error
    if not isinstance(found, Replication):
        raise UserError(f"{component.spec.id}: {component.spec.target} must return a Replication")
    return found


def reproduce(
    paper: str,
    items: Sequence[str] = (),
    *,
    scale: str = SMALL,
    out: str | Path | None = None,
    registry: Registry | None = None,
    data: Sequence[str] = (),
    set: Sequence[str] = (),
    seeds: Sequence[int] = (),
    fresh: bool = False,
    observer: Any = None,
    **options: Any,
) -> Reproduction:
    """Runs the studies of some tables and figures of a paper and compares them with the printed numbers.

    Args:
        paper: a replication, as ``cfbench list replications`` names it.
        items: tables and figures, such as ["table-3"]; all if empty. A plain string is one, here and in what follows.
        scale: "small" or "paper".
        out: the folder of the runs, one for each study; ``reproductions/PAPER/SCALE`` if None. Called again, it resumes.
        data: data sets in place of those of the studies.
        set: further changes of every study's configuration; a bare name takes the options that the study gives it.
        seeds: run each study once for each of these seeds; with its own seed if empty.
        fresh: compute everything again, whatever the cache holds.
        observer: is notified of progress.
        options: as in :func:`cfbench_core.api.prepare`.

    Raises:
        UserError: for an unknown paper, table or scale, for studies that cannot run here, or not with several seeds, and
            for data sets that are given by ``data`` and by ``set``.
    """
    from cfbench_core.api import execute, prepare

    changes = changes_of_studies(set, data)
    component, replication = find_replication(paper, registry)
    folder = run_folder(paper, scale, out)

    def planned(study: ReplicationStudy) -> Prepared:
        return prepare_study(study, scale, changes, prepare, registry=registry, **options)

    chosen = replication.chosen(one_or_several(items), scale)
    studies = replication.with_seeds(replication.studies_of(chosen, scale), seeds, changes)
    for study in studies[1:]:
        planned(study)  # what cannot be read or planned is known before the first one runs
    runs = [
        execute(planned(study), out=folder / study.name, fresh=fresh, observer=observer) for study in studies
    ]
    return compared(component, replication, chosen, scale, runs, registry, changes=changes)


def run_folder(paper: str, scale: str, out: str | Path | None = None) -> Path:
    """The folder of the runs of a replication.

    Raises:
        UserError: for an unknown scale, and for a folder that is itself a run.
    """
    if scale not in SCALES:
        raise UserError(f"scale must be one of {', '.join(SCALES)}, not {scale!r}")
    folder = Path(out) if out is not None else FOLDER / paper / scale
    if (folder / "plan.json").is_file():
        raise UserError(f"{folder}: is a run; give a folder for the runs, one for each study")
    return folder


def prepare_study(
    study: ReplicationStudy, scale: str, changes: Sequence[str], preparing: Any, **options: Any
) -> Prepared:
    """Reads and plans the configuration of a study by ``preparing``, a function as ``api.prepare`` is.

    Raises:
        UserError: also for changes that do not fit the study, see :func:`study_changes.with_study_options`.
    """
    with _file_of(study) as file:
        every = with_study_options(study.name, file, study.changes[scale], changes)
        prepared: Prepared = preparing(file, set=every, **options)
    return prepared


def check_changes(
    study: ReplicationStudy, scale: str, changes: Sequence[str], allow_env: Sequence[str] = ()
) -> None:
    """Reads the configuration of a study with changes, without a plan and without data.

    Raises:
        UserError: for what could not be run, such as an unknown data set, with the nearest spelling.
    """
    with _file_of(study) as file:
        document = Document.read(file)
        document.allowed_variables = frozenset(allow_env)
        document.set(with_study_options(study.name, file, study.changes[scale], changes))
        decode_experiment(document, installed())


@contextmanager
def _file_of(study: ReplicationStudy) -> Iterator[Path]:
    """The configuration that a package ships, as a file.

    Raises:
        UserError: if there is no such package or file.
    """
    package, _, path = study.config.partition(":")
    try:
        shipped = resources.files(package) / path
        found = shipped.is_file()
    except (ImportError, ValueError):
        found = False
    if not found:
        raise UserError(f"the study {study.name}: its configuration {study.config} does not exist")
    with resources.as_file(shipped) as file:
        yield file


def compared(
    component: Component,
    replication: Replication,
    items: Sequence[PublishedItem],
    scale: str,
    runs: Sequence[Run],
    registry: Registry | None = None,
    changes: Sequence[str] = (),
) -> Reproduction:
    """The analysis of the runs, of these items only; ``changes`` of the studies say whether their data are others."""
    from cfbench_core import analyses

    registry = registry or installed()
    analysis = registry.find(component.spec.suite, "analysis", replication.analysis)
    others = any(change.startswith(("data=", "data.", "data[")) for change in changes)
    given = {**replication.options, **(replication.other_data if others else {})}
    answer = analyses.run_analysis(
        analysis, runs, registry, given, rows=lambda table: replication.rows(table, items)
    )
    answer = dataclasses.replace(answer, question=f"{replication.title}: printed and measured numbers")
    return Reproduction(replication, scale, tuple(runs), answer)
