"""What explanations cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cfbench_recsys.analysis.cost import MEMORY, PRETRAINING, SECONDS, Cost

cost = Cost()
METRICS = {"PN-S@2": [1, 0, 1, 0]}


def line(key: str, stage: str, seconds: float, memory: int = 0, status: str = "ok") -> dict[str, Any]:
    return {
        "key": key,
        "stage": stage,
        "kind": "explanations",
        "status": status,
        "elapsed_seconds": seconds,
        "peak_memory_bytes": memory,
    }


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """Four units in two batches: two measurements, 1 s and 3 s."""
    run = write(make_cell("a", METRICS, seconds=[1.0, 1.0, 3.0, 3.0]))
    assert cost.incompatibility([run]) == ""
    (row,) = cost.table([run]).to_dict("records")
    assert (row["metric"], row["mean"], row["ci_low"], row["ci_high"], row["n"]) == (
        SECONDS,
        2.0,
        1.0,
        3.0,
        4,
    )
    assert (row["quality_metric"], row["quality"], row["direction"]) == ("HR@10", 0.25, "lower")


def test_pretraining_and_memory_are_read_from_the_outcomes(write: Any, make_cell: Any) -> None:
    """Work that was done again, or came from the cache, counts as it ended last; failures do not count."""
    stages = {"explainer": "learns", "explanations": "explains"}
    outcomes = [
        line("k1", "learns", 7.0, status="failed"),
        line("k1", "learns", 12.5, 900),
        line("k1", "learns", 12.5, 900, "cached"),
        line("k2", "explains", 1.0, 300),
        line("k3", "explains", 1.0, 400),
        line("k4", "explains", 30.0, 5000, status="timeout"),
        line("k6", "other", 99.0, 99999),
        {
            "key": "k5",
            "kind": "explanations",
            "status": "ok",
            "elapsed_seconds": 1.0,
            "peak_memory_bytes": 5,
        },  # of an earlier version
    ]
    run = write(make_cell("lxr", METRICS, stages=stages), make_cell("cosine", METRICS), outcomes=outcomes)
    table = cost.table([run]).set_index(["explainer", "metric"])["mean"]
    assert table["lxr"][PRETRAINING] == 12.5 and table["lxr"][MEMORY] == 400
    assert set(table["cosine"].index) == {SECONDS}


def test_the_summary_reports_the_widest_range_and_pretraining(write: Any, make_cell: Any) -> None:
    stages = {"explainer": "learns"}
    run = write(
        make_cell("quick", METRICS, seconds=[0.001] * 4),
        make_cell("slow", METRICS, seconds=[0.25] * 4),
        make_cell("lxr", METRICS, seconds=[0.002] * 4, stages=stages),
        make_cell("random", METRICS, seconds=[1e-6] * 4, role="baseline"),
        outcomes=[line("k", "learns", 61.5)],
    )
    words = cost.words(cost.table([run]))
    assert "250-fold (shop · mf): quick takes 1 ms, slow 250 ms." in words
    assert "up to 61.5 s for lxr" in words


def test_the_figure_has_a_logarithmic_axis_and_the_quality_of_the_models(write: Any, make_cell: Any) -> None:
    run = write(
        *(
            make_cell("a", METRICS, model=model, seconds=[seconds] * 4)
            for model, seconds in (("mf", 0.001), ("ease", 1.0))
        ),
        make_cell("cf", METRICS, model="lightgcn", scope="full", format="explicit", seconds=[2.0] * 4),
    )
    table = cost.table([run])
    implicit, explicit = cost.figures(table)
    quality = "0.250 (0.190 to 0.310), n = 200"
    assert "implicit" in implicit.title
    assert implicit.note.startswith(f"HR@10 of the models: mf {quality}; ease {quality}.")
    for words in (">mf<", ">ease<", ">1 ms<", ">10 ms<", ">100 ms<", ">1,000 ms<"):
        assert words in implicit.svg, words
    assert "lightgcn · full" in explicit.svg


def test_unknown_times_are_not_reported(write: Any, make_cell: Any) -> None:
    """Explanations that were external."""
    run = write(
        make_cell("theirs", METRICS, seconds=[np.nan] * 4), make_cell("a", METRICS, seconds=[1.0] * 4)
    )
    table = cost.table([run]).set_index("explainer")
    assert np.isnan(table.loc["theirs", "mean"]) and table.loc["theirs", "n"] == 0
    assert cost.words(table.reset_index()) == ""


@pytest.mark.parametrize("status", ["skipped", "failed", "partial", "planned"])
def test_cells_that_did_not_end_well_are_left_out(write: Any, make_cell: Any, status: str) -> None:
    run = write(make_cell("a", METRICS, status=status))
    assert cost.incompatibility([run]) == "no cell has ended well"
