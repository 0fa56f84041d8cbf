"""``new-plugin`` writes a complete distribution for each kind; suites bring templates of their own kinds."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from cfbench_core import plugin_template
from cfbench_core.component_specs import specs_of_file
from cfbench_core.errors import UserError
from cfbench_core.plugin_template import NewPlugin, kinds_with_template, render, write
from cfbench_core.registry import Registry
from cfbench_core.testing import verify_rendered_plugin

from .conftest import Command, Install

PLUGIN = """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_components():
    return [ComponentSpec(id="other/suite/other", summary="s", target="other_package.suite:Suite")]
"""


def test_a_new_plugin_is_a_complete_distribution(registry: Registry) -> None:
    files = render(NewPlugin("my-own", "toy", 'A "quoted" idea, naïve', "analysis"), registry)
    package = Path("src/cfbench_analysis_my_own")

    assert {str(path) for path in files} == {
        "README.md",
        "pyproject.toml",
        "study.yaml",
        str(package / "__init__.py"),
        str(package / "plugin.py"),
        str(package / "papers.toml"),
        str(package / "my_own.py"),
        "tests/test_my_own.py",
    }
    project = tomllib.loads(files[Path("pyproject.toml")])["project"]
    assert project["name"] == "cfbench-analysis-my-own"
    assert project["description"] == 'A "quoted" idea, naïve'
    assert project["entry-points"] == {"cfbench": {"my-own": "cfbench_analysis_my_own.plugin:PLUGIN"}}
    assert tomllib.loads(files[package / "papers.toml"]) == {}
    for path, content in files.items():
        assert "{{" not in content and "{%" not in content, path
        if path.suffix == ".py":
            ast.parse(content)


def test_the_specification_is_in_the_file_of_the_component(registry: Registry, tmp_path: Path) -> None:
    files = render(NewPlugin("my-own", "toy", 'A "quoted" idea', "analysis"), registry)
    written = tmp_path / "my_own.py"
    written.write_text(files[Path("src/cfbench_analysis_my_own/my_own.py")], encoding="utf-8")

    (spec,) = specs_of_file(written, "cfbench_analysis_my_own.my_own")

    assert (spec.id, spec.summary) == ("toy/analysis/my-own", 'A "quoted" idea')
    assert spec.target == "cfbench_analysis_my_own.my_own:MyOwn"


@pytest.mark.slow
def test_a_new_suite_passes_its_tests_and_the_checks_and_runs_its_study(tmp_path: Path) -> None:
    verify_rendered_plugin("suite", "clouds", tmp_path, name="clouds")


@pytest.mark.parametrize("name", ["My-Own", "my_own", "-mine", "mine-", "1st", "my own", "", "class", "none"])
def test_an_invalid_name_is_refused(name: str, registry: Registry) -> None:
    with pytest.raises(UserError, match="cannot be a name"):
        render(NewPlugin(name, "toy", "s", "analysis"), registry)


def test_a_name_that_is_taken_is_refused(registry: Registry) -> None:
    with pytest.raises(UserError, match="toy/explainer/digits exists already"):
        render(NewPlugin("digits", "toy", "s"), registry)


def test_a_folder_that_is_not_empty_is_not_written_into(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        write(NewPlugin("mine", "toy", "s", "analysis"), tmp_path, registry)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_plugin_that_is_cut_short_is_written_by_the_next_call(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin, whole = NewPlugin("mine", "toy", "s", "analysis"), plugin_template.write_atomically

    def full(path: Path, content: str) -> None:
        whole(path, content)
        raise UserError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(plugin_template, "write_atomically", full)
        with pytest.raises(UserError, match="the disk is full"):
            write(plugin, tmp_path / "out", registry)
    assert all(path.is_file() for path in write(plugin, tmp_path / "out", registry))


def test_a_kind_without_a_template_lists_those_that_have_one(toy: Path, cfbench: Command) -> None:
    refused = cfbench("new-plugin", "mine", "--kind", "explainer", "--suite", "toy")
    assert refused.code == 2
    assert (
        refused.err == "the suite toy has no template for the kind 'explainer'.  (kinds: analysis, suite)\n"
    )
    assert "the kind 'explainr'" in cfbench("new-plugin", "mine", "--kind", "explainr").err


def test_a_suite_brings_templates_of_its_own_kinds(toy: Path, install: Install, cfbench: Command) -> None:
    install("cfbench-other", "2.3", PLUGIN)
    template = toy.parent / "site" / "other_package" / "templates" / "plugin" / "oracle"
    (template / "src" / "__module__").mkdir(parents=True)
    (template.parents[2] / "__init__.py").touch()
    (template / "src" / "__module__" / "__file__.py.jinja").write_text("class {{ class_name }}: ...\n")

    done = cfbench("new-plugin", "my-own", "--kind", "oracle")

    assert done.code == 0, done.err
    folder = toy / "cfbench-oracle-my-own"
    assert (folder / "src/cfbench_oracle_my_own/my_own.py").read_text() == "class MyOwn: ...\n"
    assert '"cfbench-other>=2.3,<3"' in (folder / "pyproject.toml").read_text()


def test_the_kinds_of_a_suite_are_its_own_and_those_of_the_core(registry: Registry) -> None:
    assert kinds_with_template("toy", registry) == ["analysis", "suite"]
