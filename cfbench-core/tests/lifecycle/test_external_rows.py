"""Which rows of an external table belong to a cell: one rule for every suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external_rows import read_table, select_rows
from cfbench_core.stages import Task, TaskContext

UNITS = pd.DataFrame(
    {
        "unit": ["a/x", r"a\/b/x", "b/y"],
        "group": [0, 1, 2],
        "user": ["a", "a/b", "b"],
        "item": ["x", "x", "y"],
    }
)


def selected(
    folder: Path, table: pd.DataFrame, suffix: str = ".parquet"
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows and the summary of the stage."""
    file = folder / f"theirs{suffix}"
    if suffix == ".csv":
        table.to_csv(file, index=False)
    else:
        table.to_parquet(file)
    (folder / "units").mkdir()
    (folder / "out").mkdir()
    UNITS.to_parquet(folder / "units" / "units.parquet")
    key = ["user", "item"]
    parameters = {"file": str(file), "labels": {"explainer": "mine"}, "unit_key": key, "numbers": ["value"]}
    task = Task("k", str(folder), "external", "e", "m:f", parameters, {"units": str(folder)}, {}, 0)
    summary = select_rows(TaskContext(task, folder / "out", {"units": folder / "units"}))
    return pd.read_parquet(folder / "out" / "explanations.parquet"), summary


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_rows_of_other_labels_and_of_unknown_units_are_left_out(tmp_path: Path, suffix: str) -> None:
    table = pd.DataFrame(
        {
            "unit": ["a/x", "b/y", "c/z", "a/x"],
            "explainer": ["mine", "mine", "mine", "yours"],
            "value": [1, 2, 3, 4],
        }
    )
    rows, summary = selected(tmp_path, table, suffix)
    assert rows["unit"].tolist() == ["a/x", "b/y"]
    assert summary["units"] == 2
    assert summary["note"] == (
        f"1 of the 3 units in theirs{suffix} are not explained here and are excluded, for example 'c/z'"
    )


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_units_are_derived_from_the_columns_that_define_them(tmp_path: Path, suffix: str) -> None:
    table = pd.DataFrame({"user": ["a/b", "b"], "item": ["x", "y"], "value": [1, 2]})
    rows, summary = selected(tmp_path, table, suffix)
    assert rows["unit"].tolist() == [r"a\/b/x", "b/y"]
    assert "note" not in summary


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("user", ["a", "a"], "unit 'b/y' has the user 'b', but its column user has 'a'"),
        ("item", ["y", "y"], "unit 'a/x' has the item 'x', but its column item has 'y'"),
    ],
)
def test_a_unit_that_its_own_columns_contradict_is_refused(
    tmp_path: Path, suffix: str, column: str, values: list[str], said: str
) -> None:
    table = pd.DataFrame({"unit": ["a/x", "b/y"], "user": ["a", "b"], "item": ["x", "y"], column: values})
    with pytest.raises(UserError) as error:
        selected(tmp_path, table, suffix)
    assert error.value.lines == (f"{tmp_path / f'theirs{suffix}'}: {said}",)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_that_say_nothing_about_a_unit_contradict_nothing(tmp_path: Path, suffix: str) -> None:
    """An empty cell, a unit that is not explained here, and a column that does not define units."""
    table = pd.DataFrame(
        {"unit": ["a/x", "b/y", "c/z"], "user": [None, "b", "q"], "item": [None] * 3, "rank": [9, 9, 9]}
    )
    rows, _ = selected(tmp_path, table, suffix)
    assert rows["unit"].tolist() == ["a/x", "b/y"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            {"unit": ["z"], "value": [1]},
            r"none of its 1 units is explained here. Its first is 'z'; units here are",
        ),
        ({"user": ["a"], "value": [1]}, r"needs a column unit, or user and item \(has user, value\)"),
        ({"user": ["q"], "item": ["x"]}, r"none of its 1 units is explained here. Its first is 'q, x'"),
    ],
)
def test_a_table_of_which_nothing_is_explained_is_refused_in_one_line(
    tmp_path: Path, table: dict[str, list[object]], said: str
) -> None:
    with pytest.raises(UserError, match=said) as refused:
        selected(tmp_path, pd.DataFrame(table))
    assert len(refused.value.lines) == 1


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_column_of_numbers_is_read_as_numbers_and_may_have_gaps(tmp_path: Path, suffix: str) -> None:
    table = pd.DataFrame({"unit": ["a/x", "b/y"], "value": ["0.5", None]})
    rows, _ = selected(tmp_path, table, suffix)
    assert rows["value"].iloc[0] == 0.5 and pd.isna(rows["value"].iloc[1])


def test_a_value_that_is_no_number_is_an_error_with_the_file_and_the_value(tmp_path: Path) -> None:
    table = pd.DataFrame({"unit": ["a/x"], "value": ["much"]})
    with pytest.raises(UserError, match=r"theirs.csv: value must be a number, got 'much'"):
        selected(tmp_path, table, ".csv")


def test_rows_that_end_in_a_comma_are_refused_and_not_read_from_the_second_column_on(tmp_path: Path) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text("unit,user,item\na/x,a,x,\nb/y,b,y,\n")
    with pytest.raises(
        UserError, match=r"theirs\.csv: its rows have more values than its header has columns$"
    ):
        read_table(path)
    path.write_text("unit,user,item,\na/x,a,x,\nb/y,b,y,\n")
    assert read_table(path)["unit"].tolist() == ["a/x", "b/y"]
