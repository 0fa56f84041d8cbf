"""The checks of every component, whatever its kind."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from cfbench_core.config.decode import decode_options
from cfbench_core.config.document import Document
from cfbench_core.config.fields import Help, Range, hints_of, unwrap
from cfbench_core.config.options_by_setting import RESERVED
from cfbench_core.errors import UserError
from cfbench_core.presets import presets_of, search_problem
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.reproduction_levels import levels_of_package, package_of
from cfbench_core.specs import resolve
from cfbench_core.testing.checks import Misbehaviour, NotApplicable, Subject, checks_of, require
from cfbench_core.tuning.space import search_space

HEAVY = ("torch", "pandas", "sklearn", "tensorflow")
"""What a configuration's module must not import: it is read by ``cfbench list`` and ``cfbench plan``."""


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
    require_light(subject.spec.config)


def require_light(reference: str) -> None:
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


def presets_were_searched(subject: Subject) -> None:
    """Were its presets published, or found by enough trials, with a gain on held-out data?"""
    presets = presets_of(subject.spec)
    if not presets:
        raise NotApplicable("it has no presets")
    for preset in presets.values():
        problem = search_problem(preset)
        require(not problem, f"preset {preset.name!r} {problem}")


def states_a_level_that_can_be_read(subject: Subject) -> None:
    """Can the levels of reproduction that its package states be read, and are they of its components?"""
    package = package_of(subject.spec)
    try:
        stated = levels_of_package(package)
    except ValueError as error:
        raise Misbehaviour(str(error)) from error
    if not stated:
        raise NotApplicable("its package states no levels of reproduction")
    specs = [subject.spec, *(component.spec for component in installed().components())]
    named = {f"{spec.kind}/{spec.name}" for spec in specs if package_of(spec) == package}
    for name in stated:
        require(name in named, f"reproduction.toml: {name} is no component of {package}")


def is_made_from_its_options(subject: Subject) -> None:
    """Can it be made from its configuration, twice, as two things?"""
    if subject.spec.kind in ("executor", "store"):
        raise NotApplicable(f"{subject.spec.kind}s are constructed by the runner")
    require(
        subject.create() is not subject.create(), "two instances are one object: they would share their state"
    )


def _config(subject: Subject) -> Any:
    if subject.spec.config is None:
        raise NotApplicable("there is nothing to set")
    return resolve(subject.spec.config)


def _options(config: Any) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
    hints = hints_of(config)
    for option in dataclasses.fields(config):
        yield option, hints[option.name]


CHECKS = checks_of(
    says_what_it_is,
    configuration_is_described,
    configuration_is_light,
    presets_fit,
    presets_were_searched,
    states_a_level_that_can_be_read,
    is_made_from_its_options,
)
"""The checks of every component, whatever its kind."""
