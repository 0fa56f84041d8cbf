"""The same counterfactual again."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfbench_tabular.analysis.stability import Stability

stability = Stability()


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"validity": [1, 1], "stability": [1, 1]}),
        make_cell("b", {"validity": [1, 1, 0, 1], "stability": [1, 0, None, 0]}),
        make_cell("c", {"validity": [0], "stability": [None]}),
    )
    table = stability.table([run]).set_index("explainer")
    assert table.loc["a", "mean"] == 1.0 and table.loc["b", "mean"] == 1 / 3 and table.loc["b", "n"] == 3
    assert table.loc["c", "n"] == 0 and np.isnan(table.loc["c", "mean"])
    words = stability.words(stability.table([run]))
    assert words == "Always reproduced: a. The least stable is b: reproduced for 33% of 3 factuals."
    (figure,) = stability.figures(stability.table([run]))
    assert "33%" in figure.svg


def test_a_single_call_gives_no_stability(write: Any, make_cell: Any) -> None:
    assert "protocol.repeats" in stability.incompatibility([write(make_cell("a", {"validity": [1]}))])


def test_deterministic_explainers_are_stable_and_random_ones_are_not(real_run: Any) -> None:
    table = stability.table([real_run]).query("group == 'numerical'").set_index("explainer")["mean"]
    assert table["nearest-enemy"] == table["sedc"] == 1.0 and table["growing-spheres"] < 0.5


def test_a_second_model_determines_the_robustness_to_retraining(real_run: Any) -> None:
    """protocol.repeats trains once more, too: the metric has values, and not all counterfactuals hold."""
    values = real_run.scores.query("metric == 'retraining'")["value"].dropna()
    assert len(values) > 50 and set(values) == {0.0, 1.0}
