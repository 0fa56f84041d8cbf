from __future__ import annotations

import numpy as np
import pandas as pd

from cfbench_recsys.analysis.measured_means import LABELS, MeasuredMeans, best_measured


def means(rows: list[dict[str, object]]) -> MeasuredMeans:
    usual = {**dict.fromkeys([*LABELS, "variant"], ""), "max_edits": "100", "chunk": 50.0, "n": 10}
    return MeasuredMeans(pd.DataFrame([{**usual, **row} for row in rows]), np.zeros((1, len(rows))))


def test_times_of_users_that_were_explained_together_do_not_count_next_to_those_of_single_ones() -> None:
    """The times of the store are those of fifty users together: there are none of single users."""
    rows = [
        {"dataset": dataset, "metric": metric, "chunk": chunk}
        for dataset, chunks in {"shop": (1.0, 50.0), "store": (50.0,)}.items()
        for metric in ("time", "POS-P")
        for chunk in chunks
    ]
    found = best_measured(means(rows)).frame
    assert found.loc[found["metric"] == "time", ["dataset", "chunk"]].values.tolist() == [["shop", 1.0]]
    assert found.loc[found["metric"] == "POS-P", "dataset"].tolist() == ["shop", "store"]
    together = [row for row in rows if row["chunk"] == 50.0]
    assert len(best_measured(means(together)).frame) == 4


def test_the_largest_budget_counts_and_then_the_most_units() -> None:
    rows = [
        {"metric": "PN-S", "max_edits": edits, "n": n} for edits, n in (("5", 90), ("20", 10), ("20", 30))
    ]
    (best,) = best_measured(means(rows)).frame.to_dict("records")
    assert (best["max_edits"], best["n"]) == ("20", 30)
