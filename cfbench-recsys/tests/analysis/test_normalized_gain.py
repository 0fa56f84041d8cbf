"""Metrics on a scale from random to the best that is known."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cfbench_recsys.analysis.normalized_gain import NormalizedGain

normalized_gain = NormalizedGain()


def rows(table: Any, metric: str) -> Any:
    return table[table["metric"] == metric].set_index("explainer")


def test_the_smallest_example_in_both_directions(write: Any, make_cell: Any) -> None:
    """POS-P: random 0.8, the reference 0.4, and 0.6 and 0.9 in between and beyond. NEG-P is its mirror."""
    means = {"random": 0.8, "greedy": 0.4, "middling": 0.6, "worse": 0.9}
    roles = {"random": "baseline", "greedy": "reference"}
    run = write(
        *(
            make_cell(
                name,
                {"POS-P@2": [mean - 0.1, mean + 0.1] * 2, "NEG-P@2": [1 - mean + 0.1, 1 - mean - 0.1] * 2},
                role=roles.get(name, ""),
            )
            for name, mean in means.items()
        )
    )
    assert normalized_gain.incompatibility([run]) == ""
    table = normalized_gain.table([run])
    for metric in ("POS-P@2", "NEG-P@2"):
        found = rows(table, metric)
        assert found["mean"].to_dict() == pytest.approx(
            {"random": 0.0, "greedy": 1.0, "middling": 0.5, "worse": -0.25}
        )
        assert (found["best_is"] == "greedy").all() and (found["reason"] == "").all()
    found = rows(table, "POS-P@2")
    assert found["value"].to_dict() == pytest.approx(means)
    assert found["random"].unique().tolist() == pytest.approx([0.8])
    assert found["best"].unique().tolist() == pytest.approx([0.4])


def test_numerator_and_denominator_are_of_the_same_resample(write: Any, make_cell: Any) -> None:
    """Everybody wins half of what there is to win, however much that is: the half is certain."""
    draw = np.random.default_rng(0)
    random, best = draw.uniform(0.6, 0.9, 40), draw.uniform(0.1, 0.4, 40)
    run = write(
        make_cell("random", {"POS-P@1": random}, k=1),
        make_cell("greedy", {"POS-P@1": best}, k=1),
        make_cell("half", {"POS-P@1": (random + best) / 2}, k=1),
    )
    found = rows(normalized_gain.table([run]), "POS-P@1")[["mean", "ci_low", "ci_high"]]
    assert found.loc["half"].tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert found.loc["random"].tolist() == [0.0, 0.0, 0.0]
    assert found.loc["greedy"].tolist() == [1.0, 1.0, 1.0]


def test_the_interval_is_that_over_all_resamples_of_users(write: Any, make_cell: Any) -> None:
    """Four users with two items each: all 256 resamples, literally."""
    draw = np.random.default_rng(3)
    random, own, best = (draw.uniform(*ends, 8) for ends in ((0.7, 1.0), (0.3, 0.8), (0.0, 0.3)))
    run = write(
        make_cell("random", {"POS-P@2": random}),
        make_cell("a", {"POS-P@2": own}),
        make_cell("greedy", {"POS-P@2": best}, role="reference"),
    )
    found = rows(normalized_gain.table([run]), "POS-P@2").loc["a"]
    ratios = []
    for users in itertools.product(range(4), repeat=4):
        units = [unit for user in users for unit in (2 * user, 2 * user + 1)]
        r, o, b = random[units].mean(), own[units].mean(), best[units].mean()
        ratios.append((o - r) / (b - r))
    low, high = np.quantile(ratios, [0.025, 0.975])
    assert [found["ci_low"], found["ci_high"]] == pytest.approx([low, high], abs=0.02)
    assert found["mean"] == pytest.approx((own.mean() - random.mean()) / (best.mean() - random.mean()))
    assert found["n"] == 8


def test_without_random_there_is_no_scale(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("random", {"POS-P@2": [0.5, 0.6]}),
        make_cell("a", {"POS-P@2": [0.1, 0.2]}),
        make_cell("a", {"POS-P@2": [0.1, 0.2]}, model="ease"),
    )
    assert normalized_gain.incompatibility([run]) == ""
    table = normalized_gain.table([run])
    other = table[table["model"] == "ease"]
    assert other["mean"].isna().all() and (other["reason"] == "no result of random").all()
    alone = write(make_cell("a", {"POS-P@2": [0.1, 0.2]}), name="alone")
    assert "random" in normalized_gain.incompatibility([alone])


def test_without_an_explainer_better_than_random_there_is_no_scale(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("random", {"POS-P@2": [0.5, 0.5], "PN-S@2": [1, 1]}),
        make_cell("a", {"POS-P@2": [0.5, 0.5], "PN-S@2": [0, 1]}),
    )
    table = normalized_gain.table([run])
    assert table["mean"].isna().all()
    assert (table["reason"] == "no explainer is better than random").all()


def test_a_best_that_does_not_differ_from_random_has_no_interval(write: Any, make_cell: Any) -> None:
    random = np.random.default_rng(0).random(30)
    own = random[::-1] + 0.01
    run = write(make_cell("random", {"NEG-P@1": random}, k=1), make_cell("a", {"NEG-P@1": own}, k=1))
    table = normalized_gain.table([run])
    assert sorted(table["mean"])[-1] == 1.0
    assert (
        table["ci_low"].isna().all()
        and (table["reason"] == "no interval: the best does not differ significantly from random").all()
    )
    assert normalized_gain.figures(table) == []


def test_columns_without_a_better_direction_are_left_out(write: Any, make_cell: Any) -> None:
    metrics = {"PN-S@2": [0, 1], "#Additions": [0, 0]}
    run = write(make_cell("random", metrics), make_cell("a", metrics))
    assert set(normalized_gain.table([run])["metric"]) == {"PN-S@2"}


def test_the_summary_names_the_best_competitor_and_its_share(write: Any, make_cell: Any) -> None:
    draw = np.random.default_rng(0)
    noise = draw.normal(0, 0.01, (4, 30))
    run = write(
        make_cell("random", {"POS-P@1": 0.8 + noise[0]}, k=1, role="baseline"),
        make_cell("greedy", {"POS-P@1": 0.4 + noise[1]}, k=1, role="reference"),
        make_cell("good", {"POS-P@1": 0.5 + noise[2]}, k=1),
        make_cell("poor", {"POS-P@1": 0.7 + noise[3]}, k=1),
    )
    table = normalized_gain.table([run])
    mean = table.set_index("explainer").loc["good", "mean"]
    assert f"good is the best competitor, {mean:.3g} (" in normalized_gain.words(table)
    (figure,) = normalized_gain.figures(table)
    assert "greedy (reference)" in figure.svg and "random (baseline)" in figure.svg
