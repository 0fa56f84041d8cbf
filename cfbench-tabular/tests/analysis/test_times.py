"""Times of counterfactuals."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_tabular.analysis.times import Times

times = Times()


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("quick", {"validity": [1, 1]}, seconds=[0.001, 0.003]),
        make_cell("slow", {"validity": [1, 1]}, seconds=[1.0, 1.0]),
        make_cell("none", {"validity": [1, 1]}, role="baseline", seconds=[1e-6, 1e-6]),
    )
    table = times.table([run]).set_index("explainer")
    assert table.loc["quick", "seconds"] == pytest.approx(0.002) and table.loc["quick", "n"] == 2
    assert table.loc["quick", "encoded_columns"] == 4 and table.loc["quick", "type"] == "numerical"
    words = times.words(times.table([run]))
    assert "Fastest is quick with 2 ms" in words and "slow with 1,000 ms, 500 times that" in words


def test_the_map_has_colours_by_powers_of_ten_and_gaps_for_failures(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"validity": [1]}, dataset="wide", seconds=[0.1]),
        make_cell("a", {"validity": [1]}, dataset="narrow", seconds=[0.001]),
        make_cell("b", {"validity": [1]}, dataset="wide", status="timeout"),
        make_cell("b", {"validity": [1]}, dataset="narrow", seconds=[10.0]),
        data={"wide": {"encoded_columns": 90}, "narrow": {"encoded_columns": 3}},
    )
    (figure,) = times.figures(times.table([run]))
    assert figure.svg.index(">narrow<") < figure.svg.index(">wide<")  # by encoded columns
    for words in (">1 ms<", ">100 ms<", ">10,000 ms<", ">–<"):
        assert words in figure.svg


def test_of_a_real_run(real_run: Any) -> None:
    table = times.table([real_run])
    assert len(table) == 9 and (table["seconds"] > 0).all() and (table["n"] == 20).all()
    numerical, categorical, growth = times.figures(table)
    assert ">wine<" in numerical.svg and ">wine<" not in categorical.svg
    assert ">balance-scale<" in categorical.svg and "numerical data" in numerical.title
    assert "by columns" in growth.title and ">encoded columns<" in growth.svg
    assert times.words(table)
