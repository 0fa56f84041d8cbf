"""Files as other programs export them: what ``cfbench init --csv`` makes of them, what it remarks, and what it refuses."""

import dataclasses

import numpy as np
import pytest
import yaml

from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_tabular.config_from_csv import csv_document
from cfbench_tabular.file_format import title_lines, without_lines
from cfbench_tabular.reading import read_sheet, table_of
from cfbench_tabular.schema import Schema

ROWS = 80


@pytest.fixture
def drafted(tmp_path, monkeypatch):
    """The text of the drafted configuration, its data set, and the table that this reads."""
    monkeypatch.chdir(tmp_path)

    def of(text, target=None):
        path = tmp_path / "mine.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        document = csv_document(path.relative_to(tmp_path), target, ["nearest-enemy"])
        data = yaml.safe_load(document)["data"][0]
        known = {field.name for field in dataclasses.fields(Schema)}
        schema = Schema(**{key: value for key, value in data.items() if key in known})
        return document, data, table_of(read_sheet(path, schema), schema, "mine")

    return of


def lines(*cells, rows=ROWS, separator=","):
    """Rows of the cells that functions of the number of the row return."""
    return "".join(separator.join(str(cell(row)) for cell in cells) + "\n" for row in range(rows))


def age(row):
    return 20 + row * 7 % 60


def answer(row):
    return "yes" if age(row) > 45 else "no"


@pytest.mark.parametrize(
    ("title", "skipped"),
    [("sep=;\n", 1), ("Export of the branch\nas of 24.11.2026\n\n", 2), ("Export;;\n", 1), ("", 0)],
)
def test_a_title_is_skipped(drafted, title, skipped):
    text = title + "age;town;paid\n" + lines(age, lambda row: "UOK"[row % 3], answer, separator=";")
    _, data, table = drafted(text)
    assert data.get("skip_lines", 0) == skipped
    assert [column.name for column in table.columns] == ["age", "town"]
    assert len(table) == ROWS


def test_a_header_with_a_name_less_than_the_rows_have_cells_is_no_title(tmp_path):
    """As R writes a table with row names: it is refused, not read without its first line."""
    path = tmp_path / "r.csv"
    path.write_text("age,paid\n" + lines(lambda row: f"r{row}", age, answer))
    assert title_lines(path.read_text(), ",") == 0
    with pytest.raises(UserError, match=r"r.csv:2: has 3 values for 2 columns: 'no' is beyond .* 'paid'"):
        csv_document(path, None, [])


def test_lines_are_counted_from_the_beginning_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a title\n\na,y\n1,p\n2\n")
    with pytest.raises(UserError, match=r"t\.csv:5: has 1 values for 2 columns: none for 'y'"):
        read_sheet(path, Schema(skip_lines=1))
    assert without_lines("1\r\n2\r3\n4", 3) == "4"
    assert without_lines("1\n", 2) == ""


def test_a_file_without_a_header_gets_names(drafted):
    text = lines(lambda row: row % 10, lambda row: ("0x1F", "0x2A")[row % 2], answer)
    document, data, table = drafted(text)
    assert data["header"] is False
    assert data["class_column"] == "column3"
    assert [column.name for column in table.columns] == ["column1", "column2"]
    assert len(table) == ROWS
    assert "the first line looks like all others" in document
    _, data, _ = drafted("2019,2020,grew\n" + text)
    assert "header" not in data


def test_empty_columns_without_a_name_are_left_out(drafted):
    text = "age,paid,,\n" + lines(age, answer, lambda row: "", lambda row: "")
    _, data, table = drafted(text)
    assert data["class_column"] == "paid"
    assert [column.name for column in table.columns] == ["age"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y,x,z\n" + lines(age, age, age, answer), r"'x' \(columns 1 and 3\): rename one of them"),
        ("x,,,z\n" + lines(age, age, age, answer), "columns 2 and 3 have values but no name"),
        ("a,b,c,y\n1,2,3,p\n1,2\n", "3: has 2 values for 4 columns: none for 'c' and 1 more"),
        ("t\na,b\n1,2,3,4,5\n", "'2' is beyond the last column, 't'|beyond the last column"),
    ],
)
def test_failures_name_the_column(tmp_path, text, message):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        csv_document(path, None, [])


def test_remarks(drafted):
    draw = np.random.default_rng(0)
    amounts = draw.normal(0, 300, ROWS).round(2)
    text = "visit,age,humidity,balance,smoker,region,paid\n" + lines(
        lambda row: row + 7,
        age,
        lambda row: -999 if row % 9 == 0 else 10 + row,
        lambda row: f"approx {-amounts[row]:.2f}" if amounts[row] < 0 else f"{amounts[row]:.2f}",
        lambda row: "YNn"[row % 3],
        lambda row: ("N", "NA", "S")[row % 3],
        answer,
    )
    document, data, _ = drafted(text)
    assert data["columns"]["visit"] == data["columns"]["balance"] == "drop"
    assert "# 7, 8, ... in the order of the rows: a row number" in document
    assert "-999 in 9 rows: if it means a missing value, add it to missing_marks" in document
    share = (amounts >= 0).mean()
    assert f"{share:.0%} are numbers, 'approx" in document
    assert "'N' and 'n' differ in case only" in document
    assert "'NA' in 27 rows counts as missing; list it if it is a level" in document


def test_dates_with_years_of_two_digits(drafted):
    text = "since,age,paid\n" + lines(
        lambda row: f"{row % 28 + 1:02d}/{row % 12 + 1:02d}/{row % 20 + 5:02d}", age, answer
    )
    _, data, _ = drafted(text)
    assert (data["date_format"], data["columns"]["since"]) == ("%d/%m/%y", "date")


def test_a_foreign_file_from_draft_to_sentence(tmp_path, monkeypatch, capsys):
    """The title, the encoding, the marks of numbers, the unit and the date in one file, through all commands."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)
    incomes = draw.uniform(900, 9000, 120)
    text = "Kreditauszug Köln\n\nKunde;Alter;Einkommen;Beginn;bewilligt\n" + lines(
        lambda row: f"K-{row}",
        age,
        lambda row: f"{incomes[row]:,.2f} €".translate(str.maketrans(",.", ".,")),
        lambda row: f"{row % 28 + 1:02d}.{row % 12 + 1:02d}.2021",
        lambda row: "ja" if incomes[row] > 4000 else "nein",
        rows=120,
        separator=";",
    )
    (tmp_path / "bank.csv").write_bytes(text.encode("windows-1252"))
    assert main(["init", "--csv", "bank.csv", "bank.yaml"]) == 0
    assert main(["plan", "bank.yaml"]) == 0
    small = ["--set", "protocol.factuals=3", "--set", "classifiers=[logistic-regression]"]
    small += ["--executor", "inline"]
    assert main(["run", "bank.yaml", "--output", "out", "--quiet", *small]) == 0
    capsys.readouterr()
    assert main(["explain", "out"]) == 0
    assert "Einkommen" in capsys.readouterr().out


def line_of(document, name):
    return next(line for line in document.splitlines() if line.strip().startswith(f"{name}:"))


def test_a_category_of_numbers_and_few_words_is_remarked(drafted):
    words = ("<5", "high", "n.d.", "n.d.")
    text = "mix,age,paid\n" + lines(lambda row: row % 40 if row % 4 else words[row // 4 % 4], age, answer)
    document, data, _ = drafted(text)
    assert len(data["columns"]["mix"]) == 33
    numbers = "75% are numbers, but not 'n.d.' in 10 rows, '<5' in 5 and 'high' in 5: to read numbers"
    assert numbers in line_of(document, "mix")
    few = "mix,age,paid\n" + lines(lambda row: row % 9 if row % 4 else "high", age, answer)
    assert "are numbers" not in drafted(few)[0]


@pytest.mark.parametrize("days", [19, 80])
@pytest.mark.parametrize(
    "write",
    [
        lambda day, year: f"{day % 28 + 1}. {('Jan', 'Mai', 'Okt', 'Dez')[day % 4]} {year}",
        lambda day, year: f"{day % 28 + 1}-{('Jän', 'Mai', 'Okt', 'Dez')[day % 4]}-{year % 100:02d}",
        lambda day, year: f"{('June', 'July')[day % 2]} {day % 28 + 1}th, {year}",
    ],
)
def test_dates_with_names_of_months_are_said_to_look_like_dates(drafted, write, days):
    text = "at;age;paid\n" + lines(
        lambda row: write(row % days, 1980 + row % days), age, answer, separator=";"
    )
    assert "look like dates with names of months" in line_of(drafted(text)[0], "at")
    notes = "at;age;paid\n" + lines(lambda row: f"{row % days} of {row}", age, answer, separator=";")
    assert "look like dates" not in drafted(notes)[0]


@pytest.mark.parametrize("distinct", [15, 80])
def test_numbers_with_signs_of_multiples_are_said_to_look_like_numbers(drafted, distinct):
    text = "size,age,paid\n" + lines(
        lambda row: f"0.{row % distinct + 10}M" if row % 2 else f"{row % distinct + 200}k", age, answer
    )
    assert "look like numbers with 'M' and 'k' for multiples" in line_of(drafted(text)[0], "size")
    rooms = "size,age,paid\n" + lines(lambda row: f"{row % distinct}{'ab'[row % 2]}", age, answer)
    assert "look like numbers" not in drafted(rooms)[0]
