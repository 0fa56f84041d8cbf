"""The conformance kit: what the author of a component runs to verify it.

A kit is a list of checks, each a function with a question for a docstring. The checks below hold for every
component; a suite adds those of its own kinds, named in its spec as ``details={"conformance":
"package.module:checks"}``, a mapping from kind to checks. From the command line it is ``cfbench check ID``;
in a test::

    from cfbench_core.testing import checks_for, verify

    @pytest.mark.parametrize("check", checks_for("recsys/explainer/mine"), ids=str)
    def test_conformance(check):
        verify(check, "recsys/explainer/mine")

A failing check may be waived, but only by its name and with a reason that is then part of the report.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from cfbench_core.component_specs import component_specs
from cfbench_core.config.decode import RESERVED, decode_options
from cfbench_core.config.document import Document
from cfbench_core.config.fields import Help, Range, unwrap
from cfbench_core.config.imported import imported_spec
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.papers import papers_for, papers_of
from cfbench_core.presets import presets_of
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.specs import ComponentSpec, resolve
from cfbench_core.threads import limited_threads
from cfbench_core.tuning.space import search_space

Result = Literal["passed", "failed", "waived", "not applicable"]

HEAVY = ("torch", "pandas", "sklearn", "tensorflow")
"""What a configuration's module must not import: it is read by ``cfbench list`` and ``cfbench plan``."""


class Misbehaviour(AssertionError):  # noqa: N818 (it says what happened)
    """A component fails a check. The message is for the component's author."""


class NotApplicable(Exception):  # noqa: N818 (no error)
    """Raised by a check that does not apply to this component, with the reason."""


def require(condition: bool, message: str) -> None:
    """Raises :class:`Misbehaviour` unless ``condition`` holds (and does so under ``python -O`` too)."""
    if not condition:
        raise Misbehaviour(message)


@dataclass(frozen=True)
class Subject:
    """A component under test.

    Attributes:
        spec: what its plugin says of it.
        options: an instance of its configuration; its defaults when None.
        memory: what checks want to compute once for this subject, for example a fitted model.
    """

    spec: ComponentSpec
    options: Any = None
    memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def create(self) -> Any:
        """A fresh instance."""
        options = self.options
        if options is None and self.spec.config is not None:
            options = resolve(self.spec.config)()
        return resolve(self.spec.target)(options)


@dataclass(frozen=True)
class Check:
    """One question to a component; ``run`` raises :class:`Misbehaviour`, or anything, when it is no."""

    name: str
    question: str
    run: Callable[[Subject], None] = field(repr=False)

    def __str__(self) -> str:
        return self.name


def checks_of(*functions: Callable[[Subject], None]) -> tuple[Check, ...]:
    """Checks named after their functions ("stays-in-scope" is ``stays_in_scope``), with their docstrings."""
    return tuple(
        Check(name, (function.__doc__ or name).strip().splitlines()[0], function)
        for function in functions
        for name in [function.__name__.replace("_", "-")]
    )


@dataclass(frozen=True)
class CheckResult:
    """How one check went. ``reason`` says why, unless it passed; ``traceback`` is set for a failure."""

    check: str
    question: str
    result: Result
    reason: str = ""
    traceback: str = field(default="", repr=False)


@dataclass(frozen=True)
class Report:
    """How a component did."""

    component: str
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """No check failed; waived ones do not count, they are there to be read."""
        return not self.failures

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if result.result == "failed")

    def __str__(self) -> str:
        width = max((len(result.check) for result in self.results), default=0)
        lines = [self.component]
        for result in self.results:
            text = result.question if result.result == "passed" else result.reason
            lines.append(f"  {result.result:14}  {result.check:{width}}  {text}")
        counts = Counter(result.result for result in self.results)
        lines.append(", ".join(f"{count} {result}" for result, count in counts.items()))
        return "\n".join(lines)


def check_component(
    component: ComponentSpec | Subject | str,
    *,
    suite: str | None = None,
    kind: str = "explainer",
    options: Any = None,
    waive: Mapping[str, str] | None = None,
    checks: Sequence[Check] | None = None,
    registry: Registry | None = None,
) -> Report:
    """Runs every check that its suite has for a component's kind.

    Args:
        component: a spec, or the id of an installed component ("recsys/explainer/lime-rs", "lime-rs"), or a
            class of
            one's own, "package.module:Class".
        suite, kind: of a class of one's own; the suite may be left out when only one is installed.
        options: its configuration; the defaults when None.
        waive: failing checks to accept, by name, each with a reason.
        checks: in place of those of the suite.
        registry: where ids and suites are looked up; what is installed when None.

    Raises:
        UserError: for an unknown component, a waiver of an unknown check, or a waiver without a reason.
    """
    registry = registry or installed()
    if isinstance(component, str) and ":" in component:
        component = _imported(component, kind, suite, registry)
    subject = _subject(component, options, registry)
    chosen = checks_for(subject, registry=registry) if checks is None else list(checks)
    waivers = _valid_waivers(waive or {}, chosen)
    results = tuple(_run(check, subject, waivers.get(check.name)) for check in chosen)
    return Report(subject.spec.id, results)


def checks_for(component: ComponentSpec | Subject | str, *, registry: Registry | None = None) -> list[Check]:
    """The checks that :func:`check_component` runs: those of every component, then those of its suite."""
    spec = _subject(component, None, registry).spec
    own = ANALYSIS_CHECKS if spec.kind == "analysis" else ()
    return [*CHECKS, *own, *_suite_checks(spec, registry or installed())]


def verify(
    check: Check,
    component: ComponentSpec | Subject | str,
    *,
    options: Any = None,
    waive: Mapping[str, str] | None = None,
    registry: Registry | None = None,
) -> None:
    """One check, inside a pytest test, which it fails, or skips with the reason (waived, not applicable)."""
    import pytest

    subject = _subject(component, options, registry)
    waivers = waive or {}
    _valid_waivers({name: reason for name, reason in waivers.items() if name == check.name}, [check])
    result = _run(check, subject, waivers.get(check.name))
    if result.result == "failed":
        raise Misbehaviour(f"{subject.spec.id}: {check.name}: {result.reason}\n{result.traceback}")
    if result.result != "passed":
        pytest.skip(f"{result.result}: {result.reason}")


def _subject(component: ComponentSpec | Subject | str, options: Any, registry: Registry | None) -> Subject:
    if isinstance(component, Subject):
        return component
    if isinstance(component, ComponentSpec):
        return Subject(component, options)
    found = (registry or installed()).by_id(component)
    if len(found) != 1:
        every = [known.spec.id for known in (registry or installed()).components()]
        ids = ", ".join(one.spec.id for one in found)
        hint = f"may be {ids}: say which" if found else f"is not installed.{did_you_mean(component, every)}"
        raise UserError(f"component {component!r} {hint}")
    return Subject(found[0].spec, options)


def _imported(target: str, kind: str, suite: str | None, registry: Registry) -> ComponentSpec:
    suites = registry.suites()
    if suite is None and len(suites) != 1:
        raise UserError(f"{target}: say of which suite it is: {' or '.join(suites) or 'none is installed'}")
    name = suite or suites[0]
    return imported_spec(target, kind, name, resolve(registry.find(name, "suite", name).spec.target)())


def _suite_checks(spec: ComponentSpec, registry: Registry) -> Sequence[Check]:
    if spec.suite == "core":
        return ()
    suite = registry.find(spec.suite, "suite", spec.suite).spec
    reference = suite.details.get("conformance")
    return resolve(reference).get(spec.kind, ()) if reference else ()


def _valid_waivers(waive: Mapping[str, str], checks: Sequence[Check]) -> Mapping[str, str]:
    names = [check.name for check in checks]
    for name, reason in waive.items():
        if name not in names:
            raise UserError(f"cannot waive {name!r}: there is no such check.{did_you_mean(name, names)}")
        if not reason.strip():
            raise UserError(f"cannot waive {name!r} without a reason")
    return waive


def _run(check: Check, subject: Subject, waiver: str | None) -> CheckResult:
    try:
        with limited_threads(1):  # as in a run; threads that wait for each other make small tensors slow
            check.run(subject)
    except NotApplicable as reason:
        return CheckResult(check.name, check.question, "not applicable", str(reason))
    except Exception as error:  # the component is somebody else's code: whatever it raises is its answer
        message = str(error) if isinstance(error, Misbehaviour) else f"{type(error).__name__}: {error}"
        if waiver is not None:
            return CheckResult(check.name, check.question, "waived", f"{waiver} ({message})")
        return CheckResult(check.name, check.question, "failed", message, traceback.format_exc())
    return CheckResult(check.name, check.question, "passed")


# The checks of every component


def says_what_it_is(subject: Subject) -> None:
    """Is there a summary of one line?"""
    summary = subject.spec.summary
    require(bool(summary.strip()) and "\n" not in summary, f"the summary must be one line, is {summary!r}")


def configuration_is_described(subject: Subject) -> None:
    """Is the configuration a frozen dataclass, its fields described, defaults and searched values within range?"""
    config = _config(subject)
    parameters = getattr(config, "__dataclass_params__", None)
    require(
        parameters is not None and parameters.frozen,
        f"{subject.spec.config} must be a dataclass(frozen=True)",
    )
    for option, hint in _options(config):
        _, notes = unwrap(hint)
        require(
            option.name not in RESERVED,
            f"option {option.name!r}: a configuration means something else by this name; call it otherwise",
        )
        require(Help in notes, f"option {option.name!r} has no Help")
        default = option.default
        if Range in notes and isinstance(default, (int, float)):
            require(
                default in notes[Range],
                f"option {option.name!r}: its default {default} is not {notes[Range]}",
            )
    try:
        search_space(config)
    except ValueError as error:
        raise Misbehaviour(str(error)) from error


def configuration_is_light(subject: Subject) -> None:
    """Can the configuration be imported without torch, pandas and their like?"""
    if subject.spec.config is None:
        raise NotApplicable("there is nothing to set")
    _require_light(subject.spec.config)


def _require_light(reference: str) -> None:
    module = reference.partition(":")[0]
    code = (
        f"import sys, json; sys.path[:] = json.loads({json.dumps(json.dumps(sys.path))});"
        f"import importlib; importlib.import_module({module!r});"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    require(answer.returncode == 0, f"cannot import {module}: {answer.stderr.strip().rpartition(chr(10))[2]}")
    heavy = json.loads(answer.stdout.splitlines()[-1])
    require(not heavy, f"importing {module} imports {', '.join(heavy)}: import them inside functions")


def presets_fit(subject: Subject) -> None:
    """Are its presets options that its configuration takes?"""
    presets = presets_of(subject.spec)
    if not presets:
        raise NotApplicable("it has no presets")
    for preset in presets.values():
        document = Document.of(preset.options, f"preset {preset.name!r}")
        try:
            decode_options(Component(subject.spec, "", ""), document, Registry([]))
        except UserError as error:
            raise Misbehaviour(" ".join(error.lines)) from error


def is_made_from_its_options(subject: Subject) -> None:
    """Can it be made from its configuration, twice, as two things?"""
    require(
        subject.create() is not subject.create(), "two instances are one object: they would share their state"
    )


def _config(subject: Subject) -> Any:
    if subject.spec.config is None:
        raise NotApplicable("there is nothing to set")
    return resolve(subject.spec.config)


def _options(config: Any) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
    hints = get_type_hints(config, include_extras=True)
    for option in dataclasses.fields(config):
        yield option, hints[option.name]


CHECKS = checks_of(
    says_what_it_is,
    configuration_is_described,
    configuration_is_light,
    presets_fit,
    is_made_from_its_options,
)
"""The checks of every component, whatever its kind."""


# The checks of analyses, which every suite may have


def answers_as_an_analysis(subject: Subject) -> None:
    """Does it have the methods of an analysis?"""
    made = subject.create()
    lacking = [
        name
        for name in ("figures", "table", "incompatibility", "words")
        if not callable(getattr(made, name, None))
    ]
    require(not lacking, f"has no {', '.join(lacking)} (cfbench_core.analyses.Analysis)")


def analysis_is_light(subject: Subject) -> None:
    """Can it be imported without torch, pandas and their like, so that checking whether it applies costs nothing?"""
    _require_light(subject.spec.target)


ANALYSIS_CHECKS = checks_of(answers_as_an_analysis, analysis_is_light)
"""Of kind "analysis", in addition to those of every component."""


# The declarations of a whole package


def check_specs(package: str) -> None:
    """Checks everything that a package declares in its files; for a test in the package's own distribution.

    Every declaration that is read equals the one that executing the file gives; every target and configuration
    exists; every cited paper is listed in ``papers.toml`` and every listed paper is cited.

    Raises:
        Misbehaviour: names the first component that is wrong.
    """
    cited = set()
    for spec in component_specs(package):
        module = importlib.import_module(spec.target.partition(":")[0])
        executed = [getattr(module, "SPEC", None), *getattr(module, "SPECS", ())]
        require(spec in executed, f"{spec.id}: {module.__name__} declares something else when it is executed")
        for reference in (spec.target, spec.config):
            try:
                resolve(reference or spec.target)
            except (ImportError, AttributeError) as error:
                raise Misbehaviour(f"{spec.id}: {reference} does not exist: {error}") from error
        try:
            cited |= {paper.key for paper in papers_for(spec)}
        except ValueError as error:
            raise Misbehaviour(str(error)) from error
    unused = sorted(set(papers_of(package)) - cited)
    require(not unused, f"papers.toml of {package} lists {', '.join(unused)}, which no component cites")
