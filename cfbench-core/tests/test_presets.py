"""Presets: options under a name, taken by a configuration, described, written by a search."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfbench_core.config import Document, decode_experiment, resolved_document
from cfbench_core.errors import UserError
from cfbench_core.presets import Preset, parse_presets, presets_of, search_problem, write_preset
from cfbench_core.registry import Component, Registry
from cfbench_core.testing import CHECKS, check_component

PRESETS = """\
small: {options: {count: 3}, search: {metric: accuracy, value: 0.9}}
large: {options: {count: 30}}
wrong: {options: {count: 0, cuont: 1}}
"""


@pytest.fixture
def registry(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The toy suite, with presets of ``numbers`` in a package of its own."""
    package = tmp_path / "preset_package"
    (package / "presets").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "presets" / "numbers.yaml").write_text(PRESETS)
    for name in [name for name in sys.modules if name.partition(".")[0] == "preset_package"]:
        monkeypatch.delitem(sys.modules, name)  # that of another test
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()

    return with_presets_of(registry, "numbers")


def with_presets_of(registry: Registry, name: str) -> Registry:
    """The registry, with presets of one component: those of the package."""

    def changed(component: Component) -> Component:
        spec = component.spec
        found = f"preset_package:presets/{name}.yaml" if spec.name == name else None
        return dataclasses.replace(component, spec=dataclasses.replace(spec, presets=found))

    return Registry(
        dataclasses.replace(plugin, components=tuple(map(changed, plugin.components)))
        for plugin in registry.plugins
    )


def study(data: str, models: str = "times") -> str:
    return f"suite: toy\ndata: {data}\nmodels: {models}\nexplainers: digits\n"


def decode(text: str, registry: Registry) -> Any:
    return decode_experiment(Document(text, "study.yaml", Path()), registry)[1]


def errors(text: str, registry: Registry) -> list[str]:
    with pytest.raises(UserError) as caught:
        decode(text, registry)
    return list(caught.value.lines)


def test_a_preset_stands_for_its_options(registry: Registry) -> None:
    config = decode(study("{name: numbers, preset: large}"), registry)
    assert config.data.options.count == 30 and config.data.label == "numbers"


def test_options_next_to_a_preset_take_precedence(registry: Registry) -> None:
    config = decode(study("{name: numbers, count: 7, preset: small, label: seven}"), registry)
    assert config.data.options.count == 7 and config.data.label == "seven"


def test_published_options_make_a_row_of_their_own(registry: Registry, tmp_path: Path) -> None:
    presets = tmp_path / "preset_package" / "presets" / "numbers.yaml"
    presets.write_text(PRESETS + "theirs: {options: {count: 5}, search: {source: table 3}}\n")
    given = ("preset: theirs", "preset: small", "preset: theirs, label: mine", "preset: theirs, count: 6")
    configs = [decode(study(f"{{name: numbers, {data}}}"), registry) for data in given]
    assert [config.data.label for config in configs] == ["numbers-theirs", "numbers", "mine", "numbers"]
    written = resolved_document(configs[0])
    assert written["data"] == {"name": "numbers", "label": "numbers-theirs", "count": 5}
    assert decode(yaml.safe_dump(written), registry) == configs[0]


def test_a_run_writes_the_options_of_its_presets(registry: Registry) -> None:
    config = decode(study("{name: numbers, preset: small}"), registry)
    written = resolved_document(config)
    assert written["data"] == {"name": "numbers", "count": 3}
    assert decode(yaml.safe_dump(written), registry) == config


@pytest.mark.parametrize(
    ("data", "models", "said"),
    [
        ("{name: numbers, preset: smal}", "times", "2: data.preset: no preset 'smal'. Did you mean 'small'?"),
        (
            "{name: numbers, preset: tiny-one}",
            "times",
            "2: data.preset: no preset 'tiny-one'. It has: small, large, wrong",
        ),
        (
            "numbers",
            "{name: times, preset: small}",
            "3: models.preset: no preset 'small'. times has no presets",
        ),
        ("{name: numbers, preset: [small]}", "times", "2: data.preset: no preset a list. It has: small, large, wrong"),
    ],
)  # fmt: skip
def test_a_missing_preset_is_an_error_with_its_line(
    registry: Registry, data: str, models: str, said: str
) -> None:
    assert errors(study(data, models), registry) == [f"study.yaml:{said}"]


@pytest.mark.parametrize(
    ("explainer", "said"),
    [
        ("{name: digits, preset: aut}", "Did you mean 'auto'?"),
        ("{name: digits, preset: smal}", "Did you mean 'small'?"),
        ("{name: digits, preset: of-my-own}", "It has: small, large, auto"),
    ],
)
def test_auto_is_offered_where_it_would_be_right(
    registry: Registry, tmp_path: Path, explainer: str, said: str
) -> None:
    presets = tmp_path / "preset_package" / "presets" / "digits.yaml"
    presets.write_text("small: {options: {}}\nlarge: {options: {}}\n")
    (line,) = errors(study("numbers").replace("digits", explainer), with_presets_of(registry, "digits"))
    wrong = explainer.partition("preset: ")[2].rstrip("}")
    assert line == f"study.yaml:4: explainers.preset: no preset {wrong!r}. {said}"


def test_what_is_wrong_in_a_preset_is_told_with_its_name(registry: Registry) -> None:
    assert errors(study("{name: numbers, preset: wrong}"), registry) == [
        "study.yaml:2: preset 'wrong': data.count: must be a whole number >= 1, got '0'",
        "study.yaml:2: preset 'wrong': data.cuont: unknown key. Did you mean 'count'?",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[small]", "must be a mapping of names to presets"),
        ("small: {count: 3}", "small: must be a mapping with 'options' and, if wanted, 'search'"),
        ("small: {options: {}, found: {}}", "small: must be a mapping with"),
        ("small: 3", "small: must be a mapping with"),
        ("small: {options: [", "not valid YAML"),
    ],
)
def test_a_file_without_presets_is_an_error(text: str, said: str) -> None:
    with pytest.raises(UserError, match=rf"^mine.yaml(:\d+)?: {said}"):
        parse_presets(text, "mine.yaml")


def test_presets_that_cannot_be_read_are_an_error_that_names_the_component(registry: Registry) -> None:
    spec = registry.find("toy", "dataset", "numbers").spec
    for reference in ("preset_package:presets/letters.yaml", "no_such_package:presets.yaml", "presets.yaml"):
        with pytest.raises(
            UserError, match=f"^toy/dataset/numbers: its presets '{reference}' cannot be read"
        ):
            presets_of(dataclasses.replace(spec, presets=reference))


def test_a_written_preset_replaces_its_namesake_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "mine.yaml"
    write_preset(path, Preset("small", {"rate": 1e-05, "layers": [3, 2]}, {"value": 0.5}))
    write_preset(path, Preset("large", {"rate": 0.1}))
    write_preset(path, Preset("small", {"rate": 2e-05}))
    assert parse_presets(path.read_text(), "mine.yaml") == {
        "large": Preset("large", {"rate": 0.1}, {}),
        "small": Preset("small", {"rate": 2e-05}, {}),
    }


def test_a_file_that_holds_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("suite: toy\n")
    with pytest.raises(UserError, match="suite: must be a mapping"):
        write_preset(path, Preset("small", {}))
    assert path.read_text() == "suite: toy\n"


SEARCHED = {"metric": "POS-P", "value": 0.2, "as_configured": 0.3, "better": "lower", "trials": 20}
HELD_OUT = {"metric": "POS-P, held out", "value": 0.25, "as_configured": 0.3}


@pytest.mark.parametrize(
    ("search", "problem"),
    [
        ({"source": "table 3 of the paper"}, ""),
        ({**SEARCHED, "held_out": HELD_OUT}, ""),
        ({}, "says neither where its options were published"),
        ({**SEARCHED, "held_out": HELD_OUT, "trials": 19}, "comes from 19 trials, fewer than 20"),
        (
            {**SEARCHED, "held_out": HELD_OUT, "failed": 1},
            "comes from 19 trials that did not fail, fewer than 20",
        ),
        (SEARCHED, "does not say what it gains on held-out data"),
        ({**SEARCHED, "held_out": {"value": 0.2}}, "does not say what the options as configured reach"),
        (
            {**SEARCHED, "held_out": {**HELD_OUT, "value": 0.3}},
            "is not better than the options as configured",
        ),
        (
            {**SEARCHED, "held_out": {**HELD_OUT, "value": HELD_OUT["as_configured"] * 0.996}},
            "gains less than 0.5% over the options as configured",
        ),
        ({**SEARCHED, "held_out": {**HELD_OUT, "value": HELD_OUT["as_configured"] * 0.994}}, ""),
        ({**SEARCHED, "held_out": HELD_OUT, "value": 0.3}, "is not better than the options as configured"),
        (
            {**SEARCHED, "held_out": HELD_OUT, "better": "higher"},
            "is not better than the options as configured",
        ),
    ],
)
def test_a_preset_is_published_or_comes_from_a_search_with_a_gain(
    search: dict[str, Any], problem: str
) -> None:
    found = search_problem(Preset("one", {}, search))
    assert found == "" if not problem else found.startswith(problem)


def test_no_preset_is_called_auto() -> None:
    with pytest.raises(UserError, match="'preset: auto' means the preset of the data; choose another name"):
        parse_presets("auto: {options: {count: 3}}", "mine.yaml")


def test_the_kit_refuses_presets_that_no_search_found(registry: Registry) -> None:
    spec = registry.find("toy", "dataset", "numbers").spec
    searched = [check for check in CHECKS if check.name == "presets-were-searched"]
    (failure,) = check_component(spec, registry=registry, checks=searched).failures
    assert failure.reason == "preset 'small' comes from 0 trials, fewer than 20"


def test_the_kit_refuses_presets_that_the_configuration_does_not_take(registry: Registry) -> None:
    spec = registry.find("toy", "dataset", "numbers").spec
    fitting = [check for check in CHECKS if check.name == "presets-fit"]
    (failure,) = check_component(spec, registry=registry, checks=fitting).failures
    assert failure.reason.startswith(
        "preset 'wrong': count: must be a whole number >= 1, got '0' preset 'wrong': cuont"
    )
    other = registry.find("toy", "recommender", "times").spec
    assert check_component(other, registry=registry, checks=fitting).results[0].result == "not applicable"


CONFIG = """\
import dataclasses

@dataclasses.dataclass(frozen=True)
class Config:
    preset: int = 0
"""


def test_the_kit_refuses_an_option_called_preset(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "preset_package" / "badly_named.py").write_text(CONFIG)
    spec = registry.find("toy", "dataset", "numbers").spec
    named = dataclasses.replace(spec, config="preset_package.badly_named:Config")
    described = [check for check in CHECKS if check.name == "configuration-is-described"]
    (failure,) = check_component(named, registry=registry, checks=described).failures
    assert "option 'preset'" in failure.reason
