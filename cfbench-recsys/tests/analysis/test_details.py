"""Details that methods report with their answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfbench_recsys.analysis.cost import MODEL_QUERIES, Cost
from cfbench_recsys.analysis.details import Details

METRICS = {"PN-S@2": [1, 0, 1, 0]}
details = Details()


def test_numbers_are_averaged_over_the_units_that_have_them(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("exhaustive", METRICS, details={"none up to": [1.0, 3.0, np.nan, np.nan]}),
        make_cell("greedy", METRICS, details={MODEL_QUERIES: [8.0] * 4}),
    )
    assert details.incompatibility([run]) == ""
    (row,) = details.table([run]).to_dict("records")
    assert (row["explainer"], row["metric"], row["mean"], row["n"]) == ("exhaustive", "none up to", 2.0, 2)
    assert "exhaustive: none up to 2" in details.words(details.table([run]))


def test_evaluations_are_a_cost(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("greedy", METRICS, details={MODEL_QUERIES: [8.0, 8.0, 2.0, 2.0]}, seconds=[1, 1, 2, 2])
    )
    table = Cost().table([run]).set_index("metric")
    assert table.loc[MODEL_QUERIES, "mean"] == 5.0
    assert details.incompatibility([run]) == "no method reports details"


def test_a_run_without_details_cannot_be_analysed(write: Any, make_cell: Any) -> None:
    assert details.incompatibility([write(make_cell("a", METRICS))]) == "no method reports details"
