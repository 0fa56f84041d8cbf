"""Effectiveness against edits and time: which explainers no other beats on both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_recsys.analysis.trade_off import TradeOff, unbeaten

trade_off = TradeOff()
NAN = float("nan")


def explicit(displaced: list[float], edits: list[float | None], **more: list[float]) -> dict[str, list[Any]]:
    return {"PN-S@2": displaced, "#Perturb given success@2": edits, **more}


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """thrifty needs fewer edits, thorough displaces more, and clumsy is beaten by both."""
    run = write(
        make_cell(
            "thrifty", explicit([1, 0, 1, 0], [1, None, 1, None]), format="explicit", seconds=[3.0] * 4
        ),
        make_cell("thorough", explicit([1, 1, 1, 0], [2, 2, 2, None]), format="explicit", seconds=[2.0] * 4),
        make_cell("clumsy", explicit([1, 0, 1, 0], [3, None, 2, None]), format="explicit", seconds=[2.0] * 4),
        make_cell("greedy", explicit([1, 1, 1, 1], [1, 1, 1, 1]), format="explicit", role="reference"),
    )
    assert trade_off.incompatibility([run]) == ""
    table = trade_off.table([run]).set_index(["axis", "explainer"])
    assert table.loc["effectiveness", "mean"].to_dict() == {
        "thrifty": 0.5,
        "thorough": 0.75,
        "clumsy": 0.5,
        "greedy": 1.0,
    }
    assert table.loc["edits", "mean"].to_dict() == {
        "thrifty": 1.0,
        "thorough": 2.0,
        "clumsy": 2.5,
        "greedy": 1.0,
    }
    assert table.loc["edits", "front"].dropna().to_dict() == {
        "thrifty": True,
        "thorough": True,
        "clumsy": False,
    }
    assert table.loc["time per explanation", "front"].dropna().to_dict() == {
        "thrifty": False,
        "thorough": True,
        "clumsy": False,
    }
    assert table.loc["effectiveness", "front"].isna().all()
    words = trade_off.words(table.reset_index())
    assert "thrifty and thorough, in 1 of 1 setting." in words
    assert "from thrifty (PN-S@2 0.5 (" in words and "to thorough (PN-S@2 0.75 (" in words


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_the_front_is_who_is_not_dominated(points: list[tuple[int, int]]) -> None:
    cost, effect = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    for place, (own_cost, own_effect) in enumerate(points):
        dominated = any(
            c <= own_cost and e >= own_effect and (c < own_cost or e > own_effect) for c, e in points
        )
        assert unbeaten(cost, effect)[place] == (not dominated)


def test_who_never_succeeds_is_on_no_front() -> None:
    assert unbeaten(np.array([NAN, 2.0]), np.array([0.0, 0.1])).tolist() == [False, True]


def adding(write: Any, make_cell: Any, **how: Any) -> Any:
    """cutter removes two; painter needs one edit, and may add: it would beat cutter on both."""
    return write(
        make_cell("cutter", explicit([1, 0, 1, 0], [2, None, 2, None]), format="explicit"),
        make_cell("pruner", explicit([1, 0, 0, 0], [1, None, None, None]), format="explicit"),
        make_cell(
            "painter",
            explicit([1, 1, 1, 1], [1, 1, 1, 1], **{"#Additions": [1, 0, 1, 1]}),
            format="explicit",
            edit="remove-or-add",
        ),
        **how,
    )


@pytest.mark.parametrize("without", [(), ("edit",)])
def test_methods_that_add_edges_have_a_front_of_their_own(
    write: Any, make_cell: Any, without: tuple[str, ...]
) -> None:
    """Also where a run does not say what may be edited: then the answers show it."""
    table = trade_off.table([adding(write, make_cell, without=without)])
    edits = table[table["axis"] == "edits"].set_index("explainer")
    assert edits["edit"].to_dict() == {"cutter": "remove", "pruner": "remove", "painter": "remove-or-add"}
    assert edits["front"].all()
    words = trade_off.words(table)
    assert "Methods that may add edges are compared among themselves only" in words
    assert "painter" not in words  # alone among its kind: nothing to beat
    assert [figure.title for figure in trade_off.figures(table)] == [
        "PN-S@2 against edits: shop · mf",
        "PN-S@2 against time per explanation: shop · mf",
    ]


def test_units_of_one_batch_are_one_measurement_of_time(write: Any, make_cell: Any) -> None:
    metrics = explicit([1, 0, 1, 0], [2, None, 2, None])
    run = write(make_cell("a", metrics, format="explicit", seconds=[0.5] * 4))
    time = trade_off.table([run]).set_index("axis").loc["time per explanation"]
    assert time["mean"] == 0.5 and np.isnan(time["ci_low"])


def test_without_the_number_of_edits_there_is_time_alone(write: Any, make_cell: Any) -> None:
    run = write(make_cell("a", {"PN-S@2": [1, 0]}), make_cell("b", {"PN-S@2": [1, 0]}))
    table = trade_off.table([run])
    assert set(table["axis"]) == {"effectiveness", "time per explanation"}
    assert [figure.title for figure in trade_off.figures(table)] == [
        "PN-S@2 against time per explanation: shop · mf"
    ]
    assert trade_off.words(table) == ""


def test_importances_have_no_trade_off(write: Any, make_cell: Any) -> None:
    assert "pn-s" in trade_off.incompatibility([write(make_cell("a", {"POS-P@2": [1, 0]}))])
