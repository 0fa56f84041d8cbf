"""External explanations in other units: numbers that were scaled for a model, and dates counted as numbers."""

from __future__ import annotations

import warnings
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import cfbench_core
from cfbench_core.errors import ResultWarning, UserError
from cfbench_tabular.datasets.base import from_scikit_learn
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.external_rows import long_rows
from cfbench_tabular.external_units import in_declared_units, warn_of_scaled
from cfbench_tabular.feature_changes import apply, feature_changes
from cfbench_tabular.reading import plain, table_of
from cfbench_tabular.schema import Schema
from cfbench_tabular.sheet import Sheet

BUNCHES = {"iris": load_iris(), "wine": load_wine()}
TABLES = {name: from_scikit_learn(name, bunch) for name, bunch in BUNCHES.items()}
HERE = Path("theirs.csv")


def warned(table, numbers, units):
    """The warnings about complete rows (n, M) as counterfactuals of these units."""
    frame = pd.DataFrame(numbers, columns=[column.name for column in table.columns]).assign(unit=units)
    encoding = Encoding.fit(table, np.arange(0, len(table), 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_scaled(long_rows(frame, table.values, HERE), table, encoding, HERE)
    return [str(one.message) for one in caught if issubclass(one.category, ResultWarning)]


ENOUGH = 8
"""Of fewer rows, all scaled values may also be possible as raw ones."""
ROWS = st.lists(st.integers(0, 149), min_size=1, max_size=30, unique=True)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(TABLES)), ROWS, st.integers(0, 10_000))
def test_scaled_rows_are_reported_and_raw_rows_are_not(name, chosen, seed):
    draw, data = np.random.default_rng(seed), BUNCHES[name].data
    units = np.arange(len(chosen))
    far = data[chosen] + 0.5 * data.std(axis=0) * draw.normal(size=(len(chosen), data.shape[1]))
    for raw in (data[chosen], far):  # other rows of the data set, and rows that may be outside of its range
        assert warned(TABLES[name], raw, units) == []
    readings = ((StandardScaler(), "standardised"), (MinMaxScaler(), "scaled to the range from 0 to 1"))
    for scaler, words in readings if len(chosen) >= ENOUGH else ():
        (message,) = warned(TABLES[name], scaler.fit(data).transform(data)[chosen], units)
        assert message.startswith(f"theirs.csv: values look {words}: ")


def test_the_warning_names_column_and_ranges():
    rows = StandardScaler().fit_transform(BUNCHES["wine"].data)[:40]
    (message,) = warned(TABLES["wine"], rows, np.arange(40))
    alcohol = f"alcohol is from {rows[:, 0].min():.4g} to {rows[:, 0].max():.4g}, in the data set from 11.03 to 14.83"
    assert alcohol in message and message.endswith("Write them in the units of the data set")


@pytest.mark.parametrize("column", range(13))
def test_a_table_that_changes_one_column_within_its_range_is_not_reported(column):
    wine = BUNCHES["wine"].data
    rows = np.full((20, 13), np.nan)
    rows[:, column] = np.linspace(wine[:, column].min(), wine[:, column].max(), 20)
    assert warned(TABLES["wine"], rows, np.arange(20)) == []


def test_a_run_shows_the_warning_and_scores_the_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    config = {
        "suite": "tabular",
        "data": ["iris"],
        "classifiers": ["logistic-regression"],
        "explainers": ["nearest-enemy"],
        "protocol": {"factuals": 5},
        "metrics": ["validity", "feasibility"],
        "executor": "inline",
    }
    own = cfbench_core.run(config, out=tmp_path / "own")
    iris, names = BUNCHES["iris"].data, BUNCHES["iris"].feature_names
    units = own.scores["row"].unique()
    answers = pd.DataFrame(iris[[(unit + 75) % 150 for unit in units]], columns=names).assign(unit=units)
    answers.to_csv(tmp_path / "raw.csv", index=False)
    answers[names] = StandardScaler().fit(iris).transform(answers[names].to_numpy())
    answers.to_csv(tmp_path / "scaled.csv", index=False)
    raw, scaled = (
        cfbench_core.run(config, out=tmp_path / name, explanations=tmp_path / f"{name}.csv")
        for name in ("raw", "scaled")
    )
    assert "look standardised" not in str(raw.cells()[0])
    assert "scaled.csv: values look standardised: sepal length (cm) is from" in str(scaled.cells()[0])
    assert scaled.exit_code == 0 and len(scaled.scores) == len(raw.scores)


# Dates as numbers

DAYS, SECONDS = st.integers(61, 2_958_465), st.integers(-(10**9), 4 * 10**9)
NUMBERS = {
    "day": DAYS,
    "moment": st.integers(61 * 24, 80_000 * 24).map(lambda hour: hour / 24),
    "second": SECONDS,
}
COLUMNS = {
    "day": {"type": "date", "epoch": "spreadsheet"},
    "moment": {"type": "time", "epoch": "spreadsheet"},
    "second": {"type": "time", "epoch": "unix"},
}


def dated(rows):
    """A table with the dates of ``rows`` (day, moment, second as numbers), as it is read from a file."""
    cells = [[*map(repr, row), "ab"[place % 2]] for place, row in enumerate(rows)]
    sheet = Sheet((*COLUMNS, "class"), cells, [f"my.csv:{line}" for line in range(2, 2 + len(rows))])
    schema = Schema(class_column="class", columns=COLUMNS)
    return table_of(plain(sheet, schema), schema, "my")


def texts(table):
    return {
        column.name: np.array([table.text(column, row) for row in range(len(table))])
        for column in table.columns
    }


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(*NUMBERS.values()), min_size=4, max_size=4), st.booleans(), st.booleans())
def test_numbers_of_an_external_table_count_as_in_the_data_file(rows, wide, typed):
    """Rows 2 and 3 are answers to rows 0 and 1; as numbers they are what the data file would say."""
    table = dated(rows)
    cell = float if typed else repr
    if wide:
        given = [
            {"unit": unit, **dict(zip(COLUMNS, map(cell, rows[unit + 2]), strict=True))} for unit in (0, 1)
        ]
    else:
        given = [
            {"unit": unit, "column": name, "value": cell(value)}
            for unit in (0, 1)
            for name, value in zip(COLUMNS, rows[unit + 2], strict=True)
        ]
    converted = in_declared_units(pd.DataFrame(given), table.columns, HERE)
    changes = long_rows(converted, texts(table), HERE)
    encoding = Encoding.fit(table, np.arange(4))
    vectors = encoding.encode(table.values)
    for unit in (0, 1):
        own = changes[changes["unit"] == str(unit)]
        changed = [(name, None, value) for name, value in zip(own["column"], own["value"], strict=True)]
        np.testing.assert_allclose(
            apply(encoding, vectors[unit], changed), vectors[unit + 2], rtol=0, atol=1e-9
        )
        # What a run writes of it is read as the same again, also where the unit of numbers is another.
        written = [
            (one.column, None, one.value)
            for one in feature_changes(encoding, vectors[unit], vectors[unit + 2])
        ]
        frame = pd.DataFrame(written, columns=["column", "level", "value"]).assign(unit=unit, original="x")
        again = in_declared_units(frame, table.columns, HERE)
        pairs = [(name, None, value) for name, value in zip(again["column"], again["value"], strict=True)]
        np.testing.assert_allclose(
            apply(encoding, vectors[unit], pairs), vectors[unit + 2], rtol=0, atol=1e-9
        )


def test_dates_by_the_calendar():
    """Independent of the reader of files: days since 1899-12-30, and the fraction of a day that is left."""
    table = dated([(45000, 45000.5, 0), (45001, 45001.25, 1), (45002, 45002.0, 2), (45003, 45003.0, 3)])
    frame = pd.DataFrame({"unit": [0, 0, 0], "column": [*COLUMNS], "value": ["45123", "45123.75", "86400"]})
    found = in_declared_units(frame, table.columns, HERE)["value"].tolist()
    day = date(1899, 12, 30) + timedelta(days=45123)
    assert found == [
        day.isoformat(),
        datetime(day.year, day.month, day.day, 18).isoformat(),
        "1970-01-02T00:00:00",
    ]


def test_a_fraction_of_a_day_counts_from_the_epoch_of_the_column():
    table = dated([(45000, 45000.5, 0), (45001, 45001.25, 1), (45002, 45002.0, 2), (45003, 45003.0, 3)])
    frame = pd.DataFrame({"unit": [0], "column": ["day"], "value": [45123.5]})
    days = (date(1899, 12, 30) + timedelta(days=45123) - date(1970, 1, 1)).days
    assert float(in_declared_units(frame, table.columns, HERE)["value"].iloc[0]) == days + 0.5
    run = frame.assign(original="2023-03-15", value=[repr(days + 0.5)])  # as a run writes it
    assert float(in_declared_units(run, table.columns, HERE)["value"].iloc[0]) == days + 0.5


def test_a_number_that_is_no_day_is_an_error():
    table = dated([(45000, 45000.5, 0), (45001, 45001.25, 1), (45002, 45002.0, 2), (45003, 45003.0, 3)])
    frame = pd.DataFrame({"unit": [0], "column": ["day"], "value": ["12"]})
    with pytest.raises(
        UserError, match=r"theirs.csv: column 'day': 12 is no day of a spreadsheet \(61 to 2958465\)"
    ):
        in_declared_units(frame, table.columns, HERE)
