"""Levels of reproduction: read from the package of a component, checked, and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.registry import installed
from cfbench_core.reproduction_levels import LEVELS, level_of, levels_of_package
from cfbench_core.specs import ComponentSpec


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
        ('["explainer/digits"]\nlevel = "perfect"\nevidence = "e"', "level must be one of as published"),
        ('["explainer/digits"]\nlevel = "ours only"\nevidence = ""', "needs evidence"),
        ('["explainer/digits"]\nlevel = "ours only"\nproof = "e"', "proof"),
        ("[explainer/digits", "reproduction.toml"),
    ],
)
def test_a_damaged_file_is_named(package: Path, text: str, problem: str) -> None:
    (package / "reproduction.toml").write_text(text)
    with pytest.raises(ValueError, match=r"reproduction\.toml") as caught:
        level_of(spec("digits"))
    assert problem in str(caught.value)


def test_the_levels_of_installed_packages_belong_to_components() -> None:
    components = installed().components()
    packages = {component.spec.target.partition(".")[0] for component in components}
    known = {f"{component.spec.kind}/{component.spec.name}" for component in components}
    for package in packages:
        for name, found in levels_of_package(package).items():
            assert name in known, f"{package}: {name} is no component"
            assert found.level in LEVELS
