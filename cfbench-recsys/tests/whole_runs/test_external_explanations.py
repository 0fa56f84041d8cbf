"""External explanations: tables of other units, of more, of fewer, of other cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from studies import study, values

from cfbench_core import run
from cfbench_core.api import execute, prepare
from cfbench_core.run_directory import Run


def elsewhere(done: Run, path: Path, **changes: Any) -> Path:
    columns = ["unit", "level", "format", "edge_user", "edge_item", "op", "importance"]
    done.explanations[columns].assign(**changes).to_parquet(path)
    return path


def test_a_table_of_other_units_is_refused_with_an_example(shop: Path, tmp_path: Path) -> None:
    done = run(study(shop), out=tmp_path / "run")
    strange = elsewhere(
        done, tmp_path / "strange.parquet", unit=[f"x{n}" for n in range(len(done.explanations))]
    )
    scored = execute(prepare(study(shop), explanations=strange), out=tmp_path / "scored")
    (cell,) = scored.cells()
    assert (cell.status, scored.exit_code) == ("failed", 1)
    assert "strange.parquet: none of its " in cell.reason
    assert "Its first is 'x0'; units here are called 'all/i" in cell.reason


def test_units_beyond_those_explained_are_left_out_and_remarked(shop: Path, tmp_path: Path) -> None:
    done = run(study(shop), out=tmp_path / "run")
    fewer = study(shop, protocol={"k": [3], "level": ["item"], "format": ["implicit"], "users": 10})
    table = elsewhere(done, tmp_path / "theirs.parquet")
    scored = execute(prepare(fewer, explanations=table), out=tmp_path / "scored")
    (cell,) = scored.cells()
    assert (cell.status, scored.exit_code) == ("ok", 0)
    assert (
        "of the 98 units in theirs.parquet are not explained here and are excluded, for example '"
        in cell.reason
    )
    all_of_them = values(done.scores, metric="POS-P@3")
    found = values(scored.scores, metric="POS-P@3")
    assert scored.scores["user"].nunique() == 10
    assert found == {unit: all_of_them[unit] for unit in found}


def test_units_that_a_table_leaves_out_have_no_answer(shop: Path, tmp_path: Path) -> None:
    done = run(study(shop), out=tmp_path / "run")
    table = elsewhere(done, tmp_path / "theirs.parquet")
    some = pd.read_parquet(table)
    some[some["unit"].str.startswith("u")].to_parquet(table)
    scored = execute(prepare(study(shop), explanations=table), out=tmp_path / "scored")
    own = scored.scores[scored.scores["metric"] == "POS-P@3"].set_index("user")["status"]
    assert set(own.loc[["one", "all", "nearly"]]) == {"skipped"} and set(own.loc["u00"]) == {"ok"}


def test_cells_of_which_a_table_has_no_rows_are_skipped(shop: Path, tmp_path: Path) -> None:
    done = run(study(shop), out=tmp_path / "run")
    table = elsewhere(done, tmp_path / "theirs.parquet")
    both = study(shop, protocol={"k": [3], "users": 100})
    planned = prepare(both, explanations=table).plan
    assert {cell.id: cell.skipped for cell in planned.cells if cell.skipped} == {
        f"file/co/theirs/{level}/{format}/user-vector/remove/3/{most}": (
            f"theirs.parquet has no rows for level {level}, format {format}"
        )
        for level, format, most in (
            ("item", "explicit", 100),
            ("list", "implicit", "-"),
            ("list", "explicit", 100),
        )
    }


def test_importances_without_a_format_are_not_read_as_edits(shop: Path, tmp_path: Path) -> None:
    """They would be edits that remove the whole history."""
    done = run(study(shop), out=tmp_path / "run")
    table = elsewhere(done, tmp_path / "theirs.parquet")
    pd.read_parquet(table).drop(columns="format").to_parquet(table)
    both = study(shop, protocol={"k": [3], "level": ["item"], "users": 100})
    scored = execute(prepare(both, explanations=table), out=tmp_path / "scored")
    implicit, explicit = sorted(scored.cells(), key=lambda cell: cell.labels["format"] != "implicit")
    assert implicit.status == "ok" and explicit.status == "failed"
    assert "but edits have none: importances are rows of the format implicit" in explicit.reason
