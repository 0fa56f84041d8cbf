"""No cell of a CSV file is a formula for a spreadsheet, and every text comes back."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.csv_cells import FORMULA, protected, protected_frame, unprotected

cells = st.text(st.sampled_from("=+-@'1.\t\raé ")) | st.text()


@given(cells)
def test_a_protected_cell_is_a_number_or_no_formula_and_comes_back(cell: str) -> None:
    safe = protected(cell)
    assert unprotected(safe) == cell
    if safe.startswith(FORMULA):
        float(safe)


def test_numbers_and_plain_text_stay_as_they_are() -> None:
    for cell in ("-1.5", "+3", "1e-3", "ease", "", "50K", "'tis"):
        assert protected(cell) == cell


def test_formulas_stand_behind_an_apostrophe() -> None:
    assert protected("=HYPERLINK(1)") == "'=HYPERLINK(1)"
    assert protected("-50000.x") == "'-50000.x"
    assert protected("'=1") == "''=1"
    assert protected("-inf") == "-inf"


def test_text_columns_and_names_of_a_table_are_protected() -> None:
    frame = protected_frame(pd.DataFrame({"=a": ["=1", None, "b"], "n": [-1.0, 2.0, 3.0]}))
    assert list(frame.columns) == ["'=a", "n"]
    assert frame["'=a"].tolist()[0] == "'=1" and frame["n"].tolist() == [-1, 2, 3]
