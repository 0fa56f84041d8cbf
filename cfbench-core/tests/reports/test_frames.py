"""Cells of a frame as text."""

from __future__ import annotations

import pandas as pd
import pytest

from cfbench_core.reports.frames import cells

FRAME = pd.DataFrame(
    {
        "dataset": "shop",
        "late": ["a", "a", "a", "b"],
        "value": [0.5, 0.5, 0.5, 0.5],
        "k": [1, 2, 3, 4],
        "ci_low": [0.1, 0.1, 0.1, 0.2],
        "ci_high": [0.9, 0.9, 0.9, 0.9],
    }
)


@pytest.mark.parametrize("most", [None, 2, 3, 4, 9])
def test_what_is_the_same_in_all_rows_is_said_once_however_many_are_shown(most: int | None) -> None:
    found = cells(FRAME, most)
    whole = cells(FRAME)
    assert found.common == (("dataset", "shop"), ("value", "0.5"))
    assert found.heads == ("late", "k", "95% interval"), "a column that differs in the last row alone"
    assert found.rows == whole.rows[:most]
    assert found.left_out == (max(4 - most, 0) if most is not None else 0)


def test_a_frame_of_one_row_has_all_its_columns() -> None:
    assert cells(FRAME.iloc[:1]).rows == (("shop", "a", "0.5", "1", "0.1 to 0.9"),)
