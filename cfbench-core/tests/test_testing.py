"""The conformance kit's base: checks, waivers, reports, and the checks of every component."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError
from cfbench_core.registry import Component, Plugin, Registry
from cfbench_core.specs import ComponentSpec
from cfbench_core.store import Store
from cfbench_core.testing import (
    CHECKS,
    KIND_CHECKS,
    Misbehaviour,
    NotApplicable,
    Subject,
    check_component,
    checks_for,
    checks_of,
    require,
    verify,
)


@dataclass(frozen=True, kw_only=True)
class Config:
    size: Annotated[int, Range(minimum=1), Help("how many")] = 3


class Good:
    def __init__(self, config: Config) -> None:
        self.size = config.size


class Plain:
    """Has nothing to set."""

    def __init__(self, config: None) -> None:
        self.config = config


def is_small(subject: Subject) -> None:
    """Is its size below ten?"""
    require(subject.create().size < 10, "its size is ten or more")


def raises(subject: Subject) -> None:
    """Does it work at all?"""
    raise KeyError("lost")


def asks_nothing(subject: Subject) -> None:
    """Is it a graph?"""
    raise NotApplicable("it is no graph")


KIT = {"explainer": checks_of(is_small)}
MIXED = checks_of(is_small, raises, asks_nothing)


def spec_of(name: str = "Good", config: str | None = "Config", **changes: Any) -> ComponentSpec:
    reference = f"{__name__}:{config}" if config else None
    given: dict[str, Any] = {"summary": "An example", "target": f"{__name__}:{name}", "config": reference}
    return ComponentSpec(id=f"toys/explainer/{name.lower()}", **{**given, **changes})


def registry_of(*specs: ComponentSpec) -> Registry:
    components = tuple(Component(spec, "toys", "1.0") for spec in specs)
    return Registry([Plugin("toys", "toys", "1.0", __name__, components)])


class Toys:
    """A suite."""

    def imported(self, kind: str, implementation: type) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"format": frozenset({kind})}, {}


SUITE = ComponentSpec(
    id="toys/suite/toys",
    summary="A suite of toys",
    target=f"{__name__}:Toys",
    details={"conformance": f"{__name__}:KIT"},
)


def test_a_report_says_of_each_check_how_it_went() -> None:
    report = check_component(spec_of(), checks=MIXED)
    assert [(result.check, result.result) for result in report.results] == [
        ("is-small", "passed"),
        ("raises", "failed"),
        ("asks-nothing", "not applicable"),
    ]
    assert not report.passed
    assert [failure.reason for failure in report.failures] == ["KeyError: 'lost'"]
    assert "raise KeyError" in report.failures[0].traceback
    assert str(report).splitlines()[-1] == "1 passed, 1 failed, 1 not applicable"


def test_options_reach_the_component() -> None:
    report = check_component(spec_of(), options=Config(size=10), checks=checks_of(is_small))
    assert [failure.reason for failure in report.failures] == ["its size is ten or more"]


def test_a_waived_failure_does_not_count_but_stays_in_the_report() -> None:
    report = check_component(spec_of(), checks=MIXED, waive={"raises": "fixed in 0.2"})
    assert report.passed
    assert report.results[1].result == "waived"
    assert report.results[1].reason == "fixed in 0.2 (KeyError: 'lost')"


def test_a_waiver_does_not_hide_that_a_check_passes() -> None:
    report = check_component(spec_of(), checks=MIXED[:1], waive={"is-small": "may be large"})
    assert report.results[0].result == "passed"


@pytest.mark.parametrize(
    ("waive", "message"),
    [
        ({"rises": "why"}, "cannot waive 'rises': there is no such check. Did you mean 'raises'?"),
        ({"raises": "  "}, "cannot waive 'raises' without a reason"),
    ],
)
def test_a_waiver_names_a_check_and_gives_a_reason(waive: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as error:
        check_component(spec_of(), checks=MIXED, waive=waive)
    assert str(error.value) == message


def test_the_checks_of_a_component_are_the_general_ones_and_those_of_its_suite() -> None:
    registry = registry_of(SUITE, spec_of())
    assert [check.name for check in checks_for("good", registry=registry)] == [
        *(check.name for check in CHECKS),
        "fulfils-its-contract",
        "is-small",
    ]
    names = {check.name for check in checks_for(SUITE, registry=registry)}
    assert {"fulfils-its-contract", "suite-is-light", "plans-its-default-configuration"} <= names


def test_an_installed_component_is_found_by_any_part_of_its_id() -> None:
    registry = registry_of(SUITE, spec_of())
    for name in ("toys/explainer/good", "explainer/good", "good"):
        report = check_component(name, checks=checks_of(is_small), registry=registry)
        assert report.component == "toys/explainer/good"


def test_an_unknown_component_is_one_line_with_the_nearest_spelling() -> None:
    with pytest.raises(
        UserError, match=r"'toys/explainer/god' is not installed. Did you mean 'toys/explainer/good'"
    ):
        check_component("toys/explainer/god", registry=registry_of(SUITE, spec_of()))


def test_a_class_of_ones_own_is_checked_by_its_import_path() -> None:
    report = check_component(
        f"{__name__}:Good", checks=checks_of(is_small), registry=registry_of(SUITE, spec_of("Plain", None))
    )
    assert report.passed
    assert report.component == "toys/explainer/good"


def test_a_check_in_a_test_passes_fails_or_skips_with_the_reason() -> None:
    small, wrong, unasked = MIXED
    verify(small, spec_of())
    with pytest.raises(Misbehaviour, match="toys/explainer/good: raises: KeyError: 'lost'"):
        verify(wrong, spec_of())
    with pytest.raises(pytest.skip.Exception, match="not applicable: it is no graph"):
        verify(unasked, spec_of())
    with pytest.raises(pytest.skip.Exception, match="waived: later"):
        verify(wrong, spec_of(), waive={"raises": "later", "is-small": "another check's"})
    with pytest.raises(UserError, match="without a reason"):
        verify(wrong, spec_of(), waive={"raises": ""})


def test_what_a_check_remembers_of_a_subject_is_there_for_the_next() -> None:
    def counts(subject: Subject) -> None:
        subject.memory["asked"] = subject.memory.get("asked", 0) + 1

    subject = Subject(spec_of())
    check_component(subject, checks=checks_of(counts, counts))
    assert subject.memory == {"asked": 2}


# The checks of every component, each with one that breaks it

SINGLE = object()


@dataclass
class Thawed:
    size: Annotated[int, Help("how many")] = 3


@dataclass(frozen=True)
class Undescribed:
    size: int = 3


@dataclass(frozen=True)
class OutOfRange:
    size: Annotated[int, Range(minimum=5), Help("how many")] = 3


@dataclass(frozen=True)
class Demanding:
    size: Annotated[int, Help("how many")] = field()


def always_the_same(config: Config) -> object:
    return SINGLE


@pytest.mark.parametrize(
    ("broken", "check", "reason"),
    [
        (spec_of(summary="two\nlines"), "says-what-it-is", "the summary must be one line"),
        (spec_of(config="Thawed"), "configuration-is-described", "must be a dataclass(frozen=True)"),
        (spec_of(config="Good"), "configuration-is-described", "must be a dataclass(frozen=True)"),
        (spec_of(config="Undescribed"), "configuration-is-described", "option 'size' has no Help"),
        (spec_of(config="OutOfRange"), "configuration-is-described", "its default 3 is not >= 5"),
        (spec_of(config="Demanding"), "is-made-from-its-options", "TypeError"),
        (spec_of("always_the_same"), "is-made-from-its-options", "two instances are one object"),
        (spec_of("Missing"), "is-made-from-its-options", "AttributeError"),
    ],
)
def test_each_check_finds_what_it_is_for(broken: ComponentSpec, check: str, reason: str) -> None:
    report = check_component(broken, checks=[one for one in CHECKS if one.name == check])
    assert len(report.failures) == 1
    assert reason in report.failures[0].reason


@pytest.mark.parametrize(
    ("first_line", "reason"),
    [
        ("import json", ""),
        ("import pandas", "imports pandas: import them inside functions"),
        ("import nowhere_to_be_found", "cannot import toy_options: ModuleNotFoundError"),
    ],
)
def test_a_configuration_that_imports_something_heavy_is_found(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, first_line: str, reason: str
) -> None:
    (tmp_path / "toy_options.py").write_text(f"{first_line}\nclass Config: ...\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    spec = spec_of(config=None)
    spec = ComponentSpec(id=spec.id, summary=spec.summary, target=spec.target, config="toy_options:Config")
    report = check_component(spec, checks=[one for one in CHECKS if one.name == "configuration-is-light"])
    assert report.passed == (not reason)
    assert all(reason in failure.reason for failure in report.failures)


def test_a_component_with_nothing_to_set_passes() -> None:
    report = check_component(spec_of("Plain", None), checks=CHECKS)
    assert report.passed
    assert [result.result for result in report.results] == [
        "passed",
        "not applicable",
        "not applicable",
        "not applicable",
        "not applicable",
        "not applicable",
        "passed",
    ]


class Trusting(Store):
    """A store that never looks at what it holds."""

    def has(self, kind: str, key: str) -> bool:
        return (self.path(kind, key) / "artifact.json").exists()


def store_spec(target: str) -> ComponentSpec:
    return ComponentSpec(id="core/store/a-store", summary="Holds artifacts", target=target)


def test_the_store_keeps_artifacts_whole() -> None:
    report = check_component(store_spec("cfbench_core.store:Store"), checks=KIND_CHECKS["store"])
    assert not report.failures


def test_a_store_that_does_not_notice_damage_is_found() -> None:
    report = check_component(store_spec(f"{__name__}:Trusting"), checks=KIND_CHECKS["store"])
    (failure,) = report.failures
    assert "an artifact with changed bytes counts as whole" in failure.reason
