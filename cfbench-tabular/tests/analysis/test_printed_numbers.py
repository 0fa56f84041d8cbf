"""The printed numbers of CF-tabular are consistent with each other."""

from __future__ import annotations

import numpy as np

from cfbench_tabular.analysis.reproduction import printed_numbers
from cfbench_tabular.study import NAMES


def test_printed_ranks_of_ten_algorithms_have_the_mean_of_ten_ranks() -> None:
    printed = printed_numbers()
    ranks = printed[printed["item"].isin(["table 4", "table 5"])]
    means = ranks.groupby(["item", "group", "measure"])["exact"].agg(["mean", "count"])
    assert len(means) == 4 * (7 + 5) and (means["count"] == 10).all()
    assert np.abs(means["mean"] - 5.5).max() < 5e-4


def test_printed_shares_are_counts_of_factuals_and_quality_is_of_22_data_sets() -> None:
    printed = printed_numbers()
    shares = printed[printed["measure"] == "share"]
    counts = shares["authors"] * shares["printed_factuals"]
    assert np.abs(counts - counts.round()).max() < 0.5 * 1e-4 * 3925
    groups = shares.drop_duplicates("group").set_index("group")["printed_factuals"]
    assert groups["total"] == groups[["categorical", "numerical", "mixed"]].sum() == 3925
    quality = printed[printed["item"] == "table A1"]
    assert set(quality["dataset"]) == set(NAMES) and len(quality) == 44


def test_rounding_is_that_of_the_most_precise_number_of_a_table() -> None:
    """The paper omits a zero at the end, so that "1" in table A1 is 1.00. What it does not print is the authors'."""
    table = printed_numbers()
    rounded = table.groupby([table["item"], table["printed"].notna()])["rounded_by"].agg(["min", "max"])
    assert (rounded["min"] == rounded["max"]).all()
    assert rounded["max"].round(6).to_dict() == {
        **{("table 4", True): 0.05, ("table 5", True): 0.05, ("table 4", False): 0.0005},
        **{("figure 4", True): 0.005, ("figure 5", True): 0.005, ("table A1", True): 0.005},
        **{("figure 6", False): 0.00005, ("figure 7", False): 0.00005},
    }
