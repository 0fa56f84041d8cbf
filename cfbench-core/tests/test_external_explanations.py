"""External explanations: tables that are refused, the cells to which they belong, and units that are not explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external import NUMBERS, ExternalTable
from cfbench_core.lifecycle.external_rows import read_table, with_labels, with_units

KNOWN = ("dataset", "model", "explainer", "level", "format", "k")
NEEDED = ("edge_user", "edge_item", "op")


def rows(*rows: tuple[str, str, str, str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["unit", "edge_user", "edge_item", "op", "importance"])


def test_a_csv_table_is_read_as_text(tmp_path: Path) -> None:
    """An identifier may be "NA" or "007"; a byte order mark is not part of the first column's name."""
    table = rows(("NA", "NA", "007", "remove", 0.5))
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "bom.csv", "t.parquet"):
        read = read_table(tmp_path / name)
        assert read[["unit", "edge_user", "edge_item"]].to_numpy().tolist() == [["NA", "NA", "007"]]


WRONG: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.csv", b"", "misses the columns edge_user, edge_item, op (has none)"),
    "columns": ("t.csv", b"unit,op\na,remove\n", "misses the columns edge_user, edge_item (has unit, op)"),
    "not text": ("t.csv", b"unit,\xff\xfe\n", "cannot be read as a table"),
    "truncated": ("t.parquet", b"PAR1 and then nothing", "not a Parquet file"),
    "no bytes": ("t.parquet", b"", "not a Parquet file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_no_table_of_explanations_is_refused_before_anything_runs(
    tmp_path: Path, case: str
) -> None:
    name, content, message = WRONG[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        ExternalTable(tmp_path / name, KNOWN, NEEDED)
    (line,) = caught.value.lines
    assert line.startswith(f"{tmp_path / name}: ") and message in line and "\n" not in line


@pytest.mark.parametrize(("header", "has"), [("", "none"), ("importance,note\n", "importance, note")])
def test_a_table_that_names_no_units_is_refused_before_anything_runs(
    tmp_path: Path, header: str, has: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(header)
    with pytest.raises(UserError) as caught:
        ExternalTable(path, KNOWN).check_unit(("user", "item"))
    assert caught.value.lines == (f"{path}: needs a column unit, or user and item (has {has})",)
    for enough in ("unit", "user"):
        path.write_text(f"{enough},importance\n")
        ExternalTable(path, KNOWN).check_unit(("user", "item"))


def test_a_whole_parquet_file_cut_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows(*[("anna", "anna", "p", "remove", 1.0)] * 1000).to_parquet(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match="not a Parquet file"):
        ExternalTable(path, KNOWN, NEEDED)
    with pytest.raises(UserError, match="cannot be read as a table"):
        read_table(path)


def test_a_table_has_explainers_and_the_cells_with_rows(tmp_path: Path) -> None:
    table = rows(*[("anna", "anna", "p", "remove", 1.0)] * 3)
    labelled = table.assign(explainer=["b", "a", "b"], format=["implicit", "implicit", "explicit"], k=5)
    cell = {"dataset": "d", "model": "m", "explainer": "a", "level": "item", "format": "implicit", "k": 5}
    for suffix, write in {".csv": pd.DataFrame.to_csv, ".parquet": pd.DataFrame.to_parquet}.items():
        write(labelled, tmp_path / f"t{suffix}", index=False)
        found = ExternalTable(tmp_path / f"t{suffix}", KNOWN, NEEDED)
        assert found.authors("explainer") == ["b", "a"]
        assert found.lacks(cell) == "" and found.lacks({**cell, "level": "list"}) == ""
        assert found.lacks({**cell, "format": "explicit"}) == (
            f"t{suffix} has no rows for explainer a, format explicit, k 5"
        )
        write(table, tmp_path / f"plain{suffix}", index=False)
        plain = ExternalTable(tmp_path / f"plain{suffix}", KNOWN, NEEDED)
        assert plain.authors("explainer") == ["plain"] and plain.lacks(cell) == ""


def test_rows_of_other_cells_are_left_out() -> None:
    table = rows(*[("anna", "anna", item, "remove", 1.0) for item in "pqr"]).assign(k=[5, "5", 3])
    assert with_labels(table, {"k": 5, "model": "mf"})["edge_item"].tolist() == ["p", "q"]


def test_a_missing_unit_is_derived_from_the_columns_that_define_it() -> None:
    units = pd.DataFrame({"unit": ["u1", "u2"], "user": ["a", "b"], "item": ["x", "x"]})
    table = pd.DataFrame({"user": ["b", "a", "c"], "item": ["x", "x", "y"], "importance": np.arange(3.0)})
    assert with_units(table, units, ("user", "item"), Path("t.csv"))["unit"].tolist() == ["u2", "u1", "c, y"]
    with pytest.raises(UserError, match="needs a column unit, or user and item"):
        with_units(table[["importance"]], units, ("user", "item"), Path("t.csv"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("op", "burn", "op must be remove or add, got 'burn'"),
        ("importance", "much", "importance must be a finite number, got 'much'"),
        ("importance", "inf", "importance must be a finite number, got 'inf'"),
    ],
)
def test_values_that_cannot_be_are_reported_with_their_row(
    tmp_path: Path, suffix: str, column: str, value: str, complaint: str
) -> None:
    frame = pd.DataFrame({"unit": ["a", "b"], "op": ["remove", ""], "importance": ["1.5", ""]})
    frame.loc[1, column] = value
    path = tmp_path / f"mine{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    values = {"op": ("remove", "add"), "importance": NUMBERS}
    place = "mine.csv:3" if suffix == ".csv" else "mine.parquet: row 2"
    with pytest.raises(UserError, match=f"{place}: {complaint}"):
        ExternalTable(path, ("explainer",), values=values)
