"""Explanations as tables and back, and tables external, right and wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cfbench_recsys.external import ExternalTable
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.explanations import (
    edits_table,
    importances_table,
    read_edits,
    read_importances,
    read_table,
    unknown_units,
)
from cfbench_recsys.interactions import Interactions, from_pairs
from cfbench_recsys.targets import Targets

PAIRS = {"anna": "pqr", "bob": "pr", "NA": "s"}
"""Users and their items. One is called like a missing value."""


def shop() -> Interactions:
    pairs = [(user, item) for user, items in PAIRS.items() for item in items]
    return from_pairs("shop", [user for user, _ in pairs], [item for _, item in pairs])


def targets_and_units(users: list[str], scope: str = "user-vector") -> tuple[Targets, pd.DataFrame]:
    """A list of one item for each user; the item is the user's own business here."""
    data = shop()
    index = [data.user_ids.tolist().index(user) for user in users]
    targets = Targets.of(
        data.matrix,
        np.array(index),
        np.zeros((len(users), 1)),
        1,
        "list",
        scope,  # type: ignore[arg-type]
    )
    units = pd.DataFrame({"unit": users, "user": users, "item": None, "rank": None})
    return targets, units.assign(level="list", format="implicit")


def rows(*rows: tuple[str, str, str, str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["unit", "edge_user", "edge_item", "op", "importance"])


def test_importances_by_hand() -> None:
    targets, units = targets_and_units(["anna", "NA"])
    table = importances_table(shop(), targets, np.array([[0.5, -1.0, 2.0], [3.0, np.nan, np.nan]]), units)
    assert table[["unit", "edge_user", "edge_item", "op", "importance"]].to_numpy().tolist() == [
        ["anna", "anna", "p", "remove", 0.5],
        ["anna", "anna", "q", "remove", -1.0],
        ["anna", "anna", "r", "remove", 2.0],
        ["NA", "NA", "s", "remove", 3.0],
    ]


def test_interactions_that_are_left_out_have_importance_zero_and_units_without_rows_no_answer() -> None:
    targets, units = targets_and_units(["anna", "bob"])
    importances, answered = read_importances(
        rows(("anna", "anna", "r", "remove", 2.0)), shop(), targets, units["unit"]
    )
    assert importances.tolist() == [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    assert answered.tolist() == [True, False]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_importances_survive_the_table_to_the_last_bit_in_any_order(data: st.DataObject) -> None:
    users = data.draw(st.permutations([*PAIRS]))
    targets, units = targets_and_units(users)
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    given_values = np.array([[data.draw(numbers) for _ in range(targets.history.shape[1])] for _ in users])
    table = importances_table(shop(), targets, given_values, units).sample(frac=1.0, random_state=0)
    back, answered = read_importances(table, shop(), targets, units["unit"])
    assert np.array_equal(back, np.where(targets.padding, 0.0, given_values)) and answered.all()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_edits_survive_the_table_in_any_order(data: st.DataObject) -> None:
    interactions = shop()
    targets, units = targets_and_units([*PAIRS], scope="full")
    present = interactions.matrix.toarray() > 0
    cells = st.tuples(st.integers(0, 2), st.integers(0, 3))
    chosen = sorted((b, *cell) for b in range(3) for cell in data.draw(st.sets(cells, max_size=4)))
    b, users, items = (np.array([edge[part] for edge in chosen], dtype=np.int64) for part in range(3))
    ops = np.where(present[users, items], REMOVE, ADD).astype(np.int8)
    table = edits_table(interactions, Edits(targets.users, b, users, items, ops), units)
    back = read_edits(
        table.sample(frac=1.0, random_state=1), interactions, targets, units["unit"], interactions.matrix
    )
    assert np.array_equal(back.users, targets.users)
    for name, values in {"rows": b, "edge_users": users, "edge_items": items, "ops": ops}.items():
        assert np.array_equal(getattr(back, name), values), name


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("anna", "anna", "z", "remove", 1.0), "edge_item 'z' is not in shop"),
        (("anna", "carl", "p", "remove", 1.0), "edge_user 'carl' is not in shop"),
        (("anna", "bob", "p", "remove", 1.0), "names an edge of user 'bob', outside its scope user-vector"),
        (("anna", "anna", "s", "remove", 1.0), "'s', which is not in the history of user 'anna'"),
        (("anna", "anna", "p", "remove", np.nan), "gives 'p' no finite number as importance (got nan)"),
        (("anna", "anna", "p", "remove", np.inf), "gives 'p' no finite number as importance (got inf)"),
        (("anna", "anna", "q", "remove", 1.0), "unit 'anna' names (anna, q) twice"),
    ],
)
def test_importances_that_do_not_fit_are_one_line(row: tuple[Any, ...], said: str) -> None:
    targets, units = targets_and_units(["anna", "bob"])
    table = rows(("anna", "anna", "q", "remove", 0.5), row)
    with pytest.raises(UserError, match=re.escape(said)):
        read_importances(table, shop(), targets, units["unit"])
    elsewhere = rows(("NA", *row[1:]))  # what is wrong with another unit's rows is not ours to say
    assert read_importances(elsewhere, shop(), targets, units["unit"])[1].tolist() == [False, False]


def test_implicit_answers_need_importances() -> None:
    targets, units = targets_and_units(["anna"])
    table = rows(("anna", "anna", "q", "remove", 0.5)).drop(columns="importance")
    with pytest.raises(UserError, match="implicit answers need a column importance"):
        read_importances(table, shop(), targets, units["unit"])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("anna", "anna", "p", "delete", None), "op must be remove or add, got 'delete'"),
        (("anna", "anna", "p", "add", None), "unit 'anna' adds an interaction that exists: (anna, p)"),
        (
            ("anna", "anna", "s", "remove", None),
            "unit 'anna' removes an interaction that is not there: (anna, s)",
        ),
        (("anna", "bob", "p", "remove", None), "names an edge of user 'bob', outside its scope user-vector"),
    ],
)
def test_edits_that_do_not_fit_are_one_line(row: tuple[Any, ...], said: str) -> None:
    targets, units = targets_and_units(["anna"])
    with pytest.raises(UserError, match=re.escape(said)):
        read_edits(rows(row), shop(), targets, units["unit"], shop().matrix)


def test_edges_of_others_may_be_edited_where_the_scope_allows_it() -> None:
    targets, units = targets_and_units(["anna"], scope="full")
    edits = read_edits(
        rows(("anna", "bob", "p", "remove", None)), shop(), targets, units["unit"], shop().matrix
    )
    assert edits.edge_users.tolist() == [shop().user_ids.tolist().index("bob")]


def test_a_csv_table_is_read_as_text_like_parquet(tmp_path: Path) -> None:
    table = rows(("NA", "NA", "s", "remove", 0.1 + 0.2), ("anna", "anna", "p", "remove", None))
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "bom.csv", "t.parquet"):
        read = read_table(tmp_path / name)
        assert read["unit"].tolist() == ["NA", "anna"] and read["edge_user"].tolist() == ["NA", "anna"]
        assert read["importance"][0] == 0.1 + 0.2 and np.isnan(read["importance"][1])


WRONG: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.csv", b"", "misses the columns unit, edge_user, edge_item, op (has none)"),
    "columns": ("t.csv", b"unit,op\na,remove\n", "misses the columns edge_user, edge_item (has unit, op)"),
    "not text": ("t.csv", b"unit,\xff\xfe\n", "cannot be read as a table"),
    "truncated": ("t.parquet", b"PAR1 and then nothing", "not a Parquet file"),
    "no bytes": ("t.parquet", b"", "not a Parquet file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_no_table_of_explanations_is_refused_before_anything_runs(
    tmp_path: Path, case: str
) -> None:
    name, content, said = WRONG[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        ExternalTable(tmp_path / name)
    (line,) = caught.value.lines
    assert line.startswith(f"{tmp_path / name}: ") and said in line and "\n" not in line


def test_a_whole_parquet_file_cut_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows(*[("anna", "anna", "p", "remove", 1.0)] * 1000).to_parquet(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match="not a Parquet file"):
        ExternalTable(path)
    with pytest.raises(UserError, match="cannot be read as a table"):
        read_table(path)


def test_an_importance_that_is_no_number_is_named(tmp_path: Path) -> None:
    rows(("anna", "anna", "p", "remove", "much")).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UserError, match="importance must be a number, got 'much'"):
        read_table(tmp_path / "t.csv")


def test_a_table_has_explainers_and_the_cells_with_rows(tmp_path: Path) -> None:
    table = rows(*[("anna", "anna", "p", "remove", 1.0)] * 3)
    labelled = table.assign(explainer=["b", "a", "b"], format=["implicit", "implicit", "explicit"], k=5)
    cell = {"dataset": "d", "model": "m", "explainer": "a", "level": "item", "format": "implicit"}
    cell = {**cell, "scope": "user-vector", "k": 5}
    for suffix, write in {".csv": pd.DataFrame.to_csv, ".parquet": pd.DataFrame.to_parquet}.items():
        write(labelled, tmp_path / f"t{suffix}", index=False)
        found = ExternalTable(tmp_path / f"t{suffix}")
        assert found.explainers() == ["b", "a"]
        assert found.lacks(cell) == "" and found.lacks({**cell, "level": "list"}) == ""
        assert found.lacks({**cell, "format": "explicit"}) == (
            f"t{suffix} has no rows for explainer a, format explicit, k 5"
        )
        write(table, tmp_path / f"plain{suffix}", index=False)
        plain = ExternalTable(tmp_path / f"plain{suffix}")
        assert plain.explainers() == ["plain"] and plain.lacks(cell) == ""


def test_units_that_are_not_explained_are_remarked_and_none_at_all_is_refused() -> None:
    units, path = pd.Series(["anna/p", "bob/q"]), Path("theirs.csv")
    table = rows(*[(unit, "anna", "p", "remove", 1.0) for unit in ("anna/p", "carl/p", "carl/p", "dora/p")])
    assert unknown_units(table[:1], units, path) == ""
    assert unknown_units(table[:0], units, path) == ""
    assert unknown_units(table, units, path) == (
        "2 of the 3 units in theirs.csv are not explained here, for example 'carl/p'"
    )
    with pytest.raises(UserError) as caught:
        unknown_units(table[1:], units, path)
    assert caught.value.lines == (
        "theirs.csv: none of its 2 units is explained here. Its first is 'carl/p'; "
        "here they look like 'anna/p', 'bob/q'",
    )
