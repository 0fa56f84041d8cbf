"""Helpers of analyses: tables from CSV files."""

from __future__ import annotations

import io

import pandas as pd

from cfbench_core.analysis_tables import group_rows, with_empty_text


def test_missing_text_of_a_csv_file_becomes_empty() -> None:
    table = pd.read_csv(io.StringIO("role,mean\n,1\nbaseline,2\n"))
    filled = with_empty_text(table, ("role", "against"))
    assert filled["role"].tolist() == ["", "baseline"] and filled["mean"].tolist() == [1, 2]


def test_rows_are_grouped_in_the_order_of_the_table() -> None:
    table = pd.DataFrame({"k": [5, 3, 5], "name": ["b", "a", "b"], "mean": [1, 2, 3]})
    groups = [(labels, rows["mean"].tolist()) for labels, rows in group_rows(table, ["k", "name"])]
    assert groups == [({"k": 5, "name": "b"}, [1, 3]), ({"k": 3, "name": "a"}, [2])]
    assert list(group_rows(table.iloc[:0], ["k"])) == []
