"""Explanations as tables and back, and tables external, right and wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.explanations import (
    edits_table,
    importances_table,
    read_edits,
    read_importances,
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
        (("anna", "anna", "z", "remove", 1.0), "unit 'anna': edge_item 'z' is not in shop"),
        (("anna", "carl", "p", "remove", 1.0), "unit 'anna': edge_user 'carl' is not in shop"),
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
        (("anna", "bob", "p", "remove", None), "edits (bob, p), outside its scope user-vector"),
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


def test_an_importance_with_an_operation_other_than_remove_is_refused() -> None:
    targets, units = targets_and_units(["anna"])
    table = rows(("anna", "anna", "p", "burn", 1.0))
    with pytest.raises(UserError, match="op must be remove, got 'burn'"):
        read_importances(table, shop(), targets, units["unit"])
