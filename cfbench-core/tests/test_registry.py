"""Plugins as they are installed: what is wrong with one becomes its row, and harms nobody else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cfbench_core.config import Document, decode_experiment
from cfbench_core.errors import UserError
from cfbench_core.registry import Plugin, Registry, installed

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """``install("cfbench-mine", source, *requires)``: a distribution 1.0 on ``sys.path`` with one plugin module."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    installed.cache_clear()

    def put(name: str, source: str, *requires: str, metadata: str | None = None) -> None:
        module = name.replace("-", "_") + "_plugin"
        (site / f"{module}.py").write_text(source)
        folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
        whole = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"
        (folder / "METADATA").write_text(whole if metadata is None else metadata)
        (folder / "entry_points.txt").write_text(f"[cfbench]\nplugin = {module}\n")
        importlib.invalidate_caches()
        installed.cache_clear()

    yield put
    for path in site.glob("*.py"):
        sys.modules.pop(path.stem, None)
    installed.cache_clear()


def source(hook: str, returned: str) -> str:
    return (
        "from cfbench_core.hooks import hookimpl\n"
        "from cfbench_core.specs import ComponentSpec as Spec\n"
        f"@hookimpl\ndef {hook}():\n    {returned}\n"
    )


def explainers(*names: str, target: str = "toy_suite:Digits", config: str | None = None) -> str:
    specs = ", ".join(
        f"Spec(id='toy/explainer/{name}', summary='.', target={target!r}, config={config!r})"
        for name in names
    )
    return source("cfbench_explainers", f"return [{specs}]")


TOY = source("cfbench_components", "import toy_suite; return toy_suite.SPECS")


def plugin(name: str) -> Plugin:
    (found,) = [plugin for plugin in installed().plugins if plugin.distribution == name]
    return found


def decode(explainer: str) -> None:
    text = f"suite: toy\ndata: numbers\nmodels: times\nexplainers:\n  - digits\n  - {explainer}\n"
    decode_experiment(Document(text, "study.yaml", Path()), installed())


def test_a_plugin_brings_its_components_with_their_owner(install: Install) -> None:
    install("cfbench-mine", explainers("mine"))
    component = installed().find("toy", "explainer", "mine")
    assert (component.distribution, component.distribution_version) == ("cfbench-mine", "1.0")
    assert plugin("cfbench-mine").problem == ""


def test_a_name_of_another_suite_is_not_taken_for_a_misspelling(install: Install) -> None:
    install("cfbench-toy", TOY)
    install("cfbench-mine", explainers("mace", "sedc"))
    other = source(
        "cfbench_components",
        "return [Spec(id='core/suite/other', summary='.', target='m:C'),"
        " Spec(id='other/explainer/mine', summary='.', target='m:C')]",
    )
    install("cfbench-other", other)
    with pytest.raises(UserError) as raised:
        installed().find("toy", "explainer", "mine")
    assert str(raised.value) == (
        "no explainer 'mine'. It belongs to the suite other, this configuration to toy.  (cfbench list explainers)"
    )
    with pytest.raises(UserError, match="Did you mean 'mace'"):
        installed().find("toy", "explainer", "mice")


def test_an_unknown_name_may_be_in_a_distribution_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extras = {"toy": ["cfbench-toy", "cfbench-more-toys"]}
    monkeypatch.setattr("cfbench_core.registry.known_extras", lambda: extras)
    partly = Registry([Plugin("toy", "cfbench-toy", "1.0", "cfbench_toy", ())])
    with pytest.raises(UserError) as raised:
        partly.find("toy", "explainer", "mine")
    assert str(raised.value) == (
        "no explainer 'mine'. It may be in cfbench-more-toys, not installed here.  (cfbench list explainers)"
    )


@pytest.mark.parametrize(
    ("code", "requires", "problem"),
    [
        ("import no_such_thing", (), "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("def broken(:\n", (), "SyntaxError: invalid syntax"),
        ("raise SystemExit('bye')", (), "SystemExit: bye"),
        ("assert False", (), "AssertionError: without a word"),
        (explainers("mine"), ("cfbench-core<0.1",), "needs cfbench-core<0.1, but "),
        (explainers("mine"), ("cfbench-nowhere>=2",), "needs cfbench-nowhere>=2, which is not installed"),
        (explainers("mine"), ("cfbench-core ~~ 1",), "InvalidRequirement: "),
        (source("cfbench_explainers", "raise KeyError('x')"), (), "KeyError: 'x'"),
        (
            source("cfbench_explainers", "return ['mine']"),
            (),
            "TypeError: cfbench_explainers returned 'mine', which is not a ComponentSpec",
        ),
        (
            source("cfbench_explainers", "return Spec(id='toy/explainer/mine', summary='.', target='m:C')"),
            (),
            "TypeError: cfbench_explainers must return a list of ComponentSpec, not ComponentSpec",
        ),
        (
            source("cfbench_explainers", "return [Spec(id='toy/metric/mine', summary='.', target='m:C')]"),
            (),
            "TypeError: cfbench_explainers returned toy/metric/mine, which is not of kind explainer",
        ),
        (
            source("cfbench_explainers", "return [Spec(id='mine', summary='.', target='m:C')]"),
            (),
            "ValueError: component id 'mine': must be 'suite/kind/name'",
        ),
        (
            source("cfbench_explainers", "return [Spec(id='a/b/c', summary='.', target='m.C')]"),
            (),
            "ValueError: component a/b/c: 'm.C' must be 'package.module:Name'",
        ),
        (source("cfbench_explaners", "return []"), (), "unknown hook 'cfbench_explaners'"),
        ("def cfbench_explainers():\n    return []\n", (), "ValueError: has no hook"),
        (explainers("mine", "mine"), (), "ValueError: toy/explainer/mine is defined twice"),
    ],
)
def test_a_broken_plugin_is_a_row_with_its_reason_and_the_others_work(
    install: Install, code: str, requires: tuple[str, ...], problem: str
) -> None:
    install("cfbench-toy", TOY)
    install("cfbench-bad", code, *requires)
    bad = plugin("cfbench-bad")
    assert problem in bad.problem and "\n" not in bad.problem and bad.components == ()
    assert ("Traceback" in bad.traceback) == (not bad.problem.startswith("needs "))
    assert "digits" in installed().names("toy", "explainer")
    assert any("cfbench-bad 1.0: " in line for line in installed().problems())
    decode("plain")
    with pytest.raises(UserError) as caught:
        decode("mine")
    (line,) = caught.value.lines
    assert line.startswith("study.yaml:6: explainers[1]: no explainer 'mine'.")
    assert f"cfbench-bad ({bad.problem})" in line and "\n" not in line


@pytest.mark.parametrize("finder", ["importlib.metadata", "importlib_metadata"])
@pytest.mark.parametrize("metadata", ["", "Name: half\n"])
def test_half_an_installation_is_a_row_too(install: Install, metadata: str, finder: str) -> None:
    pytest.importorskip(finder)  # the second replaces the first once it is imported, and raises other errors
    install("half", "import no_such_thing", metadata=metadata)
    rows = [p for p in installed().plugins if p.module == "half_plugin"]
    assert [row.version for row in rows] == ["?"] and "no_such_thing" in rows[0].problem


def test_extras_are_no_requirements(install: Install) -> None:
    install("cfbench-mine", explainers("mine"), "cfbench-nowhere; extra == 'all'", "cfbench-core>=0.1")
    assert plugin("cfbench-mine").problem == ""


def test_an_id_that_two_define_fails_only_its_users(install: Install) -> None:
    install("cfbench-toy", TOY)
    install("cfbench-mine", explainers("mine", "own"))
    install("cfbench-other", explainers("mine", "others"))
    assert [*installed().conflicts()] == ["toy/explainer/mine"]
    assert {"own", "others", "digits"} <= {*installed().names("toy", "explainer")}
    assert "mine" not in installed().names("toy", "explainer")
    decode("own")
    decode("others")
    with pytest.raises(UserError) as caught:
        decode("mine")
    assert caught.value.lines == (
        "study.yaml:6: explainers[1]: toy/explainer/mine is defined by both cfbench-mine 1.0 and "
        "cfbench-other 1.0: uninstall one of them",
    )


LATE = {
    "no module of the implementation": (
        {"target": "no_such_thing:Mine"},
        "no module no_such_thing",
    ),
    "no package above it": (
        {"target": "no_such_thing.inner:Mine"},
        "no module no_such_thing.inner: ModuleNotFoundError: No module named 'no_such_thing'",
    ),
    "no module of the options": (
        {"config": "no_such_thing:Config"},
        "no_such_thing:Config: ModuleNotFoundError: No module named 'no_such_thing'",
    ),
    "no such options": (
        {"config": "toy_suite:Nothing"},
        "toy_suite:Nothing: AttributeError: module 'toy_suite' has no attribute 'Nothing'",
    ),
    "options of another kind": ({"config": "toy_suite:Digits"}, "toy_suite:Digits is not a dataclass"),
}


@pytest.mark.parametrize("case", LATE)
def test_a_component_found_broken_late_is_one_line_with_its_place(install: Install, case: str) -> None:
    changes, said = LATE[case]
    install("cfbench-toy", TOY)
    install("cfbench-bad", explainers("mine", **changes))
    assert plugin("cfbench-bad").problem == ""  # its list of components is in order
    decode("plain")
    with pytest.raises(UserError) as caught:
        decode("mine")
    (line,) = caught.value.lines
    assert line.startswith("study.yaml:6: explainers[1]: toy/explainer/mine") and line.endswith(said)


def test_annotations_that_cannot_be_read_are_one_line(install: Install, tmp_path: Path) -> None:
    (tmp_path / "site" / "their_options.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Config:\n    rate: NeverImported = 1\n"
    )
    install("cfbench-toy", TOY)
    install("cfbench-bad", explainers("mine", config="their_options:Config"))
    with pytest.raises(UserError, match=r"^study.yaml:6: explainers\[1\]: .*'NeverImported' is not defined"):
        decode("mine")


def test_a_suite_that_cannot_be_imported_is_one_line_with_its_place(install: Install) -> None:
    install(
        "cfbench-bad",
        source("cfbench_components", "return [Spec(id='gone/suite/gone', summary='.', target='gone:Suite')]"),
    )
    with pytest.raises(UserError) as caught:
        decode_experiment(Document("seed: 1\nsuite: gone\n", "study.yaml", Path()), installed())
    assert caught.value.lines == (
        "study.yaml:2: suite: gone/suite/gone of cfbench-bad 1.0 cannot be used: gone:Suite: "
        "ModuleNotFoundError: No module named 'gone'",
    )


def test_a_misspelt_executor_is_one_line_with_its_place(install: Install) -> None:
    install("cfbench-toy", TOY)
    text = "suite: toy\nexecutor: proces\ndata: numbers\nmodels: times\nexplainers: digits\n"
    with pytest.raises(UserError) as caught:
        decode_experiment(Document(text, "study.yaml", Path()), installed())
    (line,) = caught.value.lines
    assert line.startswith("study.yaml:2: executor: no executor 'proces'. Did you mean 'process'?")


def test_plugins_are_in_the_order_of_their_names_whatever_the_order_of_the_path() -> None:
    rows = [Plugin("x", name, "1", name) for name in ("b", "a")]
    assert [plugin.distribution for plugin in Registry(rows).plugins] == ["a", "b"]


def test_a_run_without_a_configuration_leaves_out_what_says_so(install: Install) -> None:
    spec = "Spec(id='toy/explainer/{0}', summary='x', target='x:X'{1})"
    both = ", ".join([spec.format("quick", ""), spec.format("slow", ", details={'default': False}")])
    install("cfbench-both", source("cfbench_explainers", f"return [{both}]"))
    assert {"quick", "slow"} <= {*installed().names("toy", "explainer")}
    assert "quick" in installed().by_default("toy", "explainer")
    assert "slow" not in installed().by_default("toy", "explainer")


def test_a_suite_can_run_where_what_it_compares_is_installed(install: Install) -> None:
    spec = "Spec(id='{0}', summary='x', target='x:X', details={1})"
    suite = spec.format("words/suite/words", "{'compared': 'recommender'}")
    install("cfbench-words", source("cfbench_components", f"return [{suite}]"))
    assert "words" in installed().suites() and "words" not in installed().suites_to_run()
    writer = spec.format("words/recommender/writer", "{}")
    install("cfbench-writer", source("cfbench_recommenders", f"return [{writer}]"))
    assert "words" in installed().suites_to_run()
