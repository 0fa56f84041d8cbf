"""What a claim lacks is named by what leaves it without means, not by everything that it is about."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cfbench_recsys.analysis.claim_gaps import absent, on_other_data
from cfbench_recsys.analysis.measured_means import MeasuredMeans, one_at_a_time

MEANS = pd.DataFrame(
    [
        ("PN-S", "amazon-fashion", "lightgcn", 5, "item", "cf2"),
        ("PN-S", "amazon-fashion", "lightgcn", 5, "item", "grease"),
        ("PN-S", "ml-1m", "mf", 5, "item", "accent"),
    ],
    columns=["metric", "dataset", "model", "k", "level", "explainer"],
)


def gaps(**wanted: str) -> tuple[str, ...]:
    terms = {name: values.split() for name, values in wanted.items()}
    chosen = MEANS
    for label, values in terms.items():
        chosen = chosen[chosen[label].astype(str).isin(values)]
    return absent(terms, chosen, MEANS)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"metric": "PN-S", "model": "lightgcn", "explainer": "cf2 clear"}, ("clear",)),
        ({"metric": "PN-S", "dataset": "amazon-fashion ml-1m", "k": "3 5"}, ("K = 3",)),
        (
            {"metric": "PN-S", "dataset": "ml-1m yahoo-music", "model": "lightgcn", "explainer": "cf2"},
            ("yahoo-music", "lightgcn on ml-1m"),
        ),
        ({"metric": "Gini", "dataset": "ml-1m", "explainer": "accent"}, ("Gini",)),
        ({"metric": "PN-S", "dataset": "yahoo-music", "model": "mf"}, ("yahoo-music",)),
        ({"metric": "PN-S", "dataset": "ml-1m", "explainer": "cf2"}, ("cf2 on ml-1m",)),
    ],
)
def test_the_first_term_without_means_is_named(wanted: dict[str, str], found: tuple[str, ...]) -> None:
    assert gaps(**wanted) == found


def test_other_data_decide_in_part() -> None:
    rows = [
        {"claim": "a", "verdict": "refuted", "reason": "1 against > 2"},
        {"claim": "b", "verdict": "confirmed", "reason": ""},
    ]
    changed = list(on_other_data(rows, {"a"}, ["shop"], ["ml-1m"]))
    assert changed[0]["verdict"] == "refuted in part"
    assert changed[0]["reason"] == "1 against > 2; on shop in place of ml-1m"
    assert changed[1] == rows[1]
    assert list(on_other_data(rows, {"a"}, ["ml-1m"], ["ml-1m"])) == rows


def test_times_of_users_that_were_explained_together_decide_no_claim() -> None:
    frame = pd.DataFrame({"metric": ["time", "time", "POS-P"], "chunk": [1, 50, 50]})
    found = one_at_a_time(MeasuredMeans(frame, np.zeros((2, 3))))
    assert found.frame["metric"].tolist() == ["time", "POS-P"] and found.values.shape == (2, 2)
