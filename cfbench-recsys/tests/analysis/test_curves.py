"""Fidelity against the share of the profile that is removed."""

from __future__ import annotations

from typing import Any

from cfbench_recsys.analysis.curves import Curves

curves = Curves()


def scores(lowest: float, last: float) -> dict[str, list[float]]:
    """Two users with two items each; all have the same value at every share."""
    values = {0: 1.0, 50: lowest, 100: last}
    return {f"curve-POS-P@20[{share}%]": [value] * 4 for share, value in values.items()}


def test_a_curve_that_rises_again_is_measured_from_its_lowest_point(write: Any, make_cell: Any) -> None:
    run = write(make_cell("lxr", scores(0.25, 0.5)), make_cell("lime-rs", scores(0.5, 0.5)))
    assert curves.incompatibility([run]) == ""
    table = curves.table([run])
    plain = table[table["against"].isna()]
    assert plain[["explainer", "share", "mean"]].values.tolist() == [
        ["lxr", 0, 1.0],
        ["lxr", 50, 0.25],
        ["lxr", 100, 0.5],
        ["lime-rs", 0, 1.0],
        ["lime-rs", 50, 0.5],
        ["lime-rs", 100, 0.5],
    ]
    ends = table[table["against"].notna()].set_index("explainer")
    assert ends["mean"].to_dict() == {"lxr": 0.25, "lime-rs": 0.0}
    assert ends.loc["lxr", "against"] == 50 and ends.loc["lxr", "n"] == 4
    words = curves.words(table)
    assert "in 1 of 2 curves" in words and "lowest at 50 %, then higher by 0.25" in words
    (figure,) = curves.figures(table)
    assert "POS-P@20" in figure.title


def test_curves_of_insertion_have_no_lowest_point(write: Any, make_cell: Any) -> None:
    values = {f"curve-INS-P[{share}%]": [share / 100, share / 100] for share in (0, 50, 100)}
    table = curves.table([write(make_cell("lxr", values))])
    assert (table["direction"] == "higher").all()
    assert table["against"].isna().all() and curves.words(table) == ""


def test_runs_without_the_metric_are_refused(write: Any, make_cell: Any) -> None:
    run = write(make_cell("lxr", {"POS-P@5": [1.0, 0.0]}))
    assert curves.incompatibility([run]) == "needs the metric lxr-curves"
