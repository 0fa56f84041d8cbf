"""The commands around a run (``init``, ``check``, ``cache``, ``data``, ``doctor``, ...), and every help."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest
from child_processes import popen
from file_server import Site, serving

from cfbench_core.cli.group import Group
from cfbench_core.cli.root import cli

from .conftest import Command, Install

CONTRACT = {
    "list", "describe", "plugins", "plan", "run", "status", "evaluate", "explain", "report", "compare",
    "data", "init", "new-plugin", "check", "doctor", "cache",
}  # fmt: skip


def every_command(group: Group, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found.append((*before, name))
        if isinstance(command, Group):
            found += every_command(command, (*before, name))
    return found


def test_the_commands_are_those_of_the_contract() -> None:
    assert {path[0] for path in every_command(cli)} >= CONTRACT
    assert {path[1] for path in every_command(cli) if path[0] == "data" and path[1:]} == {
        "list",
        "fetch",
        "verify",
        "path",
    }
    assert {path[1] for path in every_command(cli) if path[0] == "cache" and path[1:]} == {
        "ls",
        "gc",
        "verify",
    }


@pytest.mark.parametrize("path", every_command(cli), ids=" ".join)
def test_every_help_has_examples_that_begin_with_the_command(cfbench: Command, path: tuple[str, ...]) -> None:
    shown = cfbench(*path, "--help")
    assert shown.code == 0
    examples = shown.out.partition("Examples:\n")[2].splitlines()
    assert any(f"cfbench {' '.join(path)}" in line for line in examples)
    assert max(len(line) for line in shown.out.splitlines()) <= 110


def test_without_arguments_the_help_is_shown(cfbench: Command) -> None:
    assert cfbench() == cfbench("--help") and cfbench().code == 0


def test_the_version_is_that_of_the_distribution(cfbench: Command) -> None:
    assert cfbench("--version").out == f"cfbench {metadata.version('cfbench-core')}\n"


def test_a_reader_who_has_seen_enough_ends_it_quietly(toy: Path) -> None:
    code = "import sys; from cfbench_core.cli import main; sys.exit(main(['list']))"
    with popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_init_writes_a_configuration_that_plans(toy: Path, cfbench: Command) -> None:
    written = cfbench("init", "first.yaml", "--suite", "toy")
    assert written.code == 0 and written.out.startswith("wrote first.yaml.")
    assert cfbench("plan", "first.yaml").code == 0


def test_init_does_not_write_over_a_file_unless_forced(toy: Path, cfbench: Command) -> None:
    before = (toy / "study.yaml").read_text()
    refused = cfbench("init", "--suite", "toy")
    assert refused.code == 2 and refused.err.startswith("study.yaml: exists already")
    assert (toy / "study.yaml").read_text() == before
    assert cfbench("init", "--suite", "toy", "--force").code == 0
    assert (toy / "study.yaml").read_text() != before


def test_init_of_a_suite_that_is_not_there_says_what_to_install(toy: Path, cfbench: Command) -> None:
    refused = cfbench("init", "--suite", "texts")
    assert refused.code == 2 and "no suite 'texts' is installed" in refused.err


def test_init_for_a_csv_file_needs_a_suite_that_reads_them(toy: Path, cfbench: Command) -> None:
    (toy / "mine.csv").write_text("a,y\n1,2\n")
    refused = cfbench("init", "mine.yaml", "--csv", "mine.csv", "--suite", "toy")
    assert refused.code == 2 and "the suite toy does not read CSV files (cfbench list suites)" in refused.err
    assert not (toy / "mine.yaml").exists()
    alone = cfbench("init", "mine.yaml", "--target", "y")
    assert (
        alone.code == 2
        and "target: names a column of a CSV file; name that file as well (--csv FILE)" in alone.err
    )


CHECKED_PLUGIN = """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_explainers():
    return [
        ComponentSpec(id="toy/explainer/good", summary="Good", target="good:Good", config="good:Config"),
        ComponentSpec(id="toy/explainer/bad", summary="Bad", target="good:Good", config="good:Undescribed"),
    ]
"""
CHECKED = """
from dataclasses import dataclass
from typing import Annotated
from cfbench_core.config import Help

@dataclass(frozen=True)
class Config:
    base: Annotated[int, Help("of the digits")] = 10

@dataclass(frozen=True)
class Undescribed:
    base: int = 10

class Good:
    def __init__(self, config): ...
"""


@pytest.fixture
def checked(toy: Path, install: Install) -> None:
    """Two explainers are installed, of which "bad" does not describe its option."""
    install("cfbench-checked", "1.0", CHECKED_PLUGIN)
    (toy.parent / "site" / "good.py").write_text(CHECKED)


def test_check_passes_a_correct_component_and_fails_an_incorrect_one(checked: None, cfbench: Command) -> None:
    good = cfbench("check", "good")
    assert good.code == 0 and good.out.endswith("\nAll checks passed.\n")
    bad = cfbench("check", "bad")
    assert bad.code == 1 and bad.out.endswith("\n1 of 8 checks failed\n")
    (failed,) = [line for line in bad.out.splitlines() if line.startswith("✗")]
    assert failed.split()[1] == "configuration-is-described" and "option 'base' has no Help" in failed


def test_a_failing_check_may_be_waived_by_name_and_with_a_reason(checked: None, cfbench: Command) -> None:
    waived = cfbench("check", "bad", "--waive", "configuration-is-described=only a toy")
    assert waived.code == 0 and "waived: only a toy" in waived.out
    assert cfbench("check", "bad", "--waive", "configuration-is-described").code == 2
    unknown = cfbench("check", "bad", "--waive", "configuration-is-describe=why not")
    assert unknown.code == 2 and "Did you mean 'configuration-is-described'?" in unknown.err


def test_check_finds_a_class_where_one_stands(toy: Path, cfbench: Command) -> None:
    (toy / "my_own_digits.py").write_text(
        'class Mine:\n    """Mine."""\n    def __init__(self, config): ...\n'
    )
    found = cfbench("check", "my_own_digits:Mine", "--suite", "toy", "--format", "json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["component"] == "toy/explainer/mine"


def test_the_cache_is_listed_verified_and_cleared(toy: Path, cfbench: Command) -> None:
    assert "nothing is cached" in cfbench("cache", "ls").out
    cfbench("run", "study.yaml", "--output", "runs/one")
    kinds = [line.split()[:2] for line in cfbench("cache", "ls").out.splitlines()]
    assert ["model", "1"] in kinds and ["explanations", "5"] in kinds
    (line,) = cfbench("cache", "ls", "model").out.splitlines()[1:]
    assert line.endswith("times")
    assert cfbench("cache", "ls", "modl").err.endswith(
        "nothing is cached of kind 'modl'. Did you mean 'model'?\n"
    )
    assert cfbench("cache", "ls", "external").code == 0
    assert cfbench("cache", "verify").out == "14 artifacts verified, 0 damaged\n"

    (model,) = (toy.parent / "cache" / "artifacts" / "model").rglob("factor.json")
    model.chmod(0o644)
    model.write_text("3")
    damaged = cfbench("cache", "verify", "--remove")
    assert "factor.json" in damaged.out and "14 artifacts verified, 1 damaged (removed)" in damaged.out
    assert cfbench("cache", "verify").out == "13 artifacts verified, 0 damaged\n"

    assert "would remove 13 artifacts" in cfbench("cache", "gc", "--older-than", "0", "--dry-run").out
    assert cfbench("cache", "gc", "--older-than", "30").out == "removed 0 artifacts, 0 bytes\n"
    assert "removed 13 artifacts" in cfbench("cache", "gc", "--older-than", "0").out
    assert "nothing is cached" in cfbench("cache", "ls").out


DATA_PLUGIN = """
from cfbench_core.data_files import DataFiles, Form
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

BY_HAND = DataFiles(id="by-hand", suite="toy", forms=(Form(files=("by-hand.csv",)),), licence="ask its owner",
                    how="Ask for it at example.org")

@hookimpl
def cfbench_datasets():
    return [ComponentSpec(id="toy/dataset/by-hand", summary="s", target="m:C",
                          details={"files": "cfbench_data_plugin:BY_HAND"})]
"""


def test_data_are_listed_and_found_where_they_lie(toy: Path, install: Install, cfbench: Command) -> None:
    install("cfbench-data", "1.0", DATA_PLUGIN)
    (line,) = [line for line in cfbench("data", "list").out.splitlines() if line.startswith("by-hand")]
    assert "by hand" in line and "ask its owner" in line and "Ask for it at example.org" in line
    missing = cfbench("data", "path", "by-hand")
    assert missing.code == 2 and "by-hand: is not there. Ask for it at example.org" in missing.err
    assert cfbench("data", "fetch", "by-hand").code == 2

    folder = toy / "data" / "by-hand"
    folder.mkdir(parents=True)
    (folder / "by-hand.csv").write_text("user,item\n")
    assert Path(cfbench("data", "path", "by-hand").out.strip()).resolve() == folder
    assert cfbench("data", "fetch", "by-hand").out.startswith("by-hand: exists already")
    verified = cfbench("data", "verify", "by-hand")
    assert verified.code == 0 and "no checksum is known" in verified.out


def test_a_broken_data_set_is_listed_with_its_reason_and_hides_no_other(
    toy: Path, install: Install, cfbench: Command
) -> None:
    install("cfbench-data", "1.0", DATA_PLUGIN)
    broken = DATA_PLUGIN.replace("toy/dataset/by-hand", "toy/dataset/wrong").replace(":BY_HAND", ":NOTHING")
    install("cfbench-wrong", "1.0", broken)
    listed = cfbench("data", "list")
    assert listed.code == 0
    lines = {line.split()[0]: line for line in listed.out.splitlines()}
    assert "by hand" in lines["by-hand"]
    assert lines["wrong"].split()[1] == "broken" and "has no attribute 'NOTHING'" in lines["wrong"]
    verified = cfbench("data", "verify")
    assert verified.code == 1 and "BROKEN" in verified.out and "has no attribute 'NOTHING'" in verified.out
    assert cfbench("data", "path", "wrong").code == 2


def test_data_are_fetched_with_their_licence_shown_and_verified(
    toy: Path, install: Install, cfbench: Command
) -> None:
    content = b"user,item\n" * 1000
    with serving(Site(content)) as site:
        download = f"DataFile(name='by-hand.csv', url={site.url!r}, bytes=10000, sha256={_sha256(content)!r})"
        source = DATA_PLUGIN.replace("forms=", f"downloads=({download},), forms=")
        install("cfbench-data", "1.0", source.replace("import DataFiles", "import DataFile, DataFiles"))
        fetched = cfbench("data", "fetch", "by-hand", "--data-dir", "mine")
    assert fetched.code == 0 and fetched.out == f"by-hand: in {Path('mine/by-hand')}\n"
    assert "ask its owner" in fetched.err and "downloading by-hand.csv (10.0 kB)" in fetched.err
    assert (toy / "mine/by-hand/by-hand.csv").read_bytes() == content
    assert cfbench("data", "verify", "by-hand", "--data-dir", "mine").code == 0

    (toy / "mine/by-hand/by-hand.csv").write_bytes(b"user,item\n" * 999)
    damaged = cfbench("data", "verify", "by-hand", "--data-dir", "mine")
    assert damaged.code == 1 and "WRONG" in damaged.out


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_data_path_without_a_name_lists_the_searched_folders(toy: Path, cfbench: Command) -> None:
    lines = cfbench("data", "path", "--data-dir", "mine").out.splitlines()
    assert lines[1].split()[0] == str(toy / "mine")
    assert lines[2].split() == [str(toy / "data"), "./data"]


@pytest.mark.slow
def test_doctor_finds_the_unwritable_and_the_broken(
    toy: Path, install: Install, cfbench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("cfbench-broken", "0.3", "import a_module_that_is_nowhere\n")
    (toy / "a-file").touch()
    monkeypatch.setenv("CFBENCH_CACHE_DIR", "/proc/nowhere")
    found = cfbench("doctor", "--format", "json")
    findings = {finding["subject"]: finding for finding in json.loads(found.out)}
    assert found.code == 1
    assert findings["cfbench-toy"]["found"] == "1.0"
    assert "a_module_that_is_nowhere" in findings["plugin"]["found"] and findings["plugin"]["advice"]
    assert "CFBENCH_CACHE_DIR" in findings["cache"]["advice"]
    assert "problems found" in cfbench("doctor").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_of_the_shell(cfbench: Command, shell: str) -> None:
    script = cfbench("completion", shell)
    assert script.code == 0 and "_CFBENCH_COMPLETE" in script.out


@pytest.mark.slow
def test_completion_knows_commands_options_and_components(toy: Path) -> None:
    def completed(line: str) -> list[str]:
        words = line.split(" ")
        path = os.pathsep.join([str(toy.parent / "site"), str(Path(__file__).parents[1] / "samples")])
        done = subprocess.run(
            [sys.executable, "-c", "import sys; from cfbench_core.cli import main; sys.exit(main())"],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")]),
                "_CFBENCH_COMPLETE": "bash_complete",
                "COMP_WORDS": line,
                "COMP_CWORD": str(len(words) - 1),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return [entry.partition(",")[2] for entry in done.stdout.splitlines()]

    assert completed("cfbench de") == ["describe"]
    assert completed("cfbench describe toy/explainer/d") == ["toy/explainer/digits"]
    assert "--offline" in completed("cfbench run --o")
    assert "toy" in completed("cfbench init --suite t")


def test_an_error_about_the_store_begins_with_its_option(toy: Path, cfbench: Command) -> None:
    refused = cfbench("run", "study.yaml", "--store", "fil")
    assert refused.code == 2
    assert refused.err.startswith("--store fil: store.name: no store 'fil'. Did you mean 'file'?")
