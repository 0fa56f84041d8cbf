"""Metrics of graph explainers over the scopes of their edits."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_core.statistics import bootstrap_interval
from cfbench_recsys.analysis.scopes import Config, Scopes

scopes = Scopes(Config())
EXPLICIT = {"model": "lightgcn", "format": "explicit"}


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """The same four lists with the user's own edges, and with all."""
    run = write(
        make_cell("cf", {"PN-S@2": [1, 1, 0, 1]}, scope="full", level="list", **EXPLICIT),
        make_cell("cf", {"PN-S@2": [1, 0, 0, 0]}, scope="user-only", level="list", **EXPLICIT),
    )
    assert scopes.incompatibility([run]) == ""
    table = scopes.table([run])
    assert table[["scope", "against", "mean", "n"]].values.tolist() == [
        ["user-only", "", 0.25, 4],
        ["full", "", 0.75, 4],
        ["user-only", "full", -0.5, 4],
    ]
    ends = [float(end) for end in bootstrap_interval([0, -1, 0, -1])]
    assert table.iloc[2][["ci_low", "ci_high"]].tolist() == pytest.approx(ends)


def test_each_narrower_scope_is_compared_with_the_widest(write: Any, make_cell: Any) -> None:
    values = {"k-hop": [1, 1, 1], "user-only": [0, 0, 1], "indirect": [0, 0, 0], "full": [1, 0, 1]}
    run = write(
        *(
            make_cell("cf", {"PN-S@2": own}, scope=scope, level="list", **EXPLICIT)
            for scope, own in values.items()
        )
    )
    table = scopes.table([run])
    compared = table[table["against"] != ""]
    assert compared[["scope", "against", "mean"]].values.tolist() == [
        ["user-only", "full", pytest.approx(-1 / 3)],
        ["indirect", "full", pytest.approx(-2 / 3)],
        ["k-hop", "full", pytest.approx(1 / 3)],
    ]
    (figure,) = scopes.figures(table)
    assert [figure.svg.index(f">{name}<") for name in ("user-only", "indirect", "k-hop", "full")] == sorted(
        figure.svg.index(f">{name}<") for name in values
    )


def test_an_explainer_that_ran_in_one_scope_only_is_left_out(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("cf", {"PN-S@2": [1, 1]}, scope="full", **EXPLICIT),
        make_cell("cf", {"PN-S@2": [1, 0]}, scope="user-only", **EXPLICIT),
        make_cell("cosine", {"PN-S@2": [1, 0]}, scope="user-only", **EXPLICIT),
    )
    assert set(scopes.table([run])["explainer"]) == {"cf"}


def test_the_summary_counts_significant_differences(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("cf", {"PN-S@1": [1] * 30}, scope="full", k=1, **EXPLICIT),
        make_cell("cf", {"PN-S@1": [0] * 25 + [1] * 5}, scope="user-only", k=1, **EXPLICIT),
        make_cell("cf", {"PN-S@1": [0] + [1] * 29}, scope="k-hop", k=1, **EXPLICIT),
    )
    words = scopes.words(scopes.table([run]))
    assert words.startswith(
        "Of 2 comparisons of a narrower scope with the widest, 1 displace less, 0 displace more, and 1"
    )
    assert "PN-S@1 of cf in the user-only scope minus that in the full one is -0.833 (" in words


def test_profiles_have_no_scopes(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("cosine", {"PN-S@2": [1, 0]}, format="explicit"),
        make_cell("cosine", {"PN-S@2": [1, 0]}, scope="user-only", **EXPLICIT),
    )
    assert "several scopes" in scopes.incompatibility([run])
