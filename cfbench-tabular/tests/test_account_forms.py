"""Amounts as accounts write them, and dates that a file holds as numbers: read as meant, or remarked and left alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_tabular.config_from_csv import csv_document
from cfbench_tabular.reading import read_sheet, table_of
from cfbench_tabular.schema import ColumnPlan, Schema

ROWS = 60
AGES = [str(20 + row % 50) for row in range(ROWS)]
KNOWN = {field.name for field in dataclasses.fields(Schema)}


def written(path, columns):
    names = [*columns, "paid"]
    rows = [
        "\t".join([*cells, "yn"[at % 3 == 0]]) for at, cells in enumerate(zip(*columns.values(), strict=True))
    ]
    path.write_text("\n".join(["\t".join(names), *rows]) + "\n", encoding="utf-8")


def drafted(path, columns):
    """The draft of a file with these columns and a class, its data set, and the table that it reads."""
    written(path, columns)
    document = csv_document(path, None, ["nearest-enemy"])
    data = yaml.safe_load(document)["data"][0]
    schema = Schema(**{key: value for key, value in data.items() if key in KNOWN})
    return document, data, table_of(read_sheet(path, schema), schema, "mine")


def line_of(document, name):
    return next(line for line in document.splitlines() if line.strip().startswith(f"{name}:"))


def amounts(seed):
    return np.random.default_rng(seed).normal(0, 3000, ROWS).round(2)


NEGATIVE = ["$ ({})", "$({})", "({}) €", "({})€", "(₹{})", "CHF ({})"]
POSITIVE = {
    "$ ({})": "$ {}",
    "$({})": "${}",
    "({}) €": "{} €",
    "({})€": "{}€",
    "(₹{})": "₹{}",
    "CHF ({})": "CHF {}",
}


@settings(max_examples=40, deadline=None)
@given(
    form=st.sampled_from(NEGATIVE),
    marks=st.sampled_from([(".", ","), (",", "."), (".", "'"), (",", " ")]),
    zeros=st.integers(0, 5),
    seed=st.integers(0, 50),
)
def test_a_unit_may_stand_outside_of_the_parentheses_of_a_negative_amount(
    tmp_path_factory, form, marks, zeros, seed
):
    values = amounts(seed)
    values[:zeros] = 0.0
    swap = str.maketrans({",": marks[1], ".": marks[0]})
    cells = [
        (form if value < 0 else POSITIVE[form]).format(f"{abs(value):,.2f}".translate(swap))
        for value in values
    ]
    cells[:zeros] = ["0"] * zeros
    _, data, table = drafted(tmp_path_factory.mktemp("signs") / "mine.csv", {"balance": cells, "age": AGES})
    assert data["negatives"] == "parentheses"
    assert data["columns"]["balance"]["unit"] in form
    assert table.values["balance"] == pytest.approx(values)


@pytest.mark.parametrize("first", ["${}", "{} EUR", "{}", "{} kg"])
@pytest.mark.parametrize("second", ["€{}", "{} USD", "{} lb"])
def test_amounts_in_several_units_are_no_column_of_numbers(tmp_path, first, second):
    cells = [(first, second)[row % 2].format(f"{value:,.2f}") for row, value in enumerate(abs(amounts(0)))]
    path = tmp_path / "mine.csv"
    document, data, _ = drafted(path, {"price": cells, "age": AGES})
    assert data["columns"]["price"] == "drop"
    line = line_of(document, "price")
    assert f"mixes units, '{cells[0]}' ({path}:2) and '{cells[1]}' ({path}:3)" in line
    with pytest.raises(UserError, match="column 'price' mixes units") as error:
        csv_document(path, "price", [])
    assert "\n" not in str(error.value)


def test_a_few_numbers_with_several_units_are_levels_with_a_remark(tmp_path):
    periods = [("1h", "1d", "5min")[row % 3] for row in range(ROWS)]
    document, data, table = drafted(tmp_path / "mine.csv", {"period": periods, "age": AGES})
    assert sorted(data["columns"]["period"]) == ["1d", "1h", "5min"]
    assert table.values["period"].tolist() == periods
    assert "mixes units, '1h'" in line_of(document, "period")


def test_units_that_differ_between_columns_are_fine(tmp_path):
    values = abs(amounts(3))
    _, data, table = drafted(
        tmp_path / "mine.csv", {"a": [f"${v:.2f}" for v in values], "b": [f"{v:.2f} €" for v in values]}
    )
    assert (data["columns"]["a"]["unit"], data["columns"]["b"]["unit"]) == ("$", "€")
    assert table.values["a"] == pytest.approx(values) and table.values["b"] == pytest.approx(values)


def in_india(value):
    """Groups of two digits but for the last three."""
    whole, cents = f"{abs(value):.2f}".split(".")
    groups, rest = [whole[-3:]], whole[:-3]
    while rest:
        groups.insert(0, rest[-2:])
        rest = rest[:-2]
    return f"{'-' if value < 0 else ''}{','.join(groups)}.{cents}"


def test_numbers_in_groups_as_in_india():
    assert in_india(1234567.5) == "12,34,567.50" and in_india(-123456) == "-1,23,456.00"


@settings(max_examples=30, deadline=None)
@given(
    scale=st.sampled_from([10, 100, 10_000]),
    unit=st.sampled_from(["{}", "₹{}", "{} INR"]),
    seed=st.integers(0, 50),
)
def test_indian_groups_of_digits_are_read(tmp_path_factory, scale, unit, seed):
    values = (amounts(seed) * scale).round(2)
    values[0] = 123456.75
    cells = [unit.format(in_india(value)) for value in values]
    document, data, table = drafted(
        tmp_path_factory.mktemp("groups") / "mine.csv", {"balance": cells, "age": AGES}
    )
    assert data["thousands"] == ","
    assert table.values["balance"] == pytest.approx(values)
    assert "digits in groups of two, as in India" in line_of(document, "balance")


@pytest.mark.parametrize("cell", ["1,23", "1,2,345", "0,12,345", "1,234,56", "123,45,678", "1,23,45"])
def test_other_commas_are_no_groups(tmp_path, cell):
    cells = [f"{row}.5" for row in range(ROWS)]
    cells[7] = cell
    path = tmp_path / "mine.csv"
    written(path, {"balance": cells, "age": AGES})
    schema = Schema(thousands=",", columns={"balance": "numeric"})
    with pytest.raises(UserError, match=rf"mine\.csv:9: column 'balance': '{cell}' is not a finite number"):
        table_of(read_sheet(path, schema), schema, "mine")


def accounts(seed, zero, negative="({})"):
    """Amounts with a text for every fifth, which is 0, and what they are."""
    values = amounts(seed)
    values[::5] = 0.0
    cells = [zero if v == 0 else (negative if v < 0 else "{}").format(f"{abs(v):,.2f}") for v in values]
    return cells, values


@pytest.mark.parametrize("dash", ["-", "\u2013", "\u2014", "\u2212"])
def test_a_dash_among_amounts_in_parentheses_is_zero_and_remarked(tmp_path, dash):
    cells, values = accounts(1, dash)
    document, data, table = drafted(tmp_path / "mine.csv", {"balance": cells, "age": AGES})
    assert data["columns"]["balance"]["zero"] == dash
    assert "missing" not in data and "missing_marks" not in data
    assert table.values["balance"] == pytest.approx(values)
    assert f"'{dash}' in 12 rows is read as 0, as accounts write it" in line_of(document, "balance")


def test_a_dash_with_a_currency_is_zero_in_whatever_other_column_it_is_missing(tmp_path):
    values = abs(amounts(2))
    paid = ["$-" if row % 7 == 0 else f"${value:,.2f}" for row, value in enumerate(values)]
    rate = ["-" if row % 10 == 0 else f"{row / 8:.3f}" for row in range(ROWS)]
    document, data, table = drafted(tmp_path / "mine.csv", {"amount": paid, "rate": rate})
    assert data["columns"]["amount"] == {"type": "numeric", "step": 0.01, "unit": "$", "zero": "-"}
    known = [row for row in range(ROWS) if row % 10]
    assert table.values["amount"] == pytest.approx([0 if row % 7 == 0 else values[row] for row in known])
    assert table.values["rate"] == pytest.approx([round(row / 8, 3) for row in known])
    assert "'-' in 6 rows counts as missing; if it means 0, set zero: '-'" in line_of(document, "rate")


@pytest.mark.parametrize(("zero", "negative"), [("0.00", "({})"), (None, "-{}")])
def test_a_dash_that_may_be_missing_is_no_zero(tmp_path, zero, negative):
    """Zeros are written as such, or negative amounts are not those of accounts."""
    cells, _ = accounts(1, "-", negative)
    if zero:
        cells[1] = zero
    document, data, table = drafted(tmp_path / "mine.csv", {"balance": cells, "age": AGES})
    assert "-" in data["missing_marks"] and len(table) == ROWS - 12
    assert "'-' in 12 rows counts as missing; if it means 0, set zero: '-'" in line_of(document, "balance")


def test_the_remark_on_a_numbered_column_stays(tmp_path):
    """x1, x2, ... share a line only if there is nothing to say on them."""
    columns = {f"x{place}": AGES for place in range(1, 9)}
    columns["x3"] = ["-" if row % 9 == 0 else str(row) for row in range(ROWS)]
    document, _, _ = drafted(tmp_path / "mine.csv", columns)
    assert "'-' in 7 rows counts as missing" in line_of(document, "x3")
    assert "x4..x8: integer" in document


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([12 * (1 + row % 5) for row in range(ROWS)], "12"),
        ([0.25 * (row % 7) for row in range(ROWS)], "0.25"),
        ([1000 * (row % 9) - 3000 for row in range(ROWS)], "1000"),
        ([12 * (1 + row % 5) + (row == 3) for row in range(ROWS)], ""),
        ([2 * (row % 3) for row in range(ROWS)], ""),
    ],
)
def test_a_step_that_all_numbers_have_is_remarked(tmp_path, values, step):
    document, _, _ = drafted(tmp_path / "mine.csv", {"term": [f"{one:g}" for one in values], "age": AGES})
    remark = f"all are multiples of {step}: if no others can exist, set its step to {step}"
    assert (remark in document) == bool(step)
    assert "all are multiples" not in line_of(document, "age")


DAYS = [str(day) for day in np.random.default_rng(4).integers(20_000, 50_000, ROWS)]


@pytest.mark.parametrize("name", ["birth_date", "Datum", "openedOn", "date of loan", "dob"])
def test_numbers_that_may_be_days_of_a_spreadsheet_stay_numbers_with_a_remark(tmp_path, name):
    document, data, _ = drafted(tmp_path / "mine.csv", {name: DAYS, "income": DAYS})
    assert data["columns"][name] == "integer"
    day = (pd.Timestamp("1899-12-30") + pd.Timedelta(days=int(max(DAYS)))).date()
    expected = (
        f"{max(DAYS)} may be {day}, as spreadsheets count days: then set {{type: date, epoch: spreadsheet}}"
    )
    assert expected in line_of(document, name)
    assert "may be" not in line_of(document, "income")


@settings(max_examples=50, deadline=None)
@given(
    days=st.lists(st.integers(61, 2_958_465), min_size=ROWS, max_size=ROWS), fraction=st.integers(0, 86_399)
)
def test_days_of_a_spreadsheet_are_those_of_pandas(tmp_path_factory, days, fraction):
    path = tmp_path_factory.mktemp("days") / "mine.csv"
    written(
        path, {"seen": [f"{day + fraction / 86_400:.8f}" for day in days], "born": [str(day) for day in days]}
    )
    schema = Schema(
        columns={
            "seen": {"type": "time", "epoch": "spreadsheet"},
            "born": {"type": "date", "epoch": "spreadsheet"},
        }
    )
    table = table_of(read_sheet(path, schema), schema, "mine")
    origin = pd.to_timedelta(days, unit="D") + pd.Timestamp("1899-12-30").as_unit("s")
    since = (origin - pd.Timestamp(0).as_unit("s")).total_seconds().to_numpy()
    assert table.values["born"] == pytest.approx(since / 86_400, abs=0)
    assert table.values["seen"] == pytest.approx(since + fraction, abs=0)


def test_seconds_since_1970_are_read_as_times_if_the_schema_says_so(tmp_path):
    stamps = [str(1_600_000_000 + row * 86_399) for row in range(ROWS)]
    document, data, _ = drafted(tmp_path / "mine.csv", {"created_at": stamps, "age": AGES})
    assert data["columns"]["created_at"] == "integer"
    last = pd.Timestamp(int(stamps[-1]), unit="s").isoformat()
    expected = f"{last}, in seconds since 1970: then set {{type: time, epoch: unix}}"
    assert expected in line_of(document, "created_at")
    schema = Schema(columns={"created_at": {"type": "time", "epoch": "unix"}})
    table = table_of(read_sheet(tmp_path / "mine.csv", schema), schema, "mine")
    assert table.values["created_at"].tolist() == list(map(float, stamps))


def test_months_as_numbers_are_remarked(tmp_path):
    months = [f"{2020 + row % 3}{row % 12 + 1:02d}" for row in range(ROWS)]
    document, _, _ = drafted(tmp_path / "mine.csv", {"period": months, "age": AGES})
    assert "202212 may be a month: then list the months as levels" in line_of(document, "period")


@pytest.mark.parametrize("cell", ["60", "0", "45123.5", "2958466", "soon"])
def test_what_is_no_day_is_an_error_with_its_line(tmp_path, cell):
    """Before March 1900 spreadsheets disagree, and after 9999 they end."""
    path = tmp_path / "mine.csv"
    written(path, {"born": [cell if row == 7 else DAYS[row] for row in range(ROWS)], "age": AGES})
    schema = Schema(columns={"born": {"type": "date", "epoch": "spreadsheet"}})
    with pytest.raises(UserError, match=rf"mine\.csv:9: column 'born': '{cell}' is not a date"):
        table_of(read_sheet(path, schema), schema, "mine")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "date", "epoch": "excel"}, "epoch must be spreadsheet or unix, got 'excel'"),
        ({"type": "numeric", "epoch": "spreadsheet"}, "has the epoch spreadsheet, so its type must be date or time"),
        ({"type": "date", "epoch": "unix"}, "has the epoch unix, so its type must be time"),
        ({"type": "date", "zero": "-"}, "has a zero, so its type must be numeric or integer"),
        ({"type": "numeric", "zero": 0}, "zero must be the text that means 0"),
        ({"levels": ["a", "b"], "zero": "-"}, "has levels, so it cannot have a zero"),
    ],
)  # fmt: skip
def test_entries_that_do_not_fit_the_type_of_the_column_are_refused(entry, message):
    with pytest.raises(UserError, match=message):
        ColumnPlan.of("x", entry)
