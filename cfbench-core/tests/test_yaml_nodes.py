"""YAML from strangers: what is refused, in which line, and that nothing else can come of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cfbench_core.config import Document
from cfbench_core.errors import UserError
from cfbench_core.yaml_nodes import MAXIMUM_BYTES, compose, plain, read_text


def value(text: str) -> object:
    node = compose(text, lambda line: f"f.yaml:{line}")
    assert node is not None
    return plain(node)


def refused(text: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        compose(text, lambda line: f"f.yaml:{line}")
    return list(caught.value.lines)


def test_values_are_null_booleans_numbers_and_text() -> None:
    text = "{a: 1, b: -2.5, c: true, d: No, e: ~, f: word, g: '1', h: 0x1F, i: 1_000, j: .inf, k: 1.0e+3}"
    assert value(text) == {
        "a": 1, "b": -2.5, "c": True, "d": False, "e": None, "f": "word", "g": "1", "h": 31, "i": 1000,
        "j": float("inf"), "k": 1000.0,
    }  # fmt: skip


@pytest.mark.parametrize("word", ["2026-11-22", "2026-13-45", "010", "1:30", "=", "1" * 5000, "1" * 20, "0x"])
def test_dates_octal_sexagesimal_and_huge_numbers_are_text(word: str) -> None:
    assert value(word) == word


def test_the_keys_of_a_mapping_are_text() -> None:
    assert value("{1: a, yes: b, ~: c, 2026-01-01: d}") == {"1": "a", "yes": "b", "~": "c", "2026-01-01": "d"}


def test_an_alias_stands_for_the_value_with_that_anchor() -> None:
    assert value("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: a: is given twice, first on line 1"),
        ("m:\n  - {name: ease, name: popularity}\n", "f.yaml:2: m[0].name: is given twice, first on the same line"),
        ("a: {1: x, '1': y}", "f.yaml:1: a.1: is given twice, first on the same line"),
        ("seed: !foo 3\n", "f.yaml:1: seed: has the tag '!foo'; tags are not supported, write the value alone"),
        ("a: !!python/name:os.system x", "has the tag '!!python/name:os.system'"),
        ("a: !!python/object/apply:os.system [id]", "f.yaml:1: a: has the tag"),
        ("a: !!set {x, y}", "f.yaml:1: a: has the tag '!!set'"),
        ("a: ! x", "f.yaml:1: a: has the tag '!'"),
        ("!x {a: 1}", "f.yaml:1: has the tag '!x'"),
        ("columns: &a\n  - *a\n", "f.yaml:2: columns[0]: the alias *a stands for a value around it"),
        ("a: &a {b: *a}", "f.yaml:1: a.b: the alias *a stands for a value around it"),
        ("a: *b", "f.yaml:1: a: no value before the alias *b has that name"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "f.yaml:3: c.<<: merge keys are not supported; write the keys out"),
        ("? [1, 2]\n: 3\n", "f.yaml:1: a key must be text, not a list or a mapping"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: a second document begins; a file holds one"),
        ("a:\n\t- b\n", "f.yaml:2: not valid YAML: found character that cannot start any token"),
        ("a: [1, 2\n", "f.yaml:2: not valid YAML"),
        ("a: b: c\n", "f.yaml:1: not valid YAML"),
        ("a: 1\nb: x\0y\n", "f.yaml:2: holds the control character U+0000"),
        ("a: x\x1b[31m\n", "f.yaml:1: holds the control character U+001B"),
        ('a: 1\nlabel: "x\\x1b[31m"\n', "f.yaml:2: label: holds the control character U+001B"),
        ('a: "\\0"\n', "f.yaml:1: a: holds the control character U+0000"),
        ('a: "\\ud800"\n', "f.yaml:1: not valid YAML"),
        ("a: \ud800\n", "f.yaml:1: holds the control character U+D800"),
        ("%YAML 9.9\n--- x\n", "f.yaml:1: not valid YAML"),
    ],
)  # fmt: skip
def test_what_has_no_place_in_a_configuration_is_one_line_with_its_number(text: str, line: str) -> None:
    found = refused(text)
    assert len(found) == 1 and "\n" not in found[0]
    assert line in found[0], found[0]


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- ", "? "])
def test_a_document_of_any_depth_ends_in_one_line(bracket: str) -> None:
    assert (
        "levels deep" in refused(bracket * 200_000)[0]
        or "a key must be text" in refused(bracket * 200_000)[0]
    )


def test_depth_counts_behind_aliases_too() -> None:
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 300))]
    assert refused("\n".join(lines)) == ["f.yaml:50: a49[0]: is nested more than 50 levels deep"]


def test_aliases_that_explode_end_in_one_line() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]
    (line,) = refused("\n".join(lines))
    assert "the document has more than 200,000 values" in line and line.startswith("f.yaml:6: ")


def test_everything_that_is_given_twice_is_reported() -> None:
    assert len(refused("a: 1\na: 2\nb: 3\nb: 4\n")) == 2
    assert len(refused("\n".join(["a: 1"] * 1000))) == 20


def test_a_file_is_utf8_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes("\ufeffname: Nóbrega\n".encode())
    assert value(read_text(file)) == {"name": "Nóbrega"}
    file.write_bytes("a: 1\nname: Nóbrega\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"study.yaml:2: is not UTF-8 text \(byte 0xf3\); save it as UTF-8"):
        read_text(file)
    file.write_text("a: 1", encoding="utf-16")
    with pytest.raises(UserError, match=r"study\.yaml:1: is not UTF-8 text"):
        read_text(file)


def test_only_regular_files_of_some_megabytes_are_read(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    big.write_bytes(b"#" * (MAXIMUM_BYTES + 1))
    pipe = tmp_path / "pipe.yaml"
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
        with pytest.raises(UserError, match=r"pipe\.yaml: is not a regular file; give a YAML file"):
            Document.read(pipe)
    for path, message in (
        (tmp_path, "is a directory; give a YAML file"),
        (big, "is longer than 2 MB, the limit of a YAML file"),
        (tmp_path / "none.yaml", "no such file. A first one is written by 'cfbench init'"),
        (tmp_path / ("x" * 300), "cannot be read: File name too long"),
        (Path(os.devnull), "is not a regular file"),
    ):
        with pytest.raises(UserError) as caught:
            Document.read(path)
        assert message in str(caught.value) and len(caught.value.lines) == 1


def test_python_data_that_is_no_configuration_is_refused() -> None:
    itself: dict[str, object] = {}
    itself["again"] = itself
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    for data, message in (
        ({"a": object()}, "is object; values must be text, numbers"),
        ({"a": Path("b")}, "values must be text, numbers"),
        (itself, "stands for a value around it"),
        ({"a": deep}, "is nested"),
        ({1: "a", "1": "b"}, "1: is given twice"),
        ({"a": "\0"}, "a: holds the control character U+0000"),
        ({"a": {1, 2}}, "has the tag '!!set'"),
    ):
        with pytest.raises(UserError) as caught:
            Document.of(data)  # type: ignore[arg-type]
        assert message in str(caught.value), caught.value
