"""Configurations from strangers: wrong values end in one line, and no file next to one replaces a module."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sample_tasks import task
from toy_runs import SAMPLES

from cfbench_core import api
from cfbench_core.config import Document, decode_experiment
from cfbench_core.config.code_references import module_path, origin, reference_problem
from cfbench_core.errors import UserError
from cfbench_core.executors import Finished
from cfbench_core.executors.process import ProcessExecutor
from cfbench_core.registry import Registry
from cfbench_core.suites import Limits

RIGHT = """\
suite: toy
seed: 3
data: numbers
models: [{name: times, factor: 1e1}]
explainers:
  - digits
protocol: {levels: digit, k: [1, 2]}
"""


@pytest.fixture
def module_search_path(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """``sys.path``, restored after the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    return sys.path


def errors(text: str, registry: Registry, *sets: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        document = Document(text, "study.yaml", Path())
        document.set(sets)
        decode_experiment(document, registry)
    return list(caught.value.lines)


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        (
            "seed: 3", "seed: 1" + "0" * 25,
            "study.yaml:2: seed: must be a whole number >= 0 of at most 64 bits, got '10000000000000000000000000'",
        ),
        ("factor: 1e1", "factor: 1e400", "study.yaml:4: models[0].factor: must be a number > 0, got '1e400'"),
        ("factor: 1e1", "factor: 1" + "0" * 400, "study.yaml:4: models[0].factor: must be a number > 0, got '1000"),
        ("factor: 1e1", "factor: ١٢", "study.yaml:4: models[0].factor: must be a number > 0, got '١٢'"),
        ("levels: digit", "levels: [digit, digit]", "study.yaml:7: protocol.levels[1]: 'digit' is given twice"),
        ("levels: digit", "levels: [true]", "study.yaml:7: protocol.levels[0]: must be one of digit, number"),
        ("- digits", "- {name: digits, label: ''}", "study.yaml:6: explainers[0].label: must be text, got ''"),
        ("- digits", "- {name: digits, label: ' '}", "study.yaml:6: explainers[0].label: must be text, got ''"),
        ("- digits", "- {name: digits, label: ~}", "study.yaml:6: explainers[0].label: must be text, got nothing"),
        ("- digits", "- {name: digits, label: [a]}", "study.yaml:6: explainers[0].label: must be text, got a list"),
        ("- digits", "- {name: digits, label: " + "x" * 100_000 + "}", "one line of at most 120 visible characters"),
        ("- digits", '- {name: digits, label: "a\\nb"}', "one line of at most 120 visible characters, got 'a b'"),
        ("- digits", '- {name: digits, label: "a\\u202eb"}', "one line of at most 120 visible characters"),
        ("- digits", "- {name: {a: b}}", "study.yaml:6: explainers[0].name: must be text, got a mapping"),
        ("- digits", "- ~", "study.yaml:6: explainers[0]: must be text, got nothing"),
        ("- digits", "- {import: 'os:O_RDONLY'}", "'os:O_RDONLY' is in Python's standard library; 'import' takes"),
        ("- digits", "- {import: 'subprocess:Popen'}", "'subprocess:Popen' is in Python's standard library"),
        ("- digits", "- {import: 'numpy:pi'}", "numpy:pi is no class but float; 'import' takes a class"),
        ("- digits", "- {import: ':'}", "':' must be 'package.module:Class'"),
        ("- digits", "- {import: 'a.b'}", "'a.b' must be 'package.module:Class'"),
        ("- digits", "- {import: '..a:B'}", "cannot import ..a"),
        ("factor: 1e1", "table: " + "x" * 5000, "models[0].table: no such file: xxx"),
        ("factor: 1e1", "table: ~nobody-of-this-name/x", "models[0].table: no such file: ~nobody-of-this-name/x"),
        ("factor: 1e1", "table: /dev/zero", "models[0].table: no such file: /dev/zero"),
        ("seed: 3", "x" * 500_000 + ": 3", "study.yaml:2: not valid YAML"),
        ("suite: toy", "suite: " + "x" * 500_000, "no suite 'xxx"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_short_line_with_its_number(
    registry: Registry, right: str, wrong: str, line: str
) -> None:
    (found,) = errors(RIGHT.replace(right, wrong), registry)
    assert line in found and found.startswith("study.yaml:") and "\n" not in found
    assert len(found) < 2500


def test_no_more_than_twenty_errors_are_shown(registry: Registry) -> None:
    found = errors(RIGHT + "".join(f"wrong{n}: 1\n" for n in range(500)), registry)
    assert len(found) == 21 and found[-1] == "study.yaml: and 480 more errors"


def test_messages_do_not_repeat_long_values_or_secrets_of_set(registry: Registry) -> None:
    assert errors(RIGHT, registry, "models.0.key=sk-secret") == [
        "--set models.0.key=...: models[0].key: unknown key. Known keys: factor, table, pause"
    ]
    (line,) = errors(RIGHT, registry, "seed=[" + "1," * 5000 + "]")
    assert line == "--set seed=...: seed: must be a whole number >= 0, got a list"


@pytest.mark.parametrize("value", ["&a [*a]", "!foo 3", "{a: 1, a: 2}", "[" * 100_000, "\udcff", "a: b: c"])
def test_a_value_of_set_is_read_as_carefully_as_a_file(registry: Registry, value: str) -> None:
    (line,) = errors(RIGHT, registry, f"seed={value}")
    assert line.startswith("--set seed=") and len(line) < 300


def test_an_error_shows_control_characters_as_escapes() -> None:
    error = UserError("no column '\x1b[31mred\x1b[0m'", "x" * 10_000)
    assert error.lines[0] == r"no column '\x1b[31mred\x1b[0m'"
    assert len(error.lines[1]) < 2100 and "\x1b" not in str(error)


# The module path


def test_planning_changes_the_module_path_only_for_a_configuration_that_names_code(
    registry: Registry, tmp_path: Path, module_search_path: list[str]
) -> None:
    (tmp_path / "study.yaml").write_text(RIGHT)
    before = [*module_search_path]
    assert api.prepare(tmp_path / "study.yaml", registry=registry).search_path == ()
    assert module_search_path == before

    (tmp_path / "code_of_a_test.py").write_text("class Mine:\n    def __init__(self, config): ...\n")
    (tmp_path / "study.yaml").write_text(RIGHT.replace("- digits", "- {import: 'code_of_a_test:Mine'}"))
    prepared = api.prepare(tmp_path / "study.yaml", registry=registry)
    assert prepared.search_path == (str(tmp_path),)
    assert module_search_path == [*before, str(tmp_path)]


@pytest.mark.parametrize(
    "use", [pytest.param("", marks=pytest.mark.slow), "- {import: 'code_of_a_study:Mine'}"]
)
def test_no_file_next_to_a_configuration_replaces_a_module(tmp_path: Path, use: str) -> None:
    mark = tmp_path / "was-imported"
    for name in ("random", "scipy", "numpy", "queue", "json", "yaml", "cfbench_core", "toy_suite"):
        (tmp_path / f"{name}.py").write_text(
            f"open({str(mark)!r}, 'a').write(__name__)\nraise SystemExit(7)\n"
        )
    (tmp_path / "code_of_a_study.py").write_text(
        "from toy_suite import Digits as Mine, DigitsConfig as Config\n"
    )
    (tmp_path / "study.yaml").write_text(RIGHT.replace("- digits", f"- digits\n  {use}"))
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(SAMPLES)!r})\n"
        "import cfbench_core.plugin, toy_suite\n"
        "from cfbench_core.api import execute, prepare\n"
        "from cfbench_core.registry import Component, Plugin, Registry\n"
        "plugin = lambda name, specs: Plugin(name, name, '1', name, tuple(Component(s, name, '1') for s in specs))\n"
        "specs = cfbench_core.plugin.cfbench_components()\n"
        "registry = Registry([plugin('toy', toy_suite.SPECS), plugin('core', specs)])\n"
        "run = execute(prepare('study.yaml', registry=registry), out='out')\n"
        "assert run.exit_code == 0, [cell.reason for cell in run.cells()]\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "CFBENCH_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr


def test_a_worker_looks_into_the_folder_of_the_configuration_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as in an interactive session
    assert module_path([str(tmp_path / "study")])[-2:] == [str(tmp_path / "study"), str(tmp_path)]
    executor = ProcessExecutor(tmp_path / "store", 1, 1, Limits(), [str(tmp_path)], False)
    try:
        executor.submit(task("answer"))
        executor.wait()
        event = executor.wait()
        assert isinstance(event, Finished) and event.outcome.status == "ok", event
    finally:
        executor.close()


# Code that a configuration names


def test_only_the_users_own_code_and_classes_of_listed_libraries_can_be_named(
    tmp_path: Path, module_search_path: list[str]
) -> None:
    (tmp_path / "own_code_of_a_test.py").write_text("raise SystemExit('imported')\n")
    module_search_path.append(str(tmp_path))
    allowed = ("numpy.random",)
    assert reference_problem("own_code_of_a_test:anything", allowed) == ""
    assert reference_problem("numpy.random.mtrand:RandomState", allowed) == ""
    for reference, problem in (
        ("subprocess:check_output", "is in Python's standard library"),
        ("numpy:save", "is in an installed package; it must be code of your own, or a class of numpy.random"),
        ("numpy.randomly:f", "is in an installed package"),
        ("cfbench_core.files:write_atomically", "is in an installed package"),
        ("nowhere_at_all:f", "no module 'nowhere_at_all' in the folder of the configuration"),
        ("__main__:f", "no module '__main__'"),
        ("own_code_of_a_test", "must be 'package.module:name'"),
        ("own_code_of_a_test:a.b", "must be 'package.module:name'"),
        ("a/b:c", "must be 'package.module:name'"),
        ("", "must be 'package.module:name'"),
    ):
        assert problem in reference_problem(reference, allowed), reference


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def model(): pass\n", ""),
        ("class model: pass\n", ""),
        ("from somewhere import thing as model\n", ""),
        ("try:\n    model = 1\nexcept ImportError:\n    pass\n", ""),
        ("def modell(): pass\n", "source_of_a_test has no 'model'. Did you mean 'modell'?"),
        ("import somewhere.model\n", "has no 'model'"),
        ("from somewhere import *\n", ""),
        ("def __getattr__(name): return 1\n", ""),
        ("globals()['mod' + 'el'] = 1\n", ""),
        ("def broken(:\n", ""),
    ],
)
def test_a_name_that_a_module_of_the_user_lacks_is_found_in_its_source(
    tmp_path: Path, module_search_path: list[str], source: str, problem: str
) -> None:
    """It is never imported: no module that these import exists."""
    (tmp_path / "source_of_a_test.py").write_text(source)
    module_search_path.append(str(tmp_path))
    importlib.invalidate_caches()
    found = reference_problem("source_of_a_test:model", ())
    assert found == "" if not problem else problem in found
    assert "source_of_a_test" not in sys.modules


@pytest.mark.parametrize(
    ("module", "where"),
    [("os.path", "standard library"), ("sys", "standard library"), ("yaml", "installed"), ("toy_suite", "own")],
)  # fmt: skip
def test_the_origin_of_a_module(module: str, where: Any) -> None:
    assert origin(module) == where
