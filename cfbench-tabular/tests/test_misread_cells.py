"""Cells that look like numbers, dates or missing values and are none, or are others: read as meant, or remarked."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, timedelta

import pytest
import yaml

from cfbench_core.errors import UserError
from cfbench_tabular.config_from_csv import csv_document
from cfbench_tabular.reading import read_sheet, table_of
from cfbench_tabular.schema import Schema

ROWS = 60
AGES = [str(20 + row % 50) for row in range(ROWS)]
KNOWN = {field.name for field in dataclasses.fields(Schema)}


def drafted(path, columns):
    """The draft of a file with these columns and a class, its data set, and the table that it reads."""
    names = [*columns, "paid"]
    rows = [
        "\t".join([*cells, "yn"[at % 3 == 0]]) for at, cells in enumerate(zip(*columns.values(), strict=True))
    ]
    path.write_text("\n".join(["\t".join(names), *rows]) + "\n", encoding="utf-8")
    document = csv_document(path, None, ["nearest-enemy"])
    data = yaml.safe_load(document)["data"][0]
    schema = Schema(**{key: value for key, value in data.items() if key in KNOWN})
    return document, data, table_of(read_sheet(path, schema), schema, "mine")


def line_of(document, name):
    return next(line for line in document.splitlines() if line.strip().startswith(f"{name}:"))


@pytest.mark.parametrize("cents", ["-", "\u2013"])
def test_a_hyphen_in_place_of_cents_is_no_minus(tmp_path, cents):
    prices = [f"{row},{cents}" if row % 3 else f"{row},50" for row in range(100, 100 + ROWS)]
    balance = [f"{row * 10},25{'-' * (row % 2)}" for row in range(ROWS)]
    document, data, table = drafted(tmp_path / "mine.csv", {"price": prices, "balance": balance})
    assert data["negatives"] == "trailing" and table.values["balance"].min() == -590.25
    assert data["columns"]["price"] == "drop"
    assert f"33% are numbers, '100,{cents}' is not" in line_of(document, "price")


def test_periods_with_an_underscore_are_no_numbers(tmp_path):
    """Python reads 2024_10 as 202410 and 2024_9 as 20249."""
    periods = [("2024_9", "2024_10", "2025_1")[row % 3] for row in range(ROWS)]
    _, data, _ = drafted(tmp_path / "mine.csv", {"period": periods, "age": AGES})
    assert data["columns"]["period"] == ["2024_10", "2024_9", "2025_1"]
    schema = Schema(columns={"period": "numeric"})
    with pytest.raises(UserError, match=r"column 'period': '2024_9' is not a finite number"):
        table_of(read_sheet(tmp_path / "mine.csv", schema), schema, "mine")


@pytest.mark.parametrize(
    ("cell", "read"), [("01067", "1067"), ("00012", "12"), ("1E5", "100000"), ("3e0", "3")]
)
def test_numbers_that_may_be_codes_are_remarked(tmp_path, cell, read):
    codes = [str(10_000 + row * 7) for row in range(ROWS)]
    document, _, _ = drafted(tmp_path / "mine.csv", {"town": codes, "age": AGES})
    assert "is read as" not in line_of(document, "town")
    codes[5] = cell
    document, _, _ = drafted(tmp_path / "mine.csv", {"town": codes, "age": AGES})
    assert f"'{cell}' is read as {read}: if it is a code" in line_of(document, "town")


def test_numbers_of_more_digits_than_are_exact_are_left_out(tmp_path):
    accounts = [str(9_007_199_254_740_993 + row // 2) for row in range(ROWS)]
    document, data, _ = drafted(tmp_path / "mine.csv", {"account": accounts, "age": AGES})
    assert len(set(map(float, accounts))) < len(set(accounts))
    assert data["columns"]["account"] == "drop"
    assert "not exact, such as 9007199254740993" in line_of(document, "account")


@pytest.mark.parametrize("mark", ["-", "missing"])
@pytest.mark.parametrize("levels", [("+", "{}"), ("+", "{}", "++"), ("x", "{}")])
def test_a_sign_of_missing_numbers_may_be_a_level_of_another_column(tmp_path, mark, levels):
    lab = [mark if row % 7 == 0 else f"{row / 4:.1f}" for row in range(ROWS)]
    tests = [levels[row % len(levels)].format(mark) for row in range(ROWS)]
    _, data, table = drafted(tmp_path / "mine.csv", {"lab": lab, "test": tests, "age": AGES})
    assert mark in data["missing_marks"]
    assert sorted(data["columns"]["test"]) == sorted(set(tests))
    remaining = [row for row in range(ROWS) if row % 7]
    assert table.values["test"].tolist() == [tests[row] for row in remaining]
    assert table.values["lab"] == pytest.approx([float(lab[row]) for row in remaining])


def test_a_sign_of_missing_numbers_may_be_a_class(tmp_path):
    path, signs = tmp_path / "mine.csv", ["+-"[row % 3 == 0] for row in range(ROWS)]
    labs = ["-" if row % 7 == 0 else str(row) for row in range(ROWS)]
    path.write_text("lab;result\n" + "".join(f"{lab};{one}\n" for lab, one in zip(labs, signs, strict=True)))
    data = yaml.safe_load(csv_document(path, None, []))["data"][0]
    assert data["classes"] == {"+": "+", "-": "-"}
    schema = Schema(**{key: value for key, value in data.items() if key in KNOWN})
    table = table_of(read_sheet(path, schema), schema, "mine")
    assert table.target.tolist() == [one for row, one in enumerate(signs) if row % 7]


MARKS = ["NULL", "null", "#N/A", "#NA", "n/a", "N/A", "NA", "<NA>", "NaN", "nan", "N.A.", "n.a.", "NaT"]


@pytest.mark.parametrize("mark", MARKS)
def test_signs_of_missing_values_are_no_levels_and_no_classes(tmp_path, mark):
    towns = [mark if row % 7 == 0 else ("Ulm", "Bonn", "Kiel")[row % 3] for row in range(ROWS)]
    answers = [mark if row % 11 == 5 else "yn"[row % 2] for row in range(ROWS)]
    path = tmp_path / "mine.csv"
    cells = zip(AGES, towns, answers, strict=True)
    path.write_text("age;town;paid\n" + "".join(f"{';'.join(row)}\n" for row in cells))
    document = csv_document(path, None, [])
    data = yaml.safe_load(document)["data"][0]
    assert data["columns"]["town"] == ["Bonn", "Kiel", "Ulm"]
    assert f"'{mark}' in 9 rows counts as missing" in line_of(document, "town")
    assert f"'{mark}' in 5 rows counts as missing" in line_of(document, "class_column")
    assert f"(town, paid: '{mark}')" in line_of(document, "missing")
    schema = Schema(**{key: value for key, value in data.items() if key in KNOWN})
    table = table_of(read_sheet(path, schema), schema, "mine")
    remaining = [row for row in range(ROWS) if mark not in (towns[row], answers[row])]
    assert table.values["town"].tolist() == [towns[row] for row in remaining]
    assert table.target.tolist() == [answers[row] for row in remaining]


def test_several_signs_of_missing_values_are_all_listed(tmp_path):
    answers = [("yes", "no", "NULL", "yes", "no", "n/a")[row % 6] for row in range(ROWS - 1)] + ["#N/A"]
    lab = [("#DIV/0!", "-", "\u2013", ".")[row % 4] if row % 5 == 0 else f"{row}.5" for row in range(ROWS)]
    document, data, table = drafted(tmp_path / "mine.csv", {"answer": answers, "lab": lab})
    assert data["columns"]["answer"] == ["no", "yes"]
    assert "'NULL' in 10 rows, 'n/a' in 9 and '#N/A' in 1 count as missing" in line_of(document, "answer")
    remaining = [row for row in range(ROWS) if row % 5 and answers[row] in ("yes", "no")]
    assert table.values["lab"].tolist() == [row + 0.5 for row in remaining]


@pytest.mark.parametrize("mark", ["-", "missing", "Unknown", "--", "not available"])
def test_levels_and_classes_that_may_mean_a_missing_value_are_remarked(tmp_path, mark):
    towns = [mark if row % 7 == 0 else ("Ulm", "Bonn")[row % 2] for row in range(ROWS)]
    document, data, _ = drafted(tmp_path / "mine.csv", {"town": towns, "age": AGES})
    assert mark in data["columns"]["town"]
    remark = f"if '{mark}' in 9 rows means a missing value, add it to missing_marks"
    assert remark in line_of(document, "town")
    path = tmp_path / "other.csv"
    path.write_text("age;town\n" + "".join(f"{age};{town}\n" for age, town in zip(AGES, towns, strict=True)))
    assert remark in line_of(csv_document(path, None, []), "class_column")


def test_a_class_next_to_missing_ones_alone_is_no_class(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("age;paid\n" + "".join(f"{row};{('yes', 'n/a')[row % 2]}\n" for row in range(ROWS)))
    with pytest.raises(UserError, match=r"every row has 'yes', or a sign of a missing value: 'n/a'"):
        csv_document(path, None, [])


def test_classes_that_differ_in_case_or_count_as_missing_are_remarked(tmp_path):
    path = tmp_path / "mine.csv"
    for classes, remark in [
        (("Yes", "yes", "No"), "'Yes' and 'yes' differ in case only"),
        (("None", "mild", "severe"), "'None' in 20 rows counts as missing; list it if it is a class"),
    ]:
        path.write_text("age;risk\n" + "".join(f"{row};{classes[row % 3]}\n" for row in range(ROWS)))
        assert remark in line_of(csv_document(path, None, []), "class_column")
    schema = Schema(class_column="risk", classes={one: one.lower() for one in classes})
    assert sorted(set(table_of(read_sheet(path, schema), schema, "mine").target)) == [
        "mild",
        "none",
        "severe",
    ]


@pytest.mark.parametrize(
    ("first", "years", "century"), [(40, 50, 1900), (40, 60, 1900), (61, 8, 1900), (24, 12, 2000)]
)
@pytest.mark.parametrize("time", ["", " 14:30"])
def test_years_with_two_digits_are_of_the_century_that_keeps_the_dates_together(
    tmp_path, first, years, century, time
):
    """People are born before this year; contracts, some of which began before, end after it."""
    days = [date(century + first + row * 7 % years, row % 12 + 1, row % 28 + 1) for row in range(ROWS)]
    cells = [f"{day:%d.%m.%y}{time}" for day in days]
    document, data, table = drafted(tmp_path / "mine.csv", {"born": cells, "age": AGES})
    assert ("last_year" in data) == (century == 1900)
    unit = 86_400 if time else 1
    assert table.values["born"].tolist() == [
        (day - date(1970, 1, 1)).days * unit + (14.5 * 3600 if time else 0) for day in days
    ]
    latest = max(days)
    assert f"'{latest:%d.%m.%y}{time}' is read as {latest}" in line_of(document, "born")


def test_dates_of_the_file_with_four_digits_say_how_late_others_may_be(tmp_path):
    ends = [f"{row % 28 + 1:02d}.05.{60 + row % 9}" for row in range(ROWS)]
    signed = [f"{2061 + row % 9}-03-{row % 28 + 1:02d}" for row in range(ROWS)]
    document, data, _ = drafted(tmp_path / "mine.csv", {"end": ends, "signed": signed})
    assert "last_year" not in data and "is read as 2068-05-" in line_of(document, "end")
    document, data, _ = drafted(tmp_path / "mine.csv", {"end": ends, "age": AGES})
    assert "last_year" in data and "is read as 1968-05-" in line_of(document, "end")


def test_the_last_year_is_what_the_schema_says(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("at,y\n" + "".join(f"05.06.{year:02d},{'pq'[year % 2]}\n" for year in range(100)))
    for last in (1999, 2026, 2099):
        schema = Schema(columns={"at": "date"}, date_format="%d.%m.%y", last_year=last)
        table = table_of(read_sheet(path, schema), schema, "mine")
        expected = [date(next(y for y in range(last, 0, -1) if y % 100 == year), 6, 5) for year in range(100)]
        assert table.values["at"].tolist() == [(day - date(1970, 1, 1)).days for day in expected]


def test_times_without_a_zone_among_others_are_remarked(tmp_path):
    seen = [f"2025-03-{row % 28 + 1:02d}T10:{row:02d}:00" + "+02:00" * (row > 3) for row in range(ROWS)]
    document, _, table = drafted(tmp_path / "mine.csv", {"seen": seen, "age": AGES})
    assert f"'{seen[0]}' has no time zone, as '{seen[4]}' has, and is read as UTC" in line_of(
        document, "seen"
    )
    assert table.values["seen"][0] - table.values["seen"][28] == 2 * 3600 - 28 * 60
    document, _, _ = drafted(tmp_path / "mine.csv", {"seen": seen[4:] + seen[4:8], "age": AGES})
    assert "time zone" not in document


def test_a_time_that_is_none_is_named(tmp_path):
    """Banks write 24:00 for the end of a day."""
    seen = [f"{row % 28 + 1:02d}/05/2025 {24 if row == 30 else row % 24:02d}:00" for row in range(ROWS)]
    document, _, _ = drafted(tmp_path / "mine.csv", {"seen": seen, "age": AGES})
    assert f"'{seen[30]}' is none: correct it to use the column" in line_of(document, "seen")


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (lambda number: f"{number:,}".replace(",", "."), 1_234_567),
        (lambda number: f"{number:,}.5".replace(",", "\u2019"), 1_234_567.5),
        (lambda number: f"{number:,},5".replace(",", "\u2009", 2), 1_234_567.5),
        (lambda number: f"{number:,},5".replace(",", "\u202f", 2), 1_234_567.5),
        (lambda number: f"{number} %" if number > 1_234_567 + 5 else "0", 0),
    ],
)
def test_more_marks_between_thousands_and_a_zero_without_its_unit(tmp_path, write, value):
    numbers = [1_234_567 + row * 1000 for row in range(ROWS)]
    _, _, table = drafted(tmp_path / "mine.csv", {"amount": list(map(write, numbers)), "age": AGES})
    assert table.values["amount"].tolist() == [
        value + row * 1000 if value else (numbers[row] if row else 0) for row in range(ROWS)
    ]


def test_months_between_hyphens_are_dates(tmp_path):
    first = datetime(2019, 1, 1, tzinfo=UTC)
    days = [first + timedelta(days=37 * row) for row in range(ROWS)]
    _, data, table = drafted(
        tmp_path / "mine.csv", {"hired": [f"{day:%d-%b-%Y}".upper() for day in days], "age": AGES}
    )
    assert data["date_format"] == "%d-%b-%Y"
    assert (table.values["hired"] * 86_400).tolist() == [day.timestamp() for day in days]


@pytest.mark.parametrize("distinct", [20, ROWS])
def test_a_unit_that_is_not_known_is_remarked_and_can_be_set(tmp_path, distinct):
    values = [5 + row % distinct for row in range(ROWS)]
    cells = [f"{value} mg/dL" for value in values]
    document, _, _ = drafted(tmp_path / "mine.csv", {"lab": cells, "age": AGES})
    assert "set {type: numeric, unit: mg/dL}" in line_of(document, "lab")
    schema = Schema(columns={"lab": {"type": "numeric", "unit": "mg/dL"}})
    table = table_of(read_sheet(tmp_path / "mine.csv", schema), schema, "mine")
    assert table.values["lab"].tolist() == values
    for codes in (["3 of 5", "4 of 5"], [f"{row}{'ab'[row % 2]}" for row in range(ROWS)], ["1st", "2nd"]):
        own = [codes[row % len(codes)] for row in range(ROWS)]
        document, _, _ = drafted(tmp_path / "mine.csv", {"code": own, "age": AGES})
        assert "behind them" not in line_of(document, "code")


def test_the_last_day_of_all_is_remarked_and_a_day_that_is_none_is_named(tmp_path):
    until = ["31.12.9999" if row % 6 == 0 else f"{row % 28 + 1:02d}.05.2024" for row in range(ROWS)]
    document, _, _ = drafted(tmp_path / "mine.csv", {"until": until, "age": AGES})
    assert "'31.12.9999' in 10 rows: if it means a missing value" in line_of(document, "until")
    born = [
        "0000-00-00" if row == 7 else f"2024-{row % 12 + 1:02d}-{row % 28 + 1:02d}" for row in range(ROWS)
    ]
    document, _, _ = drafted(tmp_path / "mine.csv", {"born": born, "age": AGES})
    assert "but '0000-00-00' is none: correct it" in line_of(document, "born")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "signs", [("inf",), ("-inf", "inf"), ("Infinity", "-Infinity", "+inf", "INF"), ("∞",)]
)
@pytest.mark.parametrize("every", [2, 9])
def test_infinities_among_numbers_are_missing_values_with_a_remark(tmp_path, signs, every):
    ratios = [
        signs[row // every % len(signs)] if row % every == 1 else f"{row}.{row % 10}25" for row in range(ROWS)
    ]
    document, data, table = drafted(tmp_path / "mine.csv", {"ratio": ratios, "age": AGES})
    remaining = [row for row in range(ROWS) if row % every != 1]
    assert table.values["ratio"].tolist() == [float(ratios[row]) for row in remaining]
    line = line_of(document, "ratio")
    assert data["missing"] == "drop"
    assert f"infinite, read as missing (first: {tmp_path / 'mine.csv'}:3)" in line
    assert all(repr(sign) in line for sign in signs)
    assert f"# {min(float(ratios[row]) for row in remaining):g} to" in line


def test_an_infinity_among_words_is_a_level(tmp_path):
    kinds = [("inf", "acc", "dat")[row % 3] for row in range(ROWS)]
    _, data, _ = drafted(tmp_path / "mine.csv", {"kind": kinds, "age": AGES})
    assert data["columns"]["kind"] == ["acc", "dat", "inf"]


def test_a_column_of_infinities_for_the_most_part_is_left_out_and_says_so(tmp_path):
    ratios = ["inf" if row % 3 else f"{row}.5" for row in range(ROWS)]
    document, data, _ = drafted(tmp_path / "mine.csv", {"ratio": ratios, "age": AGES})
    assert data["columns"]["ratio"] == "drop"
    assert "missing in 67% of the rows ('inf'); give its type" in line_of(document, "ratio")


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda row: f"10.0.{row}.{row}", "digits and marks, but '10.0.0.0' is not written as a number"),
        (
            lambda row: f"+49 3153577{row:02d}",
            "digits and marks, but '+49 315357700' is not written as a number",
        ),
        (
            lambda row: f"1'6{row:02d},86",
            "the decimal mark ',' and \"'\" between thousands, which are not those",
        ),
        (
            lambda row: f"1.6{row:02d},86" if row % 2 else f"1 6{row:02d},86",
            "different marks: write all in the",
        ),
        (lambda row: f"{row}e999", "digits and marks, but '10e999' is too large"),
    ],
)
def test_why_digits_and_marks_are_no_numbers_is_true(tmp_path, write, reason):
    path = tmp_path / "mine.csv"
    rates = [[f"{row / 4}", f"{row + 1}.75", f"{row}.5"] for row in range(ROWS)]
    rows = "".join(f"{write(row)};{';'.join(rates[row])};{'yn'[row % 3 == 0]}\n" for row in range(ROWS))
    path.write_text("text;rate;share;part;paid\n" + rows)
    document = csv_document(path, None, [])
    line = line_of(document, "text")
    assert line.strip().startswith("text: drop") and reason in line
    assert "if these are dates" not in line and "thousands:" not in document
