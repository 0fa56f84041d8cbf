"""Tables from files of many kinds, and what is said of those that are broken."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from cfbench_core.errors import UserError
from cfbench_recsys.reading import (
    identifiers,
    json_lines,
    moments,
    numbers,
    read_table,
)

pd = pytest.importorskip("pandas")


def write(path: Path, content: str | bytes) -> Path:
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "user,item,rating\n1,10,5\n2,20,3\n"),
        ("a.csv.gz", "user,item,rating\n1,10,5\n2,20,3\n"),
        ("a.csv", "\ufeffuser;item;rating\r\n1;10;5\r\n2;20;3\r\n"),
        ("a.tsv", "user\titem\trating\n1\t10\t5\n2\t20\t3"),
        ("a.dat", "user::item::rating\n1::10::5\n2::20::3\n"),
        ("a.txt", '"user"|"item"|"rating"\n"1"|"10"|"5"\n\n"2"|"20"|"3"\n'),
        ("a.inter", "user:token\titem:token\trating:float\n1\t10\t5\n2\t20\t3\n"),
        (
            "a.jsonl",
            '{"user": "1", "item": "10", "rating": "5"}\n{"user": "2", "item": "20", "rating": "3"}\n',
        ),
    ],
)
def test_one_table_in_many_forms(tmp_path: Path, name: str, content: str) -> None:
    table = read_table(write(tmp_path / name, content))
    assert table.to_dict("list") == {"user": ["1", "2"], "item": ["10", "20"], "rating": ["5", "3"]}


def test_a_parquet_table_keeps_its_types(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": [1, 2], "item": [1.0, 2.0]}, index=[5, 6]).to_parquet(path)
    table = read_table(path)
    assert identifiers(table, "user", path) == identifiers(table, "item", path) == ["1", "2"]


def test_without_a_header_columns_are_numbered(tmp_path: Path) -> None:
    path = write(tmp_path / "u.data", "1\t10\t5\n2\t20\t3\n")
    assert read_table(path).to_dict("list") == {"1": ["1", "2"], "2": ["10", "20"], "3": ["5", "3"]}


def test_columns_without_a_name_are_no_repeated_name(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "a.csv", "user,item,,\n1,2,3,4\n"))
    assert table[["user", "item"]].to_numpy().tolist() == [["1", "2"]] and table.shape == (1, 4)


def test_a_parquet_file_with_a_column_twice_is_one_line(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [pa.array(["1"])] * 3
    pq.write_table(pa.Table.from_arrays(columns, names=["user", "item", "item"]), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="the column 'item' more than once"):
        read_table(tmp_path / "a.parquet")


def test_a_header_is_recognised_by_numbers_below_words_or_by_a_known_name(tmp_path: Path) -> None:
    assert list(read_table(write(tmp_path / "a.csv", "who,what\n1,2\n")).columns) == ["who", "what"]
    assert list(read_table(write(tmp_path / "b.csv", "userId,what\na,b\n")).columns) == ["userId", "what"]
    named = read_table(write(tmp_path / "c.csv", "who,what\na,b\n"), known_names=["who"])
    assert list(named.columns) == ["who", "what"]
    with pytest.raises(
        UserError, match="cannot determine whether its first line 'who,what' names the columns"
    ):
        read_table(write(tmp_path / "d.csv", "who,what\na,b\n"))
    assert list(read_table(tmp_path / "d.csv", header=False).columns) == ["1", "2"]


def test_identifiers_stay_what_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "user,item\n007,NA\n0, null \n")
    table = read_table(path)
    assert identifiers(table, "user", path) == ["007", "0"]
    assert identifiers(table, "item", path) == ["NA", "null"]


def test_a_parquet_file_cut_short_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": range(1000), "item": range(1000)}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"a\.parquet: is no whole Parquet file") as caught:
        read_table(path)
    assert len(caught.value.lines) == 1 and "\n" not in caught.value.lines[0]
    path.write_bytes(b"")
    with pytest.raises(UserError, match="is no whole Parquet file"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n \n", "is empty"),
        ("a.csv", b"user,item\n", "has a header, but no rows"),
        ("a.csv", b"user,item\n1,2\n1,2,3\n", "is not a table: Expected 2 fields in line 3, saw 3"),
        ("a.csv", "user,item\n1,Amélie\n".encode("latin-1"), "is not text in utf-8 (byte 14)"),
        ("a.csv", b"user,item,item\n1,2,3\n", "its header has the column 'item' more than once"),
        ("a.csv", b'user;item;"user "\n1;2;3\n', "its header has the column 'user' more than once"),
        ("a.csv", b"user,item,rating,rating.1,rating\n1,2,3,4,5\n", "the column 'rating' more than once"),
        ("a.inter", b"user_id:token\titem_id:token\titem_id:token\n1\t2\t3\n", "more than once"),
        ("a.csv", b"justoneword\n1\n", "has none of the separators ::, tab, ,, ;, |"),
        ("a.jsonl", b'{"user": 1}\n{"user": ', ":2: is not a JSON object"),
        ("a.jsonl", b"[1, 2]\n", ":1: is not a JSON object"),
        ("a.jsonl", b"", "is empty"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(UserError, match=re.escape(words)) as caught:
        read_table(path)
    assert len(caught.value.lines) == 1 and caught.value.lines[0].startswith(str(path))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
def test_a_gzip_file_cut_short_or_not_one_at_all_is_one_line(tmp_path: Path, name: str) -> None:
    whole = gzip.compress(b'{"user": 1}\n' * 5000)
    for content in (whole[: len(whole) // 2], b"user,item\n1,2\n"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match="cannot be read"):
            read_table(tmp_path / name)


def test_text_in_another_encoding_is_read_when_it_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "user,item\n1,Amélie\n".encode("latin-1"))
    assert read_table(path, encoding="latin-1")["item"].tolist() == ["Amélie"]
    with pytest.raises(UserError, match="no encoding is called 'klingon'"):
        read_table(path, encoding="klingon")


def test_a_value_that_is_no_number_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = pd.DataFrame({"rating": ["5", "good", "inf", "3"]})
    assert numbers(table.iloc[[0, 3]], "rating", path).tolist() == [5.0, 3.0]
    with pytest.raises(UserError) as caught:
        numbers(table, "rating", path)
    assert str(caught.value) == f"{path}: row 2: column rating: 'good' is not a number (2 such rows)"


def test_an_empty_identifier_is_named_with_its_row_also_after_a_selection(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = pd.DataFrame({"user": ["a", "", None, "b"]})
    with pytest.raises(UserError, match=r"row 2: column user is empty \(2 such rows\)"):
        identifiers(table, "user", path)
    with pytest.raises(UserError, match=r"row 3: column user is empty \(1 such rows\)"):
        identifiers(table.iloc[2:], "user", path)


def test_times_are_numbers_or_dates(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = pd.DataFrame({"n": ["1", "2.5"], "d": ["1970-01-02", "1970-01-01T00:00:01Z"], "x": ["1", "soon"]})
    assert moments(table, "n", path).tolist() == [1.0, 2.5]
    assert moments(table, "d", path).tolist() == [86400.0, 1.0]
    stamps = pd.DataFrame({"d": pd.to_datetime(["1970-01-02", "1970-01-03"])})
    assert moments(stamps, "d", path).tolist() == [86400.0, 172800.0]
    with pytest.raises(UserError, match=r"column x: '1' is not a number or a date"):
        moments(table, "x", path)


def test_json_lines_give_the_fields_that_are_wanted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl.gz", '{"a": 1, "b": 2}\n\n{"a": 3}\n')
    assert list(json_lines(path, ("a", "b"))) == [{"a": 1, "b": 2}, {"a": 3, "b": None}]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("x" * 1_000_000, "has 1,000,000 characters; at most 1,000 are possible"),
        ("a\x00b", "holds a control character or half of a character"),
    ],
)
def test_an_identifier_that_cannot_be_one_is_refused_with_its_row(
    tmp_path: Path, name: str, complaint: str
) -> None:
    table = pd.DataFrame({"user": ["good", name]})
    with pytest.raises(UserError, match=rf"row 2: column user: .*{complaint}"):
        identifiers(table, "user", tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("user,item,rating\nSmith, John,x,5\nann,y,4\n", "row 1 has 4 values, the header 3 columns"),
        ("user,item\nann,x,5\nbob,y,4\n", "row 1 has 3 values, the header 2 columns"),
        ("user,item\nann,x,\n\nbob,y,4\n", "row 2 has 3 values, the header 2 columns"),
    ],
)
def test_rows_longer_than_the_header_are_refused(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        read_table(write(tmp_path / "a.csv", content))
    assert len(caught.value.lines) == 1


@pytest.mark.filterwarnings("error")
def test_blanks_at_the_ends_of_rows_are_no_values(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'user,item\n"Smith, John",x,\nann,y, \n')
    assert read_table(path).to_dict("list") == {"user": ["Smith, John", "ann"], "item": ["x", "y"]}


def test_large_identifiers_stay_what_they_are_next_to_decimals(tmp_path: Path) -> None:
    ids = [76561197970982479, 76561197970982480]
    lines = [
        json.dumps({"user": user, "item": item}) for user, item in zip([*ids, 1.5], [1, 2.0, 3], strict=True)
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(lines))
    table = read_table(path)
    assert identifiers(table, "user", path) == [*map(str, ids), "1.5"]
    assert identifiers(table, "item", path) == ["1", "2", "3"]


def test_large_numbers_of_a_parquet_file_are_different_identifiers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": [1e19, 2e19], "item": [1, 2]}).to_parquet(path)
    assert identifiers(read_table(path), "user", path) == [str(10**19), str(2 * 10**19)]


def test_the_index_of_a_parquet_file_is_a_column_if_it_has_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"item": ["x", "y"]}, index=pd.Index(["ann", "bob"], name="user")).to_parquet(path)
    assert read_table(path).to_dict("list") == {"user": ["ann", "bob"], "item": ["x", "y"]}
