"""Levels of reproduction: read from the package of a component, checked, and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.registry import installed
from cfbench_core.reproduction_levels import LEVELS, level_of, level_or_problem, levels_of_package
from cfbench_core.specs import ComponentSpec
from cfbench_core.testing.checks import Misbehaviour, Subject
from cfbench_core.testing.every_component import CHECKS


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of this test; what was read of it is forgotten afterwards."""
    folder = tmp_path / "paper_methods"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    levels_of_package.cache_clear()
    return folder


def spec(name: str, package: str = "paper_methods") -> ComponentSpec:
    return ComponentSpec(id=f"toy/explainer/{name}", summary="S", target=f"{package}.methods:C")


def test_a_component_finds_its_level(package: Path) -> None:
    (package / "reproduction.toml").write_text(
        '["explainer/digits"]\nlevel = "ours only"\nevidence = "no code was published"\n'
    )
    found = level_of(spec("digits"))
    assert found is not None and (found.level, found.variant) == ("ours only", "")
    assert level_of(spec("others")) is None
    assert level_of(spec("digits", "no_such_package")) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('["explainer/digits"]\nlevel = "perfect"\nevidence = "e"', "level must be one of 'as published', "),
        ('["explainer/digits"]\nlevel = "ours only"\nevidence = ""', "needs evidence"),
        ('["explainer/digits"]\nlevel = "as publishd"\nevidence = "e"', "Did you mean 'as published'?"),
        ('["explainer/digits"]\nlevel = "ours only"\nevidenc = "e"', "unknown key. Did you mean 'evidence'?"),
        (
            '["explainer/digits"]\nlevel = "ours only"\nproof = "e"',
            "proof: unknown key. Known: level, evidence",
        ),
        ('["explainer/digits"]\nlevel = "ours only"', "explainer/digits: lacks evidence"),
        ('["explainer/digits"]\nlevel = 3\nevidence = "e"', "level must be text, not 3"),
        ('["explainer/digits"]\nlevel = "ours only"\nevidence = ["e"]', "evidence must be text, not ['e']"),
        ('level = "ours only"', "level: must be a table"),
        ("[explainer/digits", "reproduction.toml"),
    ],
)
def test_a_damaged_file_is_named(package: Path, text: str, problem: str) -> None:
    (package / "reproduction.toml").write_text(text)
    with pytest.raises(ValueError, match=r"reproduction\.toml") as caught:
        level_of(spec("digits"))
    assert problem in str(caught.value)


def test_a_damaged_file_is_reported_in_one_line(package: Path) -> None:
    (package / "reproduction.toml").write_text('["explainer/digits"]\nlevel = "ours\nonly"')
    found, problem = level_or_problem(spec("digits"))
    assert found is None and "reproduction.toml" in problem and "\n" not in problem
    (check,) = [one for one in CHECKS if one.name == "states-a-level-that-can-be-read"]
    with pytest.raises(Misbehaviour, match=r"reproduction\.toml"):
        check.run(Subject(spec("digits")))


def test_a_level_of_what_is_no_component_fails_a_check(package: Path) -> None:
    (package / "reproduction.toml").write_text(
        '["explainer/digit"]\nlevel = "ours only"\nevidence = "no code was published"\n'
    )
    (check,) = [one for one in CHECKS if one.name == "states-a-level-that-can-be-read"]
    with pytest.raises(Misbehaviour, match="explainer/digit is no component of paper_methods"):
        check.run(Subject(spec("digits")))


def test_the_levels_of_installed_packages_belong_to_components() -> None:
    components = installed().components()
    packages = {component.spec.target.partition(".")[0] for component in components}
    known = {f"{component.spec.kind}/{component.spec.name}" for component in components}
    for package in packages:
        for name, found in levels_of_package(package).items():
            assert name in known, f"{package}: {name} is no component"
            assert found.level in LEVELS
