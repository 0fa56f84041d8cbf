"""Whose standing depends on the recommender."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cfbench_recsys.analysis.recommenders import Config, Recommenders

recommenders = Recommenders(Config())


def around(mean: float, seed: int) -> Any:
    """Forty users, clearly around a mean."""
    noise = np.random.default_rng(seed).normal(0, 0.02, 40)
    return mean + noise - noise.mean()


def study(write: Any, make_cell: Any, means: dict[str, dict[str, float]], **given: Any) -> Any:
    """``means``: model -> explainer -> POS-P; the first cell's letters are the roles."""
    roles = {"random": "baseline", "popularity": "baseline", "greedy": "reference"}
    scopes = {"lightgcn": "user-only"}
    return write(
        *(
            make_cell(
                name,
                {"POS-P@1": around(mean, 10 * n + m)},
                model=model,
                k=1,
                role=roles.get(name, ""),
                scope=scopes.get(model, "user-vector"),
            )
            for m, (model, own) in enumerate(means.items())
            for n, (name, mean) in enumerate(own.items())
        ),
        **given,
    )


SWAPPED = {
    "mf": {"a": 0.3, "b": 0.5, "random": 0.7, "greedy": 0.2},
    "lightgcn": {"a": 0.8, "b": 0.6, "random": 0.9, "greedy": 0.5},
}


def test_two_explainers_that_change_places_are_reported(write: Any, make_cell: Any) -> None:
    run = study(write, make_cell, SWAPPED)
    assert recommenders.incompatibility([run]) == ""
    table = recommenders.table([run])
    reversal = table[table["against"] != ""]
    assert reversal[["explainer", "against", "model", "other"]].values.tolist() == [
        ["a", "b", "mf", "lightgcn"],
        ["a", "b", "lightgcn", "mf"],
    ]
    assert reversal["mean"].tolist() == pytest.approx([-0.2, 0.2])
    assert (reversal["ci_low"] < reversal["mean"]).all() and (reversal["mean"] < reversal["ci_high"]).all()
    words = recommenders.words(table)
    assert words.startswith(
        "Of 3 pairs of explainers 1 are reversed significantly"
    )  # a-b, a-random, b-random
    assert "a (1) and b (1)" in words
    assert (
        "by POS-P@1 (shop) a minus b is -0.2 (" in words
        and "for mf, and 0.2 (" in words
        and words.endswith("for lightgcn.")
    )


def test_means_are_reported_with_scaled_scores_and_ranks(write: Any, make_cell: Any) -> None:
    """The user's own interactions: a profile's and a graph's stand side by side."""
    table = recommenders.table([study(write, make_cell, SWAPPED)])
    plain = table[table["against"] == ""].set_index(["model", "explainer"])
    assert set(table["edges"]) == {"own"}
    assert plain.loc["mf", "mean"].to_dict() == pytest.approx(SWAPPED["mf"])
    assert plain.loc["mf", "scaled"].to_dict() == pytest.approx(
        {"a": 0.8, "b": 0.4, "random": 0.0, "greedy": 1.0}
    )
    assert plain.loc["lightgcn", "place"].dropna().to_dict() == {"a": 2, "b": 1, "random": 3}
    assert np.isnan(plain.loc[("mf", "greedy"), "place"])
    (figure,) = recommenders.figures(table)
    assert figure.title == "POS-P@1: shop" and ">mf<" in figure.svg and ">lightgcn<" in figure.svg


def test_a_difference_that_could_be_chance_is_no_reversal(write: Any, make_cell: Any) -> None:
    means = {"mf": {"a": 0.3, "b": 0.5}, "ease": {"a": 0.501, "b": 0.5}}
    table = recommenders.table([study(write, make_cell, means)])
    assert (table["against"] == "").all()
    assert recommenders.words(table).endswith("between two recommenders, of 1 pair.")


def test_two_floors_that_change_places_are_of_no_interest(write: Any, make_cell: Any) -> None:
    means = {
        "mf": {"random": 0.3, "popularity": 0.5, "a": 0.1},
        "ease": {"random": 0.5, "popularity": 0.3, "a": 0.1},
    }
    table = recommenders.table([study(write, make_cell, means)])
    assert (table["against"] == "").all() and "of 2 pairs" in recommenders.words(table)


def test_a_competitor_that_falls_below_a_baseline_is_reported(write: Any, make_cell: Any) -> None:
    means = {"mf": {"random": 0.5, "a": 0.3}, "ease": {"random": 0.3, "a": 0.5}}
    table = recommenders.table([study(write, make_cell, means)])
    assert table[table["against"] != ""][["explainer", "role", "against", "mean"]].values.tolist() == [
        ["random", "baseline", "a", pytest.approx(0.2)],
        ["random", "baseline", "a", pytest.approx(-0.2)],
    ]


def test_bounds_do_not_take_part_in_reversals(write: Any, make_cell: Any) -> None:
    means = {"mf": {"greedy": 0.3, "a": 0.5}, "ease": {"greedy": 0.5, "a": 0.3}}
    assert (recommenders.table([study(write, make_cell, means)])["against"] == "").all()


def test_levels_of_quality_of_one_model_are_no_recommenders(write: Any, make_cell: Any) -> None:
    means = {"mf@25%": {"a": 0.3}, "mf@q80%": {"a": 0.4}, "ease": {"a": 0.5}}
    run = study(write, make_cell, means)
    assert "two recommenders" in recommenders.incompatibility([run])
    assert recommenders.table([run]).empty
    assert recommenders.words(recommenders.table([run])) == ""


def test_one_explainer_alone_has_no_standing(write: Any, make_cell: Any) -> None:
    run = study(write, make_cell, {"mf": {"a": 0.3}, "ease": {"a": 0.4}})
    assert "two explainers" in recommenders.incompatibility([run]) and recommenders.table([run]).empty


def test_other_edges_are_another_question(write: Any, make_cell: Any) -> None:
    """What a graph explainer does with all edges is not compared with a profile explainer."""
    run = write(
        make_cell("cf", {"PN-S@1": [1.0, 0.0]}, k=1, format="explicit", model="lightgcn", scope="full"),
        make_cell("cf", {"PN-S@1": [1.0, 0.0]}, k=1, format="explicit"),
    )
    assert recommenders.incompatibility([run]) != ""


def test_runs_of_different_models_are_analysed_together(write: Any, make_cell: Any) -> None:
    one = study(write, make_cell, {"mf": SWAPPED["mf"]}, name="one")
    other = study(write, make_cell, {"lightgcn": SWAPPED["lightgcn"]}, name="other")
    assert recommenders.incompatibility([one]) != "" and recommenders.incompatibility([one, other]) == ""
    table = recommenders.table([one, other])
    assert "run" not in table.columns and (table["against"] == "b").sum() == 2
