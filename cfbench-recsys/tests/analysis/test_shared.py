"""What the analyses have in common: settings of one run and of several, and statements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cfbench_core.statistics import bootstrap_interval
from cfbench_recsys.analysis.positions import Config, Positions
from cfbench_recsys.analysis.shared import Statements, differ_in, normalized, place, settings


def names(found: Any) -> list[tuple[Any, list[str]]]:
    return [(dict(setting.labels).get("run"), [m.name for m in setting.methods]) for setting in found]


def everything(cell: Any) -> bool:
    return True


def test_a_setting_is_what_differs_in_the_explainer_alone(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"PN-S@2": [0, 1]}),
        make_cell("b", {"PN-S@2": [0, 1]}),
        make_cell("a", {"PN-S@2": [0, 1]}, model="ease"),
        make_cell("b", {"PN-S@2": [0, 1]}, model="ease", status="partial"),
    )
    assert names(settings([run], everything)) == [(None, ["a", "b"]), (None, ["a"])]
    first = settings([run], everything)[0]
    assert first.labels == {
        "dataset": "shop", "model": "mf", "level": "item", "k": 2, "format": "implicit", "edit": "remove",
        "scope": "user-vector",
    }  # fmt: skip


def test_runs_that_repeat_settings_are_distinguished_others_are_one_study(write: Any, make_cell: Any) -> None:
    first = write(make_cell("a", {"PN-S@2": [0, 1]}), name="first")
    again = write(make_cell("b", {"PN-S@2": [0, 1]}), name="again")
    other = write(make_cell("a", {"PN-S@2": [0, 1]}, model="ease"), name="other")
    assert names(settings([first, other], everything)) == [(None, ["a"]), (None, ["a"])]
    assert names(settings([first, again], everything)) == [("first", ["a"]), ("again", ["b"])]


def test_runs_of_one_name_are_distinguished_by_their_path(write: Any, make_cell: Any) -> None:
    runs = [write(make_cell("a", {"PN-S@2": [0, 1]}), name=f"{folder}/run") for folder in "xy"]
    (one, _), (two, _) = names(settings(runs, everything))
    assert one != two and one.endswith("x/run") and two.endswith("y/run")


def test_intervals_of_statements_are_those_of_the_bootstrap_over_clusters() -> None:
    draw = np.random.default_rng(0)
    statements = Statements()
    given = [
        (draw.random(n), draw.integers(0, clusters, n))
        for n, clusters in ((30, 9), (50, 9), (20, 20), (1, 1))
    ]
    for number, (values, clusters) in enumerate(given):
        statements.add({"number": number}, values, clusters)
    for row, (values, clusters) in zip(statements.frame().to_dict("records"), given, strict=True):
        low, high = bootstrap_interval(values, clusters=clusters)
        assert [row["mean"], row["ci_low"], row["ci_high"]] == pytest.approx(
            [values.mean(), float(low), float(high)], nan_ok=True
        )
        assert row["n"] == len(values)


def test_labels_differ_in_one_alone() -> None:
    mf, ease = {"model": "mf", "k": 5}, {"model": "ease", "k": 5}
    assert differ_in("model", [mf, ease])
    assert not differ_in("model", [mf, {"model": "ease", "k": 3}])
    assert not differ_in("k", [mf, ease]) and not differ_in("k", [])


def test_a_place_names_only_labels_in_which_settings_differ(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"PN-S@2": [0, 1]}),
        make_cell("a", {"PN-S@3": [0, 1, 1]}, k=3, model="lightgcn", scope="user-only"),
    )
    table = normalized(Positions(Config()).table([run]))
    first = table.iloc[0].to_dict()
    assert place(first, table) == "mf · top 2"
    assert place(first, table[table["model"] == "mf"]) == "shop · mf"
