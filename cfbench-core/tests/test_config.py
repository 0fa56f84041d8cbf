"""A configuration that is right is decoded; one that is wrong gives a line for everything that is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml

from cfbench_core.config import (
    ConfiguredComponent,
    Distinct,
    Document,
    InputFile,
    Range,
    create,
    decode_dataclass,
    decode_experiment,
    fields_of,
    resolved_document,
)
from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
from cfbench_core.specs import ComponentSpec
from cfbench_core.suites import Limits

RIGHT = """\
suite: toy
seed: 3
data: numbers
models: [{name: times, factor: 1e1}]
explainers:
  - digits
  - {name: digits, label: binary, base: 2}
protocol: {levels: digit, k: [1, 2]}
"""


def decode(text: str, registry: Registry, sets: tuple[str, ...] = (), folder: Path = Path()) -> Any:
    document = Document(text, "study.yaml", folder)
    document.set(sets)
    return decode_experiment(document, registry)[1]


def errors(text: str, registry: Registry, *sets: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        decode(text, registry, sets)
    return list(caught.value.lines)


def test_a_configuration_is_decoded_with_its_defaults(registry: Registry) -> None:
    config = decode(RIGHT, registry)
    assert config.seed == 3
    assert config.data.label == "numbers" and config.data.options.count == 10
    assert config.models[0].options.factor == 10.0  # 1e1 is text to YAML 1.1, and a number to people
    assert [e.label for e in config.explainers] == ["digits", "binary"]
    assert config.explainers[1].options.base == 2
    assert config.protocol.levels == ("digit",) and config.protocol.k == (1, 2)
    assert config.executor.label == "process" and config.limits.memory_gb == 8.0


def test_what_is_written_out_decodes_to_the_same(registry: Registry) -> None:
    config = decode(RIGHT, registry)
    assert decode(yaml.safe_dump(resolved_document(config)), registry) == config


def test_a_component_is_made_again_from_its_parameters(registry: Registry) -> None:
    reference = decode(RIGHT, registry).explainers[1]
    assert create(reference.parameters()).config == reference.options


@dataclass(frozen=True)
class Rule:
    column: str
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rules:
    rules: tuple[Rule, ...] = ()


class Holder:
    def __init__(self, config: Rules) -> None:
        self.config = config


def test_a_list_of_dataclasses_comes_back_from_parameters_as_such() -> None:
    spec = ComponentSpec(
        id="toy/dataset/holder",
        summary="",
        target=f"{__name__}:Holder",
        config=f"{__name__}:Rules",
    )
    options = Rules((Rule("area", ("height", "width")), Rule("age")))
    parameters = json.loads(
        json.dumps(ConfiguredComponent("dataset", "holder", spec, options, "").parameters())
    )
    assert create(parameters).config == options


def test_a_document_may_be_one_dataclass() -> None:
    document = Document("rules:\n  - {column: area, of: [height, width]}\n", "rules.yaml", Path())
    assert decode_dataclass(document, Rules) == Rules((Rule("area", ("height", "width")),))
    with pytest.raises(
        UserError, match=r"^rules.yaml:2: rules\[0\].colum: unknown key. Did you mean 'column'"
    ):
        decode_dataclass(Document("rules:\n  - {colum: area, of: []}\n", "rules.yaml", Path()), Rules)


@dataclass(frozen=True)
class Bounded:
    """Annotated unions and lists, one within the other."""

    most: Annotated[tuple[int | None, ...], Range(minimum=1), Distinct()] = ()
    sizes: Annotated[tuple[int, ...] | None, Range(minimum=1), Distinct()] = None
    size: Annotated[int | Literal["grid"], Range(minimum=1)] = 1
    share: Annotated[float | None, Range(above=0, maximum=1)] = None
    pairs: Annotated[tuple[tuple[int, ...], ...], Range(maximum=5), Distinct()] = ()
    file: Annotated[tuple[str | None, ...], InputFile()] = ()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("most: [-5, null, 2]", "most[0]: must be a whole number >= 1, got '-5'"),
        ("most: 0", "most: must be a whole number >= 1, got '0'"),
        ("most: [2, null, 2]", "most[2]: '2' is given twice"),
        ("sizes: [3, 0]", "sizes[1]: must be a whole number >= 1, got '0'"),
        ("sizes: [3, 3]", "sizes[1]: '3' is given twice"),
        ("size: 0", "size: must be whole number or one of grid >= 1, got '0'"),
        ("share: 1.5", "share: must be a number > 0 and <= 1, got '1.5'"),
        ("pairs: [[1, 2], [6]]", "pairs[1][0]: must be a whole number <= 5, got '6'"),
        ("pairs: [[1, 2], [1, 2]]", "pairs[1]: a list is given twice"),
        ("file: [gone.csv]", "file[0]: no such file: gone.csv"),
    ],
)
def test_what_a_field_is_annotated_with_holds_for_the_members_of_its_type(text: str, wrong: str) -> None:
    with pytest.raises(UserError) as caught:
        decode_dataclass(Document(text, "b.yaml", Path()), Bounded)
    assert caught.value.lines[0].startswith(f"b.yaml:1: {wrong}"), caught.value.lines


def test_members_within_their_bounds_are_decoded() -> None:
    text = "most: [5, null, 2]\nsizes: [1, 2]\nsize: grid\nshare: 1\npairs: [[1, 1], [2]]\nfile: [null]\n"
    expected = Bounded((5, None, 2), (1, 2), "grid", 1.0, ((1, 1), (2,)), (None,))
    assert decode_dataclass(Document(text, "b.yaml", Path()), Bounded) == expected


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        ("seed: 3", 2, "seeed: unknown key. Did you mean 'seed'?"),
        (
            "  - digits",
            6,
            "explainers[0]: no explainer 'dgits'. Did you mean 'digits'?  (cfbench list explainers)",
        ),
        ("factor: 1e1", 4, "models[0].factor: must be a number > 0, got 'lots'"),
        ("base: 2", 7, "explainers[1].base: must be a whole number >= 2 and <= 16, got '1'"),
        (
            "levels: digit",
            8,
            "protocol.levels: must be one of digit, number, got 'numbr'. Did you mean 'number'?",
        ),
        ("k: [1, 2]", 8, "protocol.k[1]: must be a whole number >= 1, got '5 items'"),
    ],
)
def test_each_mistake_gives_its_line_and_the_remedy(
    registry: Registry, change: str, line: int, said: str
) -> None:
    wrong = {
        "seed: 3": "seeed: 3",
        "  - digits": "  - dgits",
        "factor: 1e1": "factor: lots",
        "base: 2": "base: 1",
        "levels: digit": "levels: numbr",
        "k: [1, 2]": "k: [1, 5 items]",
    }[change]
    assert errors(RIGHT.replace(change, wrong), registry) == [f"study.yaml:{line}: {said}"]


def test_all_mistakes_are_reported_at_once(registry: Registry) -> None:
    text = RIGHT.replace("seed: 3", "seed: x").replace("base: 2", "base: two").replace("factor", "faktor")
    assert [line.split(": ")[1] for line in errors(text, registry)] == [
        "seed",
        "models[0].faktor",
        "explainers[1].base",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "suite: is missing; say which one (toy)"),
        ("- a\n- b", "must be a mapping"),
        ("suite: [toy", "not valid YAML"),
        ("suite: toyy", "no suite 'toyy' is installed. Did you mean 'toy'?"),
        ("suite: recsys", "pip install cfbench-explainers-"),
        ("suite: toy\nmodels: times\nexplainers: digits", "data: is missing (dataset)"),
        (RIGHT + "seed: 4", "seed: is given twice"),
        (RIGHT.replace("label: binary, ", ""), "two are called 'digits': give one a 'label'"),
        (
            RIGHT.replace("  - digits", "  - {name: plain, base: 3}"),
            "base: unknown key. There is nothing to set",
        ),
        (
            RIGHT.replace("  - digits", "  - {base: 3}"),
            "needs either 'name' (cfbench list explainers) or 'import'",
        ),
        (RIGHT.replace("  - digits", "  - {import: no_such_module:X}"), "cannot import no_such_module"),
        (
            RIGHT.replace("  - digits", "  - {import: 'toy_suite:Digit'}"),
            "toy_suite has no 'Digit'. Did you mean 'Digits'?",
        ),
        (RIGHT.replace("factor: 1e1", "table: gone.csv"), "models[0].table: no such file: gone.csv"),
        (RIGHT.replace("factor: 1e1", "factor: .inf"), "models[0].factor: must be a number > 0"),
        (RIGHT.replace("seed: 3", "seed: true"), "seed: must be a whole number >= 0, got 'true'"),
        (
            RIGHT.replace("protocol: {levels: digit, k: [1, 2]}", "protocol: 5"),
            "protocol: must be a mapping with the keys",
        ),
        (RIGHT.replace("k: [1, 2]", "rate: 1.5"), "protocol.rate: must be a number >= 0 and <= 1, got '1.5'"),
    ],
)
def test_awkward_documents_give_a_clear_line(registry: Registry, text: str, said: str) -> None:
    found = errors(text, registry)
    assert any(said in line for line in found), found


def test_set_changes_values_and_its_mistakes_name_it(registry: Registry) -> None:
    config = decode(RIGHT, registry, ("seed=9", "explainers.1.base=3", "protocol.k=[4]", "limits.seconds=5"))
    assert (config.seed, config.explainers[1].options.base, config.protocol.k) == (9, 3, (4,))
    assert config.limits.seconds == 5.0
    assert errors(RIGHT, registry, "seed=x") == ["--set seed=x: seed: must be a whole number >= 0, got 'x'"]
    assert "unknown key" in errors(RIGHT, registry, "protocol.kk=3")[0]
    assert "not a place in a list of 2" in errors(RIGHT, registry, "explainers.7.base=3")[0]
    assert "must look like" in errors(RIGHT, registry, "seed")[0]


def test_a_class_with_a_shorthand_may_be_given_as_that_one_value(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert errors(RIGHT + "limits: 5\n", registry)[0].startswith("study.yaml:9: limits: must be a mapping")
    monkeypatch.setattr(Limits, "shorthand", "seconds", raising=False)
    assert decode(RIGHT + "limits: 5\n", registry).limits == Limits(seconds=5.0)
    assert decode(RIGHT + "limits: {seconds: 5, memory_gb: 1}\n", registry).limits.memory_gb == 1.0
    wrong = errors(RIGHT + "limits: soon\n", registry)
    assert wrong == ["study.yaml:9: limits.seconds: must be a number > 0, got 'soon'"]


def test_python_data_is_decoded_too_and_its_errors_name_keys_only(registry: Registry) -> None:
    data = yaml.safe_load(RIGHT)
    assert decode_experiment(Document.of(data), registry)[1] == decode(RIGHT, registry)
    with pytest.raises(UserError, match=r"^configuration: seed: must be a whole number"):
        decode_experiment(Document.of({**data, "seed": "x"}), registry)


def test_the_content_of_an_input_file_counts_in_what_is_cached(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1")
    text = RIGHT.replace("factor: 1e1", "table: t.csv")
    before = decode(text, registry, folder=tmp_path).models[0].parameters()
    (tmp_path / "t.csv").write_text("2")
    after = decode(text, registry, folder=tmp_path).models[0].parameters()
    assert before["files"] != after["files"]


def test_every_key_is_described(registry: Registry) -> None:
    config = decode(RIGHT, registry)
    described = {field.name: field for field in fields_of(type(config))}
    assert described["seed"].type == "whole number" and described["seed"].range == ">= 0"
    assert described["limits.memory_gb"].default == "8.0"
    assert (
        described["explainers"].type == "list of explainers"
        and described["explainers"].default == "(required)"
    )
    assert described["protocol.levels"].type == "list of one of digit, number"
