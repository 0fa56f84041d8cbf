"""The originals of external explanations are compared with the data set, whatever the type of their column."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.external_originals import check_originals
from cfbench_tabular.external_rows import long_rows
from cfbench_tabular.external_units import in_declared_units
from cfbench_tabular.feature_changes import feature_changes
from cfbench_tabular.file_rows import FileRows
from cfbench_tabular.table import Column, Table

HERE = Path("theirs.csv")
KINDS = (
    Column("whole", step=1.0),
    Column("real"),
    Column("day", step=1.0, format="date", epoch="spreadsheet"),
    Column("member", "categorical", ("no", "yes")),
    Column("town", "categorical", ("Bonn", "Kiel", "Köln")),
    Column("grade", "categorical", ("low", "middle", "high"), ordered=True),
)
LEFT_OUT = {0: "it is empty", 3: "its 'whole' is missing", 4: "its 'real' is missing"}


def table_of_all_kinds(seed):
    """30 rows, the rows 1, 2, 5, 6, ... of their file."""
    draw = np.random.default_rng(seed)
    values = {
        "whole": draw.permutation(30).astype(float),
        "real": draw.normal(1000, 300, size=30),
        "day": 19_000.0 + draw.permutation(30),
        **{c.name: draw.choice(np.array(c.levels, dtype=object), size=30) for c in KINDS[3:]},
    }
    target = np.array(["a", "b"] * 15, dtype=object)
    return Table("all kinds", KINDS, values, target, file_rows=FileRows.without(LEFT_OUT, 33))


def checked(table, rows):
    frame = pd.DataFrame(rows, columns=["unit", "column", "level", "original", "value"])
    found = long_rows(in_declared_units(frame, KINDS, HERE), table.values, HERE, table.file_rows)
    check_originals(found, table, HERE)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(0, 29), st.integers(0, 29), st.booleans())
def test_changes_of_a_row_agree_with_it_and_not_with_another(seed, index, other, between):
    table = table_of_all_kinds(seed)
    encoding = Encoding.fit(table, np.arange(30))
    vectors, draw = encoding.encode(table.values), np.random.default_rng(seed)
    found = vectors[other] + (draw.uniform(0.1, 0.4, size=vectors.shape[1]) if between else 0.0)
    changes = feature_changes(encoding, vectors[index], found)
    row, wrong = (int(table.file_rows.in_file(place)) for place in (index, other))
    checked(table, [(row, c.column, c.level, c.original, c.value) for c in changes])
    differing = [
        c
        for c in changes
        if (table.values[c.column][index] != table.values[c.column][other])
        and (c.level is None or c.level in (table.values[c.column][index], table.values[c.column][other]))
    ]
    for c in differing:
        with pytest.raises(UserError, match=f"row {wrong}: column '{c.column}': its original is "):
            checked(table, [(wrong, c.column, c.level, c.original, c.value)])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(0, 29))
def test_days_count_as_in_the_file_or_are_dates(seed, index):
    table = table_of_all_kinds(seed)
    row, days = int(table.file_rows.in_file(index)), int(table.values["day"][index])
    day = date(1970, 1, 1) + timedelta(days=days)
    serial = (day - date(1899, 12, 30)).days  # as a spreadsheet counts
    for original in (day.isoformat(), str(serial), serial):
        checked(table, [(row, "day", None, original, "2026-01-01")])
    later = (day + timedelta(days=1)).isoformat()
    with pytest.raises(UserError, match=f"row {row}: column 'day': its original is '{later}', .* has {day}"):
        checked(table, [(row, "day", None, str(serial + 1), "2026-01-01")])


@pytest.mark.parametrize("original", ["much", "Bonn", np.nan, None, ""])
def test_text_is_no_number_and_an_empty_cell_is_not_compared(original):
    rows = [(1, "whole", None, original, "3")]
    if isinstance(original, str) and original:
        with pytest.raises(UserError, match=f"row 1: column 'whole': its original is '{original}'"):
            checked(table_of_all_kinds(0), rows)
    else:
        checked(table_of_all_kinds(0), rows)


def test_numbers_of_single_precision_agree():
    table = table_of_all_kinds(1)
    rows = [
        (int(table.file_rows.in_file(index)), "real", None, np.float32(table.values["real"][index]), 5.0)
        for index in range(30)
    ]
    checked(table, rows)
