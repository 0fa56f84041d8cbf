"""Numbers, dates and times as other programs write them: drafted, explained in the draft, and read as what they mean."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_tabular.config_from_csv import csv_document
from cfbench_tabular.reading import read_sheet, table_of
from cfbench_tabular.schema import Schema

ROWS = 60
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


def amounts(seed, rows=ROWS):
    return np.random.default_rng(seed).normal(0, 3000, rows).round(2)


def money(value, decimal=".", thousands=","):
    return f"{abs(value):,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))


NEGATIVE = {
    "minus": lambda text: f"-{text}",
    "typographic": lambda text: f"\u2212{text}",
    "parentheses": lambda text: f"({text})",
    "trailing": lambda text: f"{text}-",
}
UNITS = ["{}", "{} €", "€{}", "{}%", "CHF {}"]


@settings(max_examples=60, deadline=None)
@given(
    sign=st.sampled_from([*NEGATIVE]),
    marks=st.sampled_from([(".", ","), (",", "."), (",", " "), (".", "'"), (",", "'"), (".", ""), (",", "")]),
    unit=st.sampled_from(UNITS),
    gaps=st.integers(0, 5),
    seed=st.integers(0, 50),
)
def test_negative_amounts_are_the_same_however_they_are_written(
    tmp_path_factory, sign, marks, unit, gaps, seed
):
    values = amounts(seed)
    cells = [unit.format(money(value, *marks)) for value in values]
    cells = [NEGATIVE[sign](cell) if value < 0 else cell for cell, value in zip(cells, values, strict=True)]
    cells[:gaps] = ["n/a"] * gaps
    path = tmp_path_factory.mktemp("signs") / "mine.csv"
    document, data, table = drafted(
        path, {"balance": cells, "age": [str(20 + row % 50) for row in range(ROWS)]}
    )
    assert table.values["balance"] == pytest.approx(values[gaps:])
    if sign != "minus":
        example = next(cell for cell, value in zip(cells[gaps:], values[gaps:], strict=True) if value < 0)
        assert "is read as -" in line_of(document, "balance"), example
    assert data.get("negatives", "minus") == (sign if sign in ("parentheses", "trailing") else "minus")


def test_numbers_in_parentheses_only_are_no_negative_numbers(tmp_path):
    """Footnotes or codes."""
    codes = [f"({1 + row % 4})" for row in range(ROWS)]
    _, data, table = drafted(tmp_path / "mine.csv", {"note": codes, "age": [str(row) for row in range(ROWS)]})
    assert "negatives" not in data
    assert data["columns"]["note"] == ["(1)", "(2)", "(3)", "(4)"]
    assert set(table.values["note"]) == set(codes)


LIMITS = [("<5", 5), (">100", 100), ("< 5,0", 5), (">= 100", 100), ("≤5", 5), ("100+", 100)]


@settings(max_examples=40, deadline=None)
@given(
    limits=st.lists(st.sampled_from(LIMITS), min_size=1, max_size=3, unique=True),
    unit=st.sampled_from(["{}", "{} mg"]),
    seed=st.integers(0, 50),
    places=st.sets(st.integers(0, ROWS - 1), min_size=3, max_size=12),
)
def test_limits_among_numbers_are_read_as_the_limit_and_remarked(
    tmp_path_factory, limits, unit, seed, places
):
    values = np.random.default_rng(seed).uniform(5, 100, ROWS).round(1)
    decimal = "," if any("," in text for text, _ in limits) else "."
    cells = [unit.format(f"{value:.1f}".replace(".", decimal)) for value in values]
    expected = values.copy()
    for order, place in enumerate(sorted(places)):
        text, limit = limits[order % len(limits)]
        cells[place], expected[place] = (text if text.endswith("+") else unit.format(text)), limit
    mixed_units = unit != "{}" and any(text.endswith("+") for text, _ in limits)
    path = tmp_path_factory.mktemp("limits") / "mine.csv"
    document, data, table = drafted(path, {"lab": cells, "age": [str(20 + row % 50) for row in range(ROWS)]})
    if mixed_units:  # 100+ without the unit of the others: not read as numbers, and said so
        assert data["columns"]["lab"] == "drop" or isinstance(data["columns"]["lab"], list)
        return
    assert data["censored"] == "limit"
    assert table.values["lab"] == pytest.approx(expected)
    assert "inferred for lab: limits among numbers" in document
    assert "is read as" in line_of(document, "lab")
    schema = Schema(
        **{key: value for key, value in data.items() if key in KNOWN}
        | {"censored": "missing", "missing": "drop"}
    )
    without = table_of(read_sheet(path, schema), schema, "mine")
    assert without.values["lab"] == pytest.approx(np.delete(values, sorted(places)))


def test_limits_are_levels_where_there_are_few_numbers_next_to_them(tmp_path):
    cells = [("0", "1", "2", ">2")[row % 4] for row in range(ROWS)]
    _, data, _ = drafted(tmp_path / "mine.csv", {"children": cells, "age": [str(row) for row in range(ROWS)]})
    assert "censored" not in data and data["columns"]["children"] == ["0", "1", "2", ">2"]


def test_a_run_refuses_what_the_schema_does_not_say_and_hints_at_the_option(tmp_path):
    path = tmp_path / "mine.csv"
    for cell, option in [("<5", "censored: limit"), ("(5)", "negatives: parentheses"), ("5-", "negatives: trailing"),
                         ("1,5", "(decimal)")]:  # fmt: skip
        path.write_text(f"lab;paid\n7;yes\n8;no\n{cell};no\n9;yes\n")
        schema = Schema(columns={"lab": "numeric"})
        with pytest.raises(UserError, match=r"mine\.csv:4: column 'lab': .* is not a finite number") as error:
            table_of(read_sheet(path, schema), schema, "mine")
        assert option in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("distinct", [4, ROWS])
def test_mixed_decimal_marks_are_refused_with_column_and_rows(tmp_path, distinct):
    values = [1.5 + row % distinct for row in range(ROWS)]
    cells = [
        f"{value:.1f}".replace(".", ",") if row >= 20 else f"{value:.1f}" for row, value in enumerate(values)
    ]
    document, data, _ = drafted(
        tmp_path / "mine.csv", {"weight": cells, "age": [str(20 + row % 50) for row in range(ROWS)]}
    )
    assert data["columns"]["weight"] == "drop"
    first, second = f"'{cells[0]}'", f"'{cells[20]}'"
    line = line_of(document, "weight")
    assert f"mixes decimal marks, {first}" in line and "mine.csv:2)" in line
    assert f"and {second}" in line and "mine.csv:22)" in line
    path = tmp_path / "mine.csv"
    with pytest.raises(UserError, match=r"column 'weight' mixes decimal marks, '1\.5'"):
        csv_document(path, "weight", [])


TIMES = {
    "%d.%m.%Y %H:%M": 60,
    "%d.%m.%Y %H:%M:%S": 1,
    "%d.%m.%Y, %H:%M": 60,
    "%d/%m/%Y %H:%M": 60,
    "%m/%d/%Y %H:%M": 60,
    "%m/%d/%Y %I:%M %p": 60,
    "%d/%m/%Y %I:%M:%S %p": 1,
    "%Y/%m/%d %H:%M": 60,
    "%Y-%m-%d %I:%M %p": 60,
    "%d-%m-%Y %H:%M": 60,
    "%Y-%m-%d %H:%M:%S": 1,
    "%Y-%m-%dT%H:%M": 60,
}


@settings(max_examples=40, deadline=None)
@given(form=st.sampled_from([*TIMES]), seed=st.integers(0, 50), with_days=st.booleans())
def test_times_are_read_in_any_common_form_or_said_to_be_ambiguous(tmp_path_factory, form, seed, with_days):
    draw, first = np.random.default_rng(seed), datetime(2019, 1, 1, tzinfo=UTC)
    seconds = draw.integers(0, 3 * 365 * 86_400 // TIMES[form], ROWS) * TIMES[form]
    moments = [first + timedelta(seconds=int(one)) for one in seconds]
    columns = {
        "seen": [moment.strftime(form) for moment in moments],
        "age": [str(20 + row % 50) for row in range(ROWS)],
    }
    if with_days:
        columns["born"] = [moment.strftime("%d.%m.%Y") for moment in moments]
    document, data, table = drafted(tmp_path_factory.mktemp("times") / "mine.csv", columns)
    assert data["columns"]["seen"] == "time"
    assert table.values["seen"].tolist() == [moment.timestamp() for moment in moments]
    if with_days:
        midnights = [moment.replace(hour=0, minute=0, second=0) for moment in moments]
        assert (table.values["born"] * 86_400).tolist() == [moment.timestamp() for moment in midnights]
    if "time_format" in data:
        assert data["time_format"] == form
        assert "the only format that fits all times" in document


@pytest.mark.parametrize("time", ["", " 14:30"])
@pytest.mark.parametrize("days", [4, 12])
def test_days_that_cannot_be_told_from_months_are_not_read_and_said_to_be_so(tmp_path, time, days):
    cells = [f"{row % days + 1:02d}/{row % 11 + 1:02d}/20{row % 20:02d}{time}" for row in range(ROWS)]
    document, data, _ = drafted(
        tmp_path / "mine.csv", {"seen": cells, "age": [str(20 + row % 50) for row in range(ROWS)]}
    )
    assert "date_format" not in data and "time_format" not in data
    assert data["columns"]["seen"] not in ("date", "time")
    line = line_of(document, "seen")
    assert "day and month cannot be told apart" in line
    assert ("time_format" if time else "date_format") in line and "'%d/%m/%Y" in line and "'%m/%d/%Y" in line


def test_numbers_that_may_be_thousands_are_remarked(tmp_path):
    age = [str(20 + row % 50) for row in range(ROWS)]
    point = [f"{1 + row % 9}.{100 + row * 7}" for row in range(ROWS)]
    document, _, table = drafted(tmp_path / "mine.csv", {"pay": point, "age": age})
    assert "'1.100' may also mean 1100: then set thousands to '.'" in line_of(document, "pay")
    assert table.values["pay"][0] == 1.1
    comma = [text.replace(".", ",") for text in point]
    document, _, table = drafted(tmp_path / "mine.csv", {"pay": comma, "age": age})
    assert "'1,100' is read as 1100: if it has decimals, set decimal to ','" in line_of(document, "pay")
    assert table.values["pay"][0] == 1100


AGES = [str(20 + row % 50) for row in range(ROWS)]


def test_dashes_are_minus_signs_in_front_of_numbers_and_missing_values_alone(tmp_path):
    cells = ["\u2013" if row % 9 == 0 else f"\u2013{row}" if row % 2 else str(row) for row in range(ROWS)]
    document, data, table = drafted(tmp_path / "mine.csv", {"balance": cells, "age": AGES})
    assert "\u2013" in data["missing_marks"]
    expected = [-row if row % 2 else row for row in range(ROWS) if row % 9]
    assert table.values["balance"].tolist() == expected
    assert "'\u20131' is read as -1" in line_of(document, "balance")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("01.02.2020 10:15", "13.02.2020", "dates in two forms, '01.02.2020 10:01' and '13.02.2020'"),
        ("13.02.2020 10:15", "13.02.2020 10:15:30", "dates in two forms"),
        ("10:15", "11:30", "times of day, which are no type of a column"),
    ],
)
def test_dates_that_are_not_read_are_dropped_with_the_reason(tmp_path, first, second, message):
    pairs = [(first, second)[row % 2] for row in range(ROWS)]
    cells = [
        f"{cell[:-2]}{(int(cell[-2:]) + row) % 60:02d}" if ":" in cell else cell
        for row, cell in enumerate(pairs)
    ]
    document, data, _ = drafted(tmp_path / "mine.csv", {"seen": cells, "age": AGES})
    assert data["columns"]["seen"] == "drop" or isinstance(data["columns"]["seen"], list)
    assert message in line_of(document, "seen")


def test_a_column_with_other_dates_than_the_rest_of_the_file_says_so(tmp_path):
    german = [f"{row % 28 + 1:02d}.{row % 12 + 1:02d}.2020 10:{row:02d}" for row in range(ROWS)]
    american = [f"{row % 12 + 1:02d}/{row % 28 + 1:02d}/2020 10:{row:02d}" for row in range(ROWS)]
    document, data, _ = drafted(tmp_path / "mine.csv", {"seen": german, "paid_on": american})
    assert (data["columns"]["seen"], data["columns"]["paid_on"]) == ("time", "drop")
    assert "'%m/%d/%Y %H:%M', which is not the time_format of the file" in line_of(document, "paid_on")


def test_a_number_with_three_decimals_among_others_is_read_as_thousands_and_remarked(tmp_path):
    cells = ["12,700" if row == 31 else f"{row}.5" for row in range(ROWS)]
    document, _, table = drafted(tmp_path / "mine.csv", {"weight": cells, "age": AGES})
    assert table.values["weight"][31] == 12700
    assert "'12,700' is read as 12700" in line_of(document, "weight")


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "1-", "2+", "2", "2-", "3+"],
        [f"{at}{sign}" for at in range(13) for sign in ("", "-")],
        ["A1", "A1-", "A2", "A2-"],
        ["\u22121", "1"],
        ["(1)", "2", "(3)"],
    ],
)
def test_grades_and_codes_are_levels_in_the_draft_and_in_the_run(tmp_path, cells):
    column = [cells[row % len(cells)] for row in range(ROWS)]
    _, data, table = drafted(tmp_path / "mine.csv", {"grade": column, "age": AGES})
    assert "negatives" not in data
    assert sorted(data["columns"]["grade"]) == sorted(cells)
    assert table.values["grade"].tolist() == column


@settings(max_examples=60, deadline=None)
@given(
    mark=st.sampled_from([".", ",", "'", " "]),
    unit=st.sampled_from(UNITS),
    largest=st.sampled_from([3000, 30_000, 3_000_000]),
    seed=st.integers(0, 50),
)
def test_whole_numbers_with_thousands_are_never_a_thousand_times_smaller(
    tmp_path_factory, mark, unit, largest, seed
):
    draw = np.random.default_rng(seed)
    numbers = [*draw.integers(100, 1000, 5), *draw.integers(1, largest // 10, ROWS - 10) * 10]
    numbers += [1230, 45_670, 2020, *((9_876_540, 1_000_000) if largest > 30_000 else (7890, 99_990))]
    cells = [unit.format(f"{number:,}".replace(",", mark)) for number in numbers]
    path = tmp_path_factory.mktemp("thousands") / "mine.csv"
    _, data, table = drafted(path, {"pay": cells, "age": [str(20 + row % 50) for row in range(ROWS)]})
    assert table.values["pay"].tolist() == numbers
    assert data["thousands"] == mark


@pytest.mark.parametrize("unit", ["{}", "{} €"])
def test_points_between_thousands_are_inferred_from_smaller_numbers_without_them(tmp_path, unit):
    """22.300 has a trailing zero, so fractions would have three decimals everywhere; 957 has none."""
    numbers = [957, 22_300, 15_101, 9656, 104, *range(2050, 2050 + 10 * (ROWS - 5), 10)]
    cells = [unit.format(f"{number:,}".replace(",", ".")) for number in numbers]
    age = [str(20 + row % 50) for row in range(ROWS)]
    document, data, table = drafted(tmp_path / "mine.csv", {"pay": cells, "age": age})
    assert (data["decimal"], data["thousands"]) == (",", ".")
    assert table.values["pay"].tolist() == numbers
    assert "the numbers of pay have it from 1.000 on, smaller ones have no mark" in line_of(
        document, "thousands"
    )
    assert "'22.300' is read as 22300" in line_of(document, "pay")
    assert "if it has decimals" not in document


FRACTIONS = {
    "below one": lambda row: f"{row % 9}.{row * 13 % 1000:03d}" if row % 2 else str(row + 100),
    "no trailing zero": lambda row: f"{row + 1}.{row * 10 + 101}" if row % 2 else str(row + 100),
    "all with three": lambda row: f"{row + 1}.{row * 10 + 100}",
    "whole numbers above": lambda row: f"{row + 1}.{row * 10 + 100}" if row % 2 else str(row + 1000),
    "other decimals": lambda row: f"{row + 1}.{row * 10 + 100}" if row % 5 else f"{row + 100}.5",
    "few": lambda row: f"{row + 1}.{row * 10 + 100}" if row < 4 else str(row + 100),
    "small whole numbers": lambda row: f"{row + 1}.{row * 10 + 100}" if row % 2 else str(row % 9 + 1),
}


@pytest.mark.parametrize("name", FRACTIONS)
@pytest.mark.parametrize("unit", ["{}", "{} kg"])
def test_fractions_with_three_decimals_stay_fractions(tmp_path, name, unit):
    cells = [FRACTIONS[name](row) for row in range(ROWS)]
    age = [str(20 + row % 50) for row in range(ROWS)]
    document, data, table = drafted(
        tmp_path / "mine.csv", {"mass": [unit.format(cell) for cell in cells], "age": age}
    )
    assert "thousands" not in data
    assert table.values["mass"].tolist() == [float(cell) for cell in cells]
    may_be = name in ("no trailing zero", "all with three", "few", "small whole numbers")
    assert ("set thousands to '.'" in line_of(document, "mass")) == may_be


def test_another_column_with_a_decimal_point_leaves_the_remark(tmp_path):
    pay = ["957", "104", *(f"{row + 1}.{row * 10 + 100}" for row in range(ROWS - 2))]
    rate = [f"0.{row + 10}" for row in range(ROWS)]
    document, data, table = drafted(tmp_path / "mine.csv", {"pay": pay, "rate": rate})
    assert "thousands" not in data and table.values["rate"][0] == 0.1
    assert "'1.100' may also mean 1100: then set thousands to '.'" in line_of(document, "pay")
