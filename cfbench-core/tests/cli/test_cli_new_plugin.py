"""``new-plugin``: what it writes is a complete distribution, for each suite and other people's too."""

from __future__ import annotations

import ast
import runpy
import tomllib
from pathlib import Path

import pytest

from cfbench_core.errors import UserError
from cfbench_core.plugin_template import NewPlugin, render, write
from cfbench_core.registry import Component, Plugin, Registry
from cfbench_core.specs import ComponentSpec

from .conftest import Command, Install


def registry(suite: str) -> Registry:
    """In which a suite is installed (brought by the core, as far as versions go)."""
    spec = ComponentSpec(id=f"{suite}/suite/{suite}", summary="s", target="m:S")
    return Registry([Plugin("p", "cfbench-core", "1", "m", (Component(spec, "cfbench-core", "1"),))])


@pytest.mark.parametrize("suite", ["recsys", "tabular"])
def test_a_new_plugin_is_a_complete_distribution(suite: str) -> None:
    files = render(NewPlugin("my-own", suite, 'A "quoted" idea, naïve', "Somebody 2020"), registry(suite))
    package = Path("src/cfbench_explainer_my_own")
    assert {str(path) for path in files} == {
        "README.md",
        "pyproject.toml",
        "study.yaml",
        str(package / "__init__.py"),
        str(package / "plugin.py"),
        str(package / "my_own.py"),
        "tests/test_my_own.py",
    }
    project = tomllib.loads(files[Path("pyproject.toml")])["project"]
    assert (
        project["name"] == "cfbench-explainer-my-own" and project["description"] == 'A "quoted" idea, naïve'
    )
    assert project["entry-points"] == {"cfbench": {"my-own": "cfbench_explainer_my_own.plugin"}}
    for path, content in files.items():
        assert "{{" not in content and "{%" not in content, path
        if path.suffix == ".py":
            ast.parse(content)


@pytest.mark.parametrize("suite", ["recsys", "tabular"])
def test_its_registration_says_what_was_asked_for(suite: str, tmp_path: Path) -> None:
    files = render(NewPlugin("my-own", suite, 'A "quoted" idea', "Somebody 2020"), registry(suite))
    written = tmp_path / "plugin.py"
    written.write_text(files[Path("src/cfbench_explainer_my_own/plugin.py")], encoding="utf-8")
    (spec,) = runpy.run_path(str(written))["cfbench_explainers"]()
    assert (spec.id, spec.summary, spec.paper) == (
        f"{suite}/explainer/my-own",
        'A "quoted" idea',
        "Somebody 2020",
    )
    assert spec.target == "cfbench_explainer_my_own.my_own:MyOwn"


@pytest.mark.parametrize("name", ["My-Own", "my_own", "-mine", "mine-", "1st", "my own", ""])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be a name"):
        render(NewPlugin(name, "recsys", "s"), registry("recsys"))


def test_a_folder_that_holds_something_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        write(NewPlugin("mine", "recsys", "s"), tmp_path, registry("recsys"))
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_suite_without_a_template_says_so(toy: Path, cfbench: Command) -> None:
    refused = cfbench("new-plugin", "mine", "--suite", "toy")
    assert refused.code == 2 and "the suite toy has no template for a plugin" in refused.err


def test_a_suite_of_somebody_else_brings_its_own_template(
    toy: Path, install: Install, cfbench: Command
) -> None:
    install(
        "cfbench-other",
        "2.3",
        """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_components():
    return [ComponentSpec(id="other/suite/other", summary="s", target="m:S",
                          details={"plugin_template": "other_package:template"})]
""",
    )
    template = toy.parent / "site" / "other_package" / "template"
    (template / "src" / "__module__").mkdir(parents=True)
    (template.parent / "__init__.py").touch()
    (template / "src" / "__module__" / "__file__.py.jinja").write_text("class {{ class_name }}: ...\n")
    done = cfbench("new-plugin", "my-own", "--suite", "other")
    assert done.code == 0, done.err
    folder = toy / "cfbench-explainer-my-own"
    assert (folder / "src/cfbench_explainer_my_own/my_own.py").read_text() == "class MyOwn: ...\n"
    assert '"cfbench-other>=2.3,<3"' in (folder / "pyproject.toml").read_text()
