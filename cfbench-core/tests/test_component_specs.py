"""Specs are read from the files of a package as literals; nothing of it is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cfbench_core.component_specs import component_specs, specs_of_file
from cfbench_core.testing import check_specs

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str) -> Path:
        path = tmp_path / "component.py"
        path.write_text(text)
        return path

    return put


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package ``spec_reading`` on ``sys.path``."""
    folder = tmp_path / "spec_reading"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def one(name: str, kind: str = "explainer") -> str:
    return f'SPEC = ComponentSpec(\n    id="toy/{kind}/{name}",\n    summary=".",\n    target=f"{{__name__}}:Ours",\n)\n'


def test_every_kind_of_literal_is_evaluated(write: Write) -> None:
    path = write(
        "import there_is_no_such_module\n\n"
        "SPEC = ComponentSpec(\n"
        '    id="toy/explainer/first",\n'
        '    summary="Two strings " "become one",\n'
        '    target=f"{__name__}:First",\n'
        '    provides={"level": {"item", "list"}, "empty": ()},\n'
        '    needs={"recommender": {"access": ["scores"]}},\n'
        '    papers=("brin1997",),\n'
        '    details={"default": False, "weights": (-1, 2.5), "home": __name__},\n'
        ")\n"
    )

    (spec,) = specs_of_file(path, "somewhere.component")

    assert spec.summary == "Two strings become one"
    assert spec.target == "somewhere.component:First"
    assert spec.provides == {"level": frozenset({"item", "list"}), "empty": frozenset()}
    assert spec.needs == {"recommender": {"access": frozenset({"scores"})}}
    assert spec.papers == ("brin1997",)
    assert spec.details == {"default": False, "weights": (-1, 2.5), "home": "somewhere.component"}


def test_a_file_may_declare_several_components(write: Write) -> None:
    first, second = (
        f'    ComponentSpec(id="toy/metric/{name}", summary=".", target=f"{{__name__}}:{name}"),\n'
        for name in "ab"
    )
    specs = specs_of_file(write(f"SPECS = (\n{first}{second})\n\nREST = 1\n"), "m")

    assert [spec.id for spec in specs] == ["toy/metric/a", "toy/metric/b"]


def test_a_declaration_may_stand_on_one_line(write: Write) -> None:
    path = write('SPEC = ComponentSpec(id="toy/metric/a", summary=".", target="m:A")\nREST = (\n)\n')

    assert [spec.id for spec in specs_of_file(path, "m")] == ["toy/metric/a"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("    provides=PROVIDES,", "'PROVIDES' is not a literal"),
        ("    provides={**SHARED},", "is not a literal"),
        ("    provides=frozenset(),", "'frozenset()' is not a literal"),
        ("    summary='a' + 'b',", "is not a literal"),
        ("    summary=f'{__name__!r}',", "is not a literal"),
        ("    **more,", "'more' is not a literal"),
    ],
)
def test_what_is_not_literal_is_an_error_with_file_and_line(write: Write, line: str, reason: str) -> None:
    path = write(f'\n\nSPEC = ComponentSpec(\n    id="toy/metric/a",\n    target="m:A",\n{line}\n)\n')

    with pytest.raises(ValueError) as raised:
        specs_of_file(path, "m")

    assert str(raised.value).startswith(f"{path}:6: ")
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            'SPEC = ComponentSpec(\n    id="wrong",\n    summary=".",\n    target="m:A",\n)\n',
            "must be 'suite/kind/name'",
        ),
        ('SPEC = ComponentSpec(\n    id="toy/metric/a",\n    summary=".",\n)\n', "'target'"),
        (
            'SPEC = ComponentSpec(\n    id="toy/metric/a",\n    summary=".",\n    target="m:A",\n    role="bound",\n)\n',
            "role must be one of certified, reference, baseline, not 'bound'",
        ),
        (
            'SPEC = ComponentSpec(\n    id="t/e/a",\n    summary=".",\n    target="m:A",\n    role="certified",\n)\n',
            "'certificate' must say what is proven",
        ),
        (
            'SPEC = ComponentSpec(\n    id="t/e/a",\n    summary=".",\n    target="m:A",\n    certificate="all",\n)\n',
            "'certificate' must say what is proven",
        ),
        ('SPEC = ComponentSpec(\n    id="toy/metric/a",\n    color="red",\n)\n', "'color'"),
        (
            'SPEC = ComponentSpec(\n    id="toy/metric/a",\n    summary=".",\n',
            "no ')' at the start of a line",
        ),
        ('SPEC = ComponentSpec(\n    id="toy/metric/a" "b" 1,\n)\n', "syntax"),
        ("SPECS = (\n    OTHER,\n)\n", "'OTHER' is not a literal"),
    ],
)
def test_an_invalid_declaration_is_an_error_with_file_and_line(write: Write, text: str, reason: str) -> None:
    path = write(text)

    with pytest.raises(ValueError) as raised:
        specs_of_file(path, "m")

    assert f"{path}:" in str(raised.value)
    assert reason in str(raised.value)


def test_all_files_of_a_package_are_read_and_none_is_imported(package: Path) -> None:
    (package / "metrics").mkdir()  # a folder without __init__.py is part of the package too
    (package / "templates").mkdir()
    (package / "metrics" / "size.py").write_text(f"import there_is_no_such_module\n\n{one('size', 'metric')}")
    (package / "lift.py").write_text(f"import there_is_no_such_module\n\n{one('lift')}")
    (package / "templates" / "sample.py").write_text(one("sample"))

    found = component_specs("spec_reading")

    assert [(spec.id, spec.target) for spec in found] == [
        ("toy/explainer/lift", "spec_reading.lift:Ours"),
        ("toy/metric/size", "spec_reading.metrics.size:Ours"),
    ]
    assert component_specs("spec_reading", "metric") == found[1:]
    assert "spec_reading.lift" not in sys.modules


def test_a_package_that_is_not_installed_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_package"):
        component_specs("there_is_no_such_package")


def test_the_core_declares_its_components_correctly() -> None:
    check_specs("cfbench_core")
