"""Files that a configuration names: found, unpacked, searched for columns."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from cfbench_core.data_files import Source
from cfbench_core.errors import UserError
from cfbench_core.user_files import find_column, need_column, unpacked, user_files


def test_a_file_is_found_with_its_fingerprint_and_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_bytes(b"x\n1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    source = user_files({"path": "~/a.csv"})
    assert source.paths == {"path": tmp_path / "a.csv"} and source.where == "the configuration"
    assert source.sha256 == {"path": hashlib.sha256(b"x\n1\n").hexdigest()}
    assert Source.of(source.parameters()).paths == source.paths


def test_the_file_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n")
    with pytest.raises(UserError, match=r"schema\.yaml: no such file"):
        user_files({"file": tmp_path / "a.csv", "schema": tmp_path / "schema.yaml"})


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "packed"])
def test_what_is_packed_is_unpacked_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x\n1\n" if name == "a.csv" else gzip.compress(b"x\n1\n"))
    with unpacked(path) as file:
        assert list(file) == [b"x\n", b"1\n"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.gz", gzip.compress(b"x\n" * 5000)[:-9]), ("a.gz", b"x\n1\n"), ("a", gzip.compress(b"x")[:3])],
    ids=["cut short", "not packed", "hardly begun"],
)
def test_a_damaged_file_is_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match="cannot be read") as caught, unpacked(tmp_path / name) as file:
        file.read()
    assert len(caught.value.lines) == 1 and caught.value.lines[0].startswith(str(tmp_path / name))


def test_an_empty_file_is_empty_and_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with unpacked(tmp_path / "empty") as file:
        assert file.read() == b""
    with pytest.raises(UserError, match="cannot be read"), unpacked(tmp_path):
        pass


def test_a_column_is_found_by_its_name_or_its_usual_names(tmp_path: Path) -> None:
    path, columns = tmp_path / "a.csv", ["UserId", "thing", "stars"]
    assert find_column(columns, path, None, ("user", "userID"), "user") == "UserId"
    assert find_column(columns, path, "thing", ("item",), "item") == "thing"
    assert find_column(columns, path, None, ("time",), "time") is None
    with pytest.raises(UserError) as caught:
        need_column(iter(columns), path, None, ("item",), "item")
    assert str(caught.value) == (
        f"{path}: no column looks like the item; name it with 'item: ...'. Its columns: UserId, thing, stars"
    )
    with pytest.raises(
        UserError, match=r"has no column 'star' for rating\. Did you mean 'stars'\? Its columns"
    ):
        find_column(columns, path, "star", (), "rating")


def test_of_several_usual_names_the_first_counts(tmp_path: Path) -> None:
    assert need_column(["id", "user", "User"], tmp_path, None, ("user", "id"), "user") == "user"


def test_a_gzip_file_that_unpacks_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfbench_core.content_checks.FREE_BYTES", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(UserError, match=r"bomb\.csv\.gz: unpacks to more than"), unpacked(path) as file:
        file.read()
