"""``list``, ``describe``, ``plugins``: what is installed, in whatever state, without importing it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cfbench_core.registry import installed

from .conftest import Command, Install

HEAVY = ("torch", "pandas", "numpy", "rich", "yaml", "toy_suite_implementation")


def rows(text: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in text.splitlines()]


def test_a_table_says_what_each_explainer_is_and_who_brings_it(toy: Path, cfbench: Command) -> None:
    found = cfbench("list", "explainers", "--suite", "toy")
    assert (found.code, found.err) == (0, "")
    assert rows(found.out) == [
        ["explainer", "from", "papers"],
        ["digits", "cfbench-toy", "-"],
        ["plain", "cfbench-toy", "-"],
    ]


def test_capabilities_have_a_column_each_in_the_suites_order(install: Install, cfbench: Command) -> None:
    install(
        "cfbench-axes",
        "1.0",
        """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_components():
    return [
        ComponentSpec(id="axes/suite/axes", summary="S", target="m:S",
                      details={"axes": {"level": ["item", "list"], "format": ["implicit", "explicit"]}}),
        ComponentSpec(id="axes/explainer/both", summary="B", target="m:B", papers=("somebody2020",),
                      provides={"format": frozenset({"explicit", "implicit"}),
                                "level": frozenset({"list", "item"})},
                      needs={"recommender": {"access": frozenset({"scores"})}}),
        ComponentSpec(id="axes/explainer/one", summary="O", target="m:O",
                      provides={"level": frozenset({"list"})}),
    ]
""",
    )
    found = cfbench("list", "explainer", "--suite", "axes")
    assert found.out.splitlines() == [
        "explainer  level      format             needs   from          papers",
        "both       item list  implicit explicit  scores  cfbench-axes  somebody2020",
        "one        list       -                  -       cfbench-axes  -",
    ]


def test_a_kind_may_stand_in_the_singular_or_the_plural(toy: Path, cfbench: Command) -> None:
    assert cfbench("list", "dataset", "--suite", "toy") == cfbench("list", "datasets", "--suite", "toy")
    assert "0, 1, 2, ..." in cfbench("list", "datasets", "--suite", "toy").out


def test_a_misspelt_kind_or_suite_is_an_error_with_the_nearest_spelling(toy: Path, cfbench: Command) -> None:
    kind = cfbench("list", "explaners")
    assert kind.code == 2 and kind.out == ""
    assert kind.err.startswith("no kind 'explaners'. Did you mean 'explainers'?")
    suite = cfbench("list", "--suite", "tojy")
    assert suite.code == 2 and "Did you mean 'toy'?" in suite.err


def test_json_holds_all_that_a_plugin_says(toy: Path, cfbench: Command) -> None:
    found = json.loads(cfbench("list", "explainers", "--suite", "toy", "--format", "json").out)
    assert [one["id"] for one in found] == ["toy/explainer/digits", "toy/explainer/plain"]
    assert found[0]["distribution"] == "cfbench-toy" and found[0]["provides"] == {}


def test_without_a_kind_the_names_are_listed_by_suite_and_kind(toy: Path, cfbench: Command) -> None:
    lines = cfbench("list", "--suite", "toy").out.splitlines()
    assert lines[0].startswith("toy: ")
    assert [line.split() for line in lines[1:4]] == [
        ["datasets", "numbers"],
        ["recommenders", "times"],
        ["explainers", "digits", "plain"],
    ]
    assert lines[-1] == "More about them: cfbench list KIND, cfbench describe NAME"
    assert "core" in cfbench("list").out.splitlines()


def test_all_gives_each_component_a_line_under_headings(toy: Path, cfbench: Command) -> None:
    lines = cfbench("list", "--all").out.splitlines()
    headings = [line for line in lines if line.startswith("toy · ")]
    assert headings == ["toy · suites", "toy · datasets", "toy · recommenders", "toy · explainers"]
    assert "core · executors" in lines


def test_what_is_broken_is_one_line_of_list_and_a_row_of_plugins(
    toy: Path, install: Install, cfbench: Command
) -> None:
    install("cfbench-broken", "0.3", "import a_module_that_is_nowhere\n")
    install("cfbench-old", "0.3", "", "cfbench-core<0.1")
    listed = cfbench("list", "explainers", "--suite", "toy")
    assert listed.code == 0 and "digits" in listed.out
    last = listed.out.splitlines()[-1]
    assert last.startswith("2 plugins could not be loaded: ")
    assert "cfbench-old 0.3: needs cfbench-core<0.1, but " in last and last.endswith("(cfbench plugins)")

    plugins = cfbench("plugins")
    assert plugins.code == 0
    assert (
        "could not be loaded: ModuleNotFoundError: No module named 'a_module_that_is_nowhere'" in plugins.out
    )
    assert "Traceback" not in plugins.out and "Traceback" in cfbench("plugins", "--tracebacks").out


def test_an_id_that_two_define_is_reported_and_not_used(
    toy: Path, install: Install, cfbench: Command
) -> None:
    source = """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_explainers():
    return [ComponentSpec(id="toy/explainer/digits", summary="Mine", target="m:C")]
"""
    install("cfbench-other", "2.0", source)
    assert ["digits", "cfbench-toy", "-"] not in rows(cfbench("list", "explainers", "--suite", "toy").out)
    both = "cfbench-other 2.0 and cfbench-toy 1.0"
    assert f"toy/explainer/digits is defined by {both}" in cfbench("plugins").out
    described = cfbench("describe", "toy/explainer/digits")
    assert described.code == 2 and f"is defined by both {both}: uninstall one of them" in described.err


def test_the_core_alone_says_kindly_what_to_install(cfbench: Command) -> None:
    if installed().suites():
        pytest.skip("other cfbench distributions are installed here")
    found = cfbench("list")
    assert found.code == 0
    assert "cfbench-explainers-native" in found.out and "pip install cfbench-tabular" in found.out
    run = cfbench("run")
    assert (
        run.code == 2 and "cfbench-explainers-native" in run.err and "pip install cfbench-tabular" in run.err
    )


def test_describe_lists_keys_with_type_range_and_default_and_an_example(toy: Path, cfbench: Command) -> None:
    found = cfbench("describe", "digits")
    assert found.code == 0
    table = [" ".join(line) for line in rows(found.out)]
    assert "base whole number >= 2 and <= 16 10 of the digits" in table
    assert "order one of ascending, descending ascending" in table
    pasted = found.out.partition("Example\n")[2]
    assert pasted.startswith(
        "  explainers:\n    - name: digits\n      base: 10\n      order: ascending\n      misbehave: ''\n"
    )
    assert "numbers are explained by their digits" in found.out  # the docstring of its file


def test_what_describe_says_to_paste_is_a_valid_configuration(toy: Path, cfbench: Command) -> None:
    lines = ["suite: toy", "models: times"]
    for name in ("numbers", "digits"):  # of one there may be several, of the other not
        pasted = cfbench("describe", name).out.partition("Example\n")[2].partition("\n\n")[0]
        lines += [line.removeprefix("  ") for line in pasted.splitlines()]
    (toy / "pasted.yaml").write_text("\n".join([*lines, ""]))
    assert cfbench("plan", "pasted.yaml").code == 0


def test_describe_of_a_suite_lists_the_keys_of_a_whole_configuration(toy: Path, cfbench: Command) -> None:
    keys = {line[0] for line in rows(cfbench("describe", "toy").out) if line}
    assert {"seed", "chunk", "limits.memory_gb", "explainers", "protocol.k"} <= keys


def test_describe_of_a_name_that_a_suite_shares_describes_the_suite(cfbench: Command) -> None:
    """Each shipped suite has a viewer of its name."""
    found = [cfbench("describe", component.spec.name) for component in installed().components("suite")]
    assert [one.code for one in found] == [0] * len(found)


def test_describe_of_an_unknown_name_suggests_the_nearest(toy: Path, cfbench: Command) -> None:
    found = cfbench("describe", "digit")
    assert found.code == 2 and found.err == "no component 'digit'. Did you mean 'digits'?  (cfbench list)\n"


def test_describe_says_what_it_is_compatible_with_and_why_the_others_are_not(
    install: Install, cfbench: Command
) -> None:
    install(
        "cfbench-pairs",
        "1.0",
        """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

def spec(id, provides=(), needs=None):
    return ComponentSpec(id=id, summary="s", target="m:C", provides=dict(provides), needs=needs or {})

@hookimpl
def cfbench_components():
    return [
        spec("pairs/recommender/open", {"access": frozenset({"scores", "gradients"})}),
        spec("pairs/recommender/closed", {"access": frozenset({"scores"})}),
        spec("pairs/explainer/curious", needs={"recommender": {"access": frozenset({"gradients"})}}),
    ]
""",
    )
    found = cfbench("describe", "curious")
    assert "  recommenders: open\n    not: closed (access gradients)\n" in found.out
    described = json.loads(cfbench("describe", "pairs/recommender/closed", "--format", "json").out)
    assert described["compatible_with"] == {"explainer": []}


@pytest.mark.parametrize("command", [["list"], ["list", "explainers"], ["describe", "mine"], ["plugins"]])
def test_looking_imports_nothing_heavy(tmp_path: Path, install: Install, command: list[str]) -> None:
    install(
        "cfbench-mine",
        "1.0",
        """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_explainers():
    return [ComponentSpec(id="mine/explainer/mine", summary="s", target="toy_suite_implementation:C")]
""",
    )
    (tmp_path / "site" / "toy_suite_implementation.py").write_text("class C: ...\n")
    allowed = {"yaml"} if command[0] == "describe" else set()  # it writes YAML to paste
    if command[0] == "describe":
        allowed.add("numpy")  # configurations may import it
    code = f"""
import json, sys
from cfbench_core.cli import main
code = main({command!r})
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
sys.exit(code)
"""
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout
    assert set(json.loads(done.stderr.splitlines()[-1])) <= allowed


def test_a_damaged_file_of_levels_costs_its_levels_only(
    toy: Path, install: Install, cfbench: Command
) -> None:
    package = toy.parent / "site" / "leveled"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "reproduction.toml").write_text('["explainer/leveled"]\nlevel = "perfect"\nevidence = "e"\n')
    install(
        "cfbench-leveled",
        "1.0",
        """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_components():
    return [ComponentSpec(id="toy/explainer/leveled", summary="L", target="leveled.method:L")]
""",
    )
    listed = cfbench("list", "explainers", "--suite", "toy")
    assert listed.code == 0 and "digits" in listed.out
    assert listed.out.count("reproduction.toml: explainer/leveled: level must be one of") == 1
    described = cfbench("describe", "leveled")
    assert described.code == 0 and "reproduction.toml: explainer/leveled: level must be" in described.out
    as_json = cfbench("describe", "leveled", "--format", "json")
    assert as_json.code == 0 and json.loads(as_json.out)["reproduction"] is None
