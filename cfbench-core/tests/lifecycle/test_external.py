"""Tables of external explanations: their authors, and the cells for which they have rows."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pytest

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external import ExternalTable


def opened(path: Path) -> ExternalTable:
    return ExternalTable(path, ("explainer", "base"), ("unit", "digit"), "digits as Parquet or CSV")


def written(path: Path, **columns: list[object]) -> Path:
    table = pd.DataFrame({"unit": ["1", "2", "3"], "digit": ["1", "2", "3"], **columns})
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_it_has_rows_for_the_cells_whose_labels_stand_together_in_one(tmp_path: Path, suffix: str) -> None:
    found = opened(written(tmp_path / f"t{suffix}", base=[10, 2, 10], explainer=["b", "a", "b"]))
    assert found.labels == ["explainer", "base"] and found.authors("explainer") == ["b", "a"]
    cell: dict[str, str | int] = {"model": "times", "explainer": "a", "base": 2}
    assert found.lacks(cell) == ""
    assert found.lacks({**cell, "base": 10}) == f"t{suffix} has no rows for explainer a, base 10"
    assert found.digest == hashlib.sha256(found.path.read_bytes()).hexdigest()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_without_labels_serves_every_cell_and_is_called_like_its_file(
    tmp_path: Path, suffix: str
) -> None:
    plain = opened(written(tmp_path / f"theirs{suffix}", colour=["r", "g", "b"]))
    assert plain.labels == [] and plain.authors("explainer") == ["theirs"] and plain.lacks({"base": 7}) == ""


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_without_the_name_of_an_explainer_are_no_row_of_a_table(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"t{suffix}", explainer=["a", None, "a"])
    with pytest.raises(UserError) as error:
        opened(path).authors("explainer")
    said = "rows without explainer: fill the column in, or leave it out for the name of the file"
    assert error.value.lines == (f"{path}: {said}",)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.csv", None, r"no such file \(digits as Parquet or CSV\)"),
        ("t.csv", b"", r"misses the columns unit, digit \(has none\)"),
        ("t.csv", b"unit,base\n1,2\n", r"misses the columns digit \(has unit, base\)"),
        ("t.csv", b"unit,digit\xff\n", "cannot be read as a table: 'utf-8' codec"),
        ("t.parquet", b"PAR1 and then nothing", "not a Parquet file"),
    ],
    ids=["not there", "empty", "a column is missing", "no text", "no Parquet file"],
)
def test_what_is_no_such_table_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=f"^{tmp_path / name}: {said}") as caught:
        opened(tmp_path / name)
    assert len(caught.value.lines) == 1 and "\n" not in caught.value.lines[0]
