"""Messy files: what is detected, and that a table written in any of these ways is drafted and read as the same table."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_tabular.column_types import text_of_number
from cfbench_tabular.config_from_csv import csv_document
from cfbench_tabular.date_forms import date_format_of
from cfbench_tabular.file_format import (
    decimal_marks_of,
    encoding_of,
    marks_of,
    number_pattern,
    separator_of,
    unit_of,
    without_unit,
)
from cfbench_tabular.reading import read_sheet, table_of
from cfbench_tabular.schema import MISSING_MARKS, Schema

TOWNS = ["Köln", "Málaga", "Oslo"]


def people(rows=60, seed=0):
    """Columns by name, as values: whole numbers, numbers with two decimals, dates, a category and a class."""
    draw = np.random.default_rng(seed)
    first = date(2019, 1, 1)
    return {
        "age": draw.integers(18, 90, rows).tolist(),
        "income": [round(float(x), 2) for x in draw.uniform(500, 30_000, rows)],
        "since": [first + timedelta(days=int(x)) for x in draw.integers(0, 2000, rows)],
        "town": [TOWNS[x] for x in np.arange(rows) % 3],
        "paid": ["yes" if x else "no" for x in draw.random(rows) < 0.7],
    }


def amount(value, decimal=".", thousands=""):
    return f"{value:,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))


def written(
    columns,
    separator=",",
    decimal=".",
    thousands="",
    days="%Y-%m-%d",
    gaps=(),
    mark="",
    empty=False,
    unit="{}",
):
    """The text of a file; ``gaps``: rows that lack their income; ``unit``: what stands next to it."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    names = [*columns][:-1] + (["remark"] if empty else []) + [[*columns][-1]]
    writer.writerow(names)
    for row in range(len(columns["age"])):
        cells = {
            "age": columns["age"][row],
            "income": mark
            if row in gaps
            else unit.format(amount(columns["income"][row], decimal, thousands)),
            "since": columns["since"][row].strftime(days),
            "town": columns["town"][row],
            "remark": "",
            "paid": columns["paid"][row],
        }
        writer.writerow([cells[name] for name in names])
    return file.getvalue()


def drafted(folder, data):
    path = Path(folder) / "people.csv"
    path.write_bytes(data)
    text = csv_document(path, None, ["nearest-enemy"])
    return path, text, yaml.safe_load(text)["data"][0]


def read(path, entry):
    options = {
        key: value
        for key, value in entry.items()
        if key in Schema.__dataclass_fields__ and key != "constraints"
    }
    options["missing_marks"] = tuple(options.get("missing_marks", MISSING_MARKS))
    schema = Schema(**options)
    return table_of(read_sheet(path, schema), schema, "people")


FORMS = st.fixed_dictionaries(
    {
        "separator": st.sampled_from([",", ";", "\t", "|"]),
        "marks": st.sampled_from(
            [(".", ""), (",", ""), (",", "."), (".", ","), (",", " "), (".", "'"), (",", "'")]
        ),
        "days": st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"]),
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "windows-1252"]),
        "mark": st.sampled_from(["", "NA", "-", "n/a", "?", "NULL", "#N/A", "<NA>", "unknown"]),
        "gaps": st.integers(0, 6),
        "unclassed": st.integers(0, 4),
        "empty": st.booleans(),
        "unit": st.sampled_from(["{}", "{} €", "€{}", "{}%", "CHF {}", "{} km/h"]),
        "seed": st.integers(0, 3),
    }
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(form=FORMS)
def test_a_table_is_the_same_however_it_was_written(tmp_path_factory, form):
    columns, gaps = people(seed=form["seed"]), set(range(form["gaps"]))
    (decimal, thousands), mark = form["marks"], form["mark"]
    if gaps or mark not in ("-", "unknown"):  # which are classes where they stand between no numbers
        columns["paid"] = [
            mark if row < form["unclassed"] else cell for row, cell in enumerate(columns["paid"])
        ]
    unit = form["unit"].format("").strip()
    text = written(
        columns, form["separator"], decimal, thousands, form["days"], gaps, mark, form["empty"], form["unit"]
    )
    path, _, entry = drafted(tmp_path_factory.mktemp("messy"), text.encode(form["encoding"]))
    types = entry["columns"]
    assert types["age"] == "integer"
    assert types["income"] == {"type": "numeric", "step": 0.01, **({"unit": unit} if unit else {})}
    assert types["since"] == "date"
    assert types["town"] == TOWNS
    assert types.get("remark", "drop") == "drop"
    table = read(path, entry)
    rows = [row for row in range(60) if row not in gaps and columns["paid"][row] != mark]
    assert table.values["age"].tolist() == [columns["age"][row] for row in rows]
    assert table.values["income"].tolist() == [columns["income"][row] for row in rows]
    epoch = date(1970, 1, 1)
    assert table.values["since"].tolist() == [(columns["since"][row] - epoch).days for row in rows]
    assert table.values["town"].tolist() == [columns["town"][row] for row in rows]
    assert list(table.target) == [columns["paid"][row] for row in rows]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a,b\n1,2\n", "utf-8"),
        ("a,b\nö,2\n".encode(), "utf-8"),
        ("a,b\nö,2\n".encode("utf-8-sig"), "utf-8"),
        ("a,b\nö,2\n".encode("utf-16"), "utf-16"),
        ("a,b\n1,2\nö,3\n".encode("utf-16-le"), "utf-16-le"),
        ("a,b\n1,2\nö,3\n".encode("utf-16-be"), "utf-16-be"),
        ("a,b\nö,2\n".encode("latin-1"), "windows-1252"),
        (b"a,b\n\x81\xf6,2\n", "latin-1"),
    ],
)
def test_the_encoding_is_detected_from_the_bytes(data, encoding):
    assert encoding_of(data) == encoding


def test_the_separator_is_what_splits_all_lines_alike():
    assert separator_of("name;price\nbread, white;1,50\nmilk;0,99\nsalt, fine, iodised;0,49\n") == ";"
    assert separator_of('name,price\n"a; b; c",1\n"d; e",2\n') == ","
    assert separator_of("a\tb\n1,5\t2\n") == "\t"


def test_numbers_by_their_marks():
    german = number_pattern(",", ".")
    assert all(
        german.fullmatch(text) for text in ["1", "1,5", "1.234,50", "-1.234.567", "1234,5", "+,5", "1e-3"]
    )
    assert not any(german.fullmatch(text) for text in ["1.5", "12.34,5", "1,5,5", "", "x", "1.2345"])


def test_a_comma_is_a_decimal_mark_only_where_something_says_so():
    assert decimal_marks_of({"a": ["1,5", "22,75", "3"]}, ()) == (",", None)
    assert decimal_marks_of({"a": ["1.234,5", "2.000"]}, ()) == (",", ".")
    assert decimal_marks_of({"a": ["1,234.5", "2,000"]}, ()) == (".", ",")
    assert decimal_marks_of({"a": ["1.5", "2"], "b": ["x", "y"]}, ()) == (".", None)


def test_dates_of_which_day_and_month_are_ambiguous_are_not_guessed():
    assert date_format_of({"a": ["03/04/2020", "05/06/2021", "07/08/2022"]}, ()) is None
    assert date_format_of({"a": ["03/04/2020", "05/06/2021", "17/08/2022"]}, ()) == "%d/%m/%Y"
    assert date_format_of({"a": ["12345678", "23456789", "34567890"]}, ()) is None


def test_text_between_numbers_is_a_missing_value_and_a_level_is_not():
    assert marks_of({"a": ["1", "2", "-", "3"]}, ("",)) == ("", "-")
    assert marks_of({"a": ["low", "-", "high"]}, ("",)) == ("",)
    assert marks_of({"a": ["1", "2", "x", "3"]}, ("",)) == ("",)


def test_a_unit_stands_next_to_every_number_of_a_column():
    assert unit_of(["12.50 €", "-3 €"]) == unit_of(["€12.50", "-€3", "€-4"]) == "€"
    assert unit_of(["12%", "3.5 %"]) == "%"
    assert unit_of(["80 m2", "1,075m2"]) == "m2"
    assert without_unit("1,075.5 m2", "m2") == "1,075.5"
    assert (
        unit_of(["CHF 12.-"]) == unit_of(["m2", "m3"]) == unit_of(["1e5", "2e7"]) == ""
    )  # codes and numbers
    assert unit_of(["12 €", "13 $"]) == unit_of(["12 €", "13"]) == unit_of(["flat 3", "flat 4"]) == ""
    assert without_unit("-€1,234.50", "€") == without_unit("-1,234.50 €", "€") == "-1,234.50"
    assert without_unit("unknown", "€") == "unknown"


def test_a_class_column_of_numbers_with_a_unit_is_read_with_its_threshold(tmp_path):
    rows = [f"{n % 50},{n / 4} €" for n in range(200)]
    path, _, entry = drafted(tmp_path, "\n".join(["age,price", *rows]).encode())
    assert entry["threshold"] == 24.875
    assert read(path, entry).numbers[[1, 199]].tolist() == [0.25, 49.75]


def test_a_category_that_would_fill_the_memory_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("cfbench_tabular.reading.MOST_BYTES", 8 * 60 * 59)
    path = tmp_path / "towns.csv"
    path.write_text("\n".join(["town,paid", *(f"town {n},{n % 2}" for n in range(60))]) + "\n")
    with pytest.raises(UserError, match=r"towns.csv: column 'town': 60 levels in 60 rows take .* drop"):
        read(path, {"columns": {"town": "categorical"}})


def test_a_column_of_numbers_with_unknown_text_is_named(tmp_path):
    path = tmp_path / "long.csv"
    rows = [f"{n / 7},{n % 2}" if n != 5 else "lost,1" for n in range(2000)]
    path.write_text("\n".join(["length,class", *rows]) + "\n")
    message = r"long.csv: column 'length': has 2,000 different texts.*100% are numbers, and 'lost' is not .*long.csv:7"
    with pytest.raises(UserError, match=message):
        read(path, {})


MESSY = {
    "latin": lambda c: written(c, ";", ",", ".", "%d.%m.%Y").encode("latin-1"),
    "utf16": lambda c: written(c, "\t").encode("utf-16"),
    "bom": lambda c: written(c).encode("utf-8-sig"),
    "empty-column": lambda c: written(c, empty=True, gaps={1, 5, 9}, mark="NA").encode(),
    "dashes": lambda c: written(c, "|", gaps=set(range(6)), mark="-").encode(),
    "american": lambda c: written(c, ",", ".", ",", "%m/%d/%Y").encode(),
    "french": lambda c: written(c, ";", ",", " ", "%d/%m/%Y").encode(),
    "swiss": lambda c: written(c, ";", ".", "'", "%d.%m.%Y").encode(),
    "units": lambda c: written(c, ";", ",", ".", "%d.%m.%Y", unit="{} €").encode(),
    "classes-missing": lambda c: written({**c, "paid": ["NA", *c["paid"][1:]]}).encode(),
    "quoted": lambda c: written(
        {**c, "town": [f'{town}, "{n % 2}"' for n, town in enumerate(c["town"])]}
    ).encode(),
    "streets": lambda c: written({**c, "town": [f"street {n * n}" for n in c["age"]]}).encode(),
    "long": lambda c: written(
        {**c, "paid": ["yes" if age > 40 else "no" for age in c["age"]]},
        ";",
        ",",
        gaps=set(range(0, 70_000, 50)),
        mark="NA",
    ).encode("latin-1"),
}
ROWS = {"long": 70_000}


@pytest.mark.parametrize(
    "name", [*(name for name in MESSY if name != "long"), pytest.param("long", marks=pytest.mark.slow)]
)
def test_messy_files_go_from_init_to_a_sentence(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    Path("people.csv").write_bytes(MESSY[name](people(rows=ROWS.get(name, 90))))
    assert main(["init", "--csv", "people.csv"]) == 0
    assert main(["plan", "study.yaml"]) == 0
    document = yaml.safe_load(Path("study.yaml").read_text(encoding="utf-8"))
    document["protocol"]["factuals"] = 4
    few = {"explainers": ["nearest-enemy"], "classifiers": ["logistic-regression"], "executor": "inline"}
    Path("study.yaml").write_text(yaml.safe_dump({**document, **few}, allow_unicode=True), encoding="utf-8")
    assert main(["run", "study.yaml", "--output", "run"]) == 0
    capsys.readouterr()
    assert main(["explain", "run"]) == 0
    assert " instead of " in capsys.readouterr().out


def test_whole_numbers_with_commas_between_thousands_are_not_fractions(tmp_path):
    rows = [f'{n},"{51494 + 7 * n:,}",{"yes" if n % 3 else "no"}' for n in range(80)]
    path, _, entry = drafted(tmp_path, "\n".join(["age,income,paid", *rows]).encode())
    assert (entry.get("decimal", "."), entry["thousands"]) == (".", ",")
    assert read(path, entry).values["income"][:2].tolist() == [51494, 51501]
    assert decimal_marks_of({"a": ["1,234", "2,000"], "b": ["1,5"]}, ()) == (",", None)


def test_fractions_with_three_decimals_are_not_whole_numbers_with_a_mark_between_thousands(tmp_path):
    """No thousands are written as 0,899."""
    share = [f"0,{899 - 7 * n:03d}" for n in range(80)]
    price = [f"{n % 9 + 1}.{383 + n}" for n in range(80)]
    rows = [f"{s};{p};{'yes' if n % 3 else 'no'}" for n, (s, p) in enumerate(zip(share, price, strict=True))]
    path, _, entry = drafted(tmp_path, "\n".join(["share;price;paid", *rows]).encode())
    found = read(path, entry).values
    assert found["share"][:2].tolist() == [0.899, 0.892]
    assert found["price"][:2].tolist() == [1383, 2384], "the other column has the other mark"
    assert decimal_marks_of({"a": ["0.241", "0.899"], "b": ["1,5", "2,5"]}, ())[0] in ".,"
    assert decimal_marks_of({"a": ["0.241", "0.899"]}, ()) == (".", None)


@pytest.mark.parametrize(
    "numbers",
    [
        [f"{n}e-7" for n in range(1, 81)],
        [f"{n}e-12" for n in range(1, 81)],
        [f"1.0000000{n}" for n in range(10, 90)],
    ],
)
def test_numbers_next_to_whole_ones_are_read_as_they_stand(tmp_path, numbers):
    rows = [f"{number},{n % 7},{'yes' if n % 3 else 'no'}" for n, number in enumerate(numbers)]
    path, _, entry = drafted(tmp_path, "\n".join(["dose,age,paid", *rows]).encode())
    assert read(path, entry).values["dose"].tolist() == [float(number) for number in numbers]


@pytest.mark.parametrize("digits", [1, 3, 6])
def test_times_with_fractions_of_a_second_are_read(tmp_path, digits):
    times = [f"2020-01-06 10:{n % 60:02d}:27.{(37 * n + 1) % 10**digits:0{digits}d}" for n in range(80)]
    rows = [f"{time},{n % 7},{'yes' if n % 3 else 'no'}" for n, time in enumerate(times)]
    path, _, entry = drafted(tmp_path, "\n".join(["at,age,paid", *rows]).encode())
    table = read(path, entry)
    expected = [datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() for time in times]
    assert table.values["at"].tolist() == pytest.approx(expected, rel=0, abs=1e-6)
    (column,) = [column for column in table.columns if column.name == "at"]
    if column.step is not None:
        shown = text_of_number(table.values["at"][0], "time", column.step)
        assert datetime.fromisoformat(shown) == datetime.fromisoformat(times[0])


def test_line_breaks_within_a_cell_are_blanks(tmp_path):
    rows = [f'{n},"first line\nline {n % 2}",{"yes" if n % 3 else "no"}' for n in range(60)]
    path, _, entry = drafted(tmp_path, "\n".join(["age,note,paid", *rows]).encode())
    assert entry["columns"]["note"] == ["first line line 0", "first line line 1"]
    assert len(read(path, entry)) == 60


def test_an_empty_column_at_the_end_is_not_the_class(tmp_path):
    rows = [f"{n % 50},{n % 7},{'yes' if n % 3 else 'no'}," for n in range(60)]
    path, _, entry = drafted(tmp_path, "\n".join(["age,size,paid,", *rows]).encode())
    assert entry["class_column"] == "paid"
    assert entry["columns"][""] == "drop"
    assert list(read(path, entry).values) == ["age", "size"]


def test_unknown_text_in_a_column_of_many_numbers_is_a_missing_value(tmp_path):
    rows = [f"{'n.d.' if n % 14 == 3 else n / 8},{'yes' if n % 3 else 'no'}" for n in range(200)]
    _, _, entry = drafted(tmp_path, "\n".join(["size,paid", *rows]).encode())
    assert "n.d." in entry["missing_marks"]
    assert entry["columns"]["size"] == {"type": "numeric", "step": 0.001}


def test_columns_that_are_left_out_say_why(tmp_path):
    draw = np.random.default_rng(0)
    rows = [
        f"town {draw.integers(1500)},{n % 12 + 1:02d}/{n % 11 + 1:02d}/20{n % 20:02d},{'yes' if n % 3 else 'no'}"
        for n in range(4000)
    ]
    _, text, entry = drafted(tmp_path, "\n".join(["town,day,paid", *rows]).encode())
    assert entry["columns"] == {"town": "drop", "day": "drop"}
    assert "distinct values in 4,000 rows\n" in text
    assert "day and month cannot be told apart: set date_format to '%d/%m/%Y' or '%m/%d/%Y'" in text
