"""Whether rankings of explainers are stable when the recommender gets better (Consistency beyond top-1)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from cfbench_core import run as run_study
from cfbench_core.lifecycle.streams import generator
from cfbench_core.run_directory import Run
from cfbench_recsys.analysis.consistency import Config, Consistency

SAMPLES = Path(__file__).parents[1] / "samples"
quick = Consistency(Config(resamples=200, partitions=20))
Climb = Callable[..., Run]
METRIC = "POS-P@2"


@pytest.fixture
def climb(write: Any, make_cell: Any) -> Climb:
    """``climb({"25%": {"a": values, "b": values}, "100%": {...}}, ...)``: a run with a model at levels of quality.

    ``values`` are those of one metric, of all users' first items and second items in turn.
    """

    def climb(
        levels: Mapping[str, Mapping[str, Sequence[float]]],
        metric: str = METRIC,
        name: str = "run",
        seed: int = 0,
        roles: Mapping[str, str] | None = None,
        failed: Sequence[tuple[str, str]] = (),
        more: Sequence[Any] = (),
        **labels: Any,
    ) -> Run:
        cells = [
            make_cell(
                explainer,
                {metric: values},
                model=f"mf@{level}",
                role=(roles or {}).get(explainer, ""),
                status="failed" if (level, explainer) in failed else "ok",
                **labels,
            )
            for level, explainers in levels.items()
            for explainer, values in explainers.items()
        ]
        done = write(*cells, *more, name=name)
        shares = {"training": [0.25, 0.5, 1.0], "quality": [0.5, 1.0]}
        config = {
            "seed": seed,
            "recommenders": [
                {"name": "mf", "epochs": 3},
                "ease",
                *({"name": "mf", "label": label} for label in ("my@25%", "my@100%")),
            ],
            "protocol": {"checkpoints": shares},
        }
        (done.directory / "config.yaml").write_text(yaml.safe_dump(config))
        return done

    return climb


def of(
    table: pd.DataFrame, statistic: str = "spearman", metric: str = METRIC, **where: Any
) -> pd.Series[Any]:
    """The one row of a statement."""
    wanted = {"statistic": statistic, "metric": metric, "against": "", "sample": "all users", **where}
    rows = table[np.logical_and.reduce([table[name] == value for name, value in wanted.items()])]
    assert len(rows) == 1, rows
    return rows.iloc[0]


UP = {"a": [0.1, 0.1] * 4, "b": [0.2, 0.2] * 4, "c": [0.3, 0.3] * 4}
DOWN = {"a": [0.6, 0.6] * 4, "b": [0.5, 0.5] * 4, "c": [0.4, 0.4] * 4}
FIRST_DOWN = {"a": [0.6, 0.0] * 4, "b": [0.5, 0.2] * 4, "c": [0.4, 0.4] * 4}  # means of both: 0.3, 0.35, 0.4


def test_a_ranking_that_stays_and_one_that_turns_round(climb: Climb) -> None:
    stays = quick.table([climb({"25%": UP, "100%": UP}, name="stays")])
    turns = quick.table([climb({"25%": UP, "100%": DOWN}, name="turns")])
    for top in (1, 2):
        assert [of(stays, s, top=top)["mean"] for s in ("spearman", "kendall", "rank variance")] == [1, 1, 0]
        assert [of(turns, s, top=top)["mean"] for s in ("spearman", "kendall")] == [-1, -1]
        assert of(turns, "rank changes", top=top)["mean"] == pytest.approx(2 / 3)
        assert list(of(turns, top=top)[["ci_low", "ci_high"]]) == [-1, -1]  # every user says the same
    assert list(of(stays, top=2, against="top 1")[["mean", "ci_low", "ci_high"]]) == [0, 0, 0]


def test_a_ranking_that_only_the_first_items_turn_round(climb: Climb) -> None:
    """Top 1: reversed at the second level; top 2: not. With equal users, half of them give the same result."""
    table = quick.table([climb({"25%": UP, "100%": FIRST_DOWN})])
    for sample in ("all users", "size-matched"):
        row = of(table, sample=sample, top=2, against="top 1")
        assert list(row[["mean", "ci_low", "ci_high"]]) == [2, 2, 2]
    assert of(table, top=1)["mean"] == -1 and of(table, top=2)["mean"] == 1
    assert of(table, top=2)["n"] == 8
    assert of(table, top=2, sample="size-matched")["n"] == of(table, top=1)["n"] == 4
    words = quick.words(table)
    assert (
        "from -1 to 1" in words and "Among all users, yes: 2" in words and "(size-matched), yes: 2" in words
    )


def test_a_ranking_that_only_the_first_items_have(climb: Climb) -> None:
    second_down = {
        "a": [0.1, 0.9] * 4,
        "b": [0.2, 0.5] * 4,
        "c": [0.3, 0.1] * 4,
    }  # means of both: 0.5, 0.35, 0.2
    table = quick.table([climb({"25%": UP, "100%": second_down})])
    assert "Among all users, no: -2" in quick.words(table)


def test_a_small_difference_counts_as_none_and_a_doubtful_one_is_undecided(climb: Climb) -> None:
    rng = np.random.default_rng(1)
    table = quick.table([climb({"25%": noisy(rng), "100%": noisy(rng)})])
    row = of(table, metric="mean of all", top=2, against="top 1")
    assert row["ci_low"] < 0 < row["ci_high"]
    assert "Among all users, undecided" in quick.words(table)
    assert "Among all users, no" in Consistency(Config(margin=2)).words(table)


def test_higher_is_better_turns_a_ranking_but_not_its_agreement(climb: Climb) -> None:
    table = quick.table([climb({"25%": UP, "100%": FIRST_DOWN}, metric="NEG-P@2")])
    assert of(table, metric="NEG-P@2", top=1)["mean"] == -1
    means = table[(table["statistic"] == "mean") & (table["checkpoint"] == "25%") & (table["top"] == 2)]
    assert dict(zip(means["explainer"], means["rank"], strict=True)) == {"a": 3, "b": 2, "c": 1}


def test_explainers_who_always_tie_share_ranks(climb: Climb) -> None:
    tied = {**UP, "d": UP["a"]}
    row = of(
        quick.table([climb({"25%": tied, "50%": tied, "100%": {**DOWN, "d": DOWN["a"]}})]), "kendall", top=1
    )
    expected = [1.0, *2 * [stats.kendalltau([1, 2, 3, 1], [3, 2, 1, 3]).statistic]]
    assert row["mean"] == pytest.approx(np.mean(expected))


def noisy(rng: np.random.Generator, explainers: str = "abcd", users: int = 6) -> dict[str, Any]:
    return {name: rng.choice([0.0, 0.25, 0.5, 1.0], size=2 * users) for name in explainers}


def test_intervals_are_percentiles_over_the_same_users_at_all_levels(climb: Climb) -> None:
    """The bootstrap written out: each draw of users is ranked at both levels, its items together."""
    rng = np.random.default_rng(4)
    levels = {"25%": noisy(rng), "100%": noisy(rng)}
    table = quick.table([climb(levels)])
    draws = generator("consistency", "resamples", "0").integers(0, 6, size=(200, 6))

    def agreement(users: Sequence[int], top: int) -> float:
        costs = []
        for explainers in levels.values():
            lists = {name: np.reshape(values, (6, 2)) for name, values in explainers.items()}
            means = [
                np.mean([values[user][place] for user in users for place in range(top)])
                for values in lists.values()
            ]
            costs.append(np.round(means, 10))
        if min(len(set(level)) for level in costs) == 1:
            return np.nan
        return float(stats.spearmanr(*costs).statistic)

    top_1 = np.array([agreement(draw, 1) for draw in draws])
    top_2 = np.array([agreement(draw, 2) for draw in draws])
    halves = np.array([np.nanmean([agreement(draw[:3], 2), agreement(draw[3:], 2)]) for draw in draws])
    for found, row in (
        (top_1, of(table, top=1)),
        (top_2, of(table, top=2)),
        (top_2 - top_1, of(table, top=2, against="top 1")),
        (halves, of(table, top=2, sample="size-matched")),
        (halves - top_1, of(table, top=2, sample="size-matched", against="top 1")),
    ):
        expected = np.nanquantile(found, [0.025, 0.975])
        np.testing.assert_allclose([row["ci_low"], row["ci_high"]], expected, atol=1e-9)
    assert of(table, top=1)["mean"] == pytest.approx(agreement(range(6), 1))
    assert of(table, top=2)["mean"] == pytest.approx(agreement(range(6), 2))


def test_the_size_matched_number_is_the_mean_over_all_ways_to_halve_the_users(climb: Climb) -> None:
    """Four users can be cut into two halves in three ways; 3,000 cuts at random come near their mean."""
    rng = np.random.default_rng(5)
    levels = {"25%": noisy(rng, users=4), "100%": noisy(rng, users=4)}

    def agreement(users: Sequence[int]) -> float:
        means = [
            [np.mean(np.reshape(values, (4, 2))[list(users)]) for values in explainers.values()]
            for explainers in levels.values()
        ]
        return float(stats.spearmanr(*means).statistic)

    halves = [(0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)]
    row = of(
        Consistency(Config(resamples=1, partitions=3000)).table([climb(levels)]), top=2, sample="size-matched"
    )
    assert row["mean"] == pytest.approx(np.mean([agreement(half) for half in halves]), abs=0.02)


def test_the_mean_of_all_averages_over_metrics(climb: Climb, make_cell: Any) -> None:
    """Two metrics, one that stays and one that turns round: 0 on average."""
    more = [
        make_cell(name, {"POS-P@2": UP[name], "NEG-P@2": values[name], "Gini": UP[name]}, model=f"mf@{level}")
        for level, values in (("25%", UP), ("100%", DOWN))
        for name in "abc"
    ]
    table = quick.table([climb({}, more=more)])
    assert set(table["metric"]) == {"POS-P@2", "NEG-P@2", "mean of all", "HR@10"}
    assert of(table, metric="mean of all", top=1)["mean"] == 0
    assert of(table, "kendall", metric="mean of all", top=2)["mean"] == 0


def test_baselines_are_not_ranked_and_other_controls_are_by_default(climb: Climb) -> None:
    run = climb({"25%": UP, "100%": DOWN}, roles={"a": "baseline", "b": "reference"})

    def ranked(**options: Any) -> set[str]:
        table = Consistency(Config(resamples=10, partitions=2, **options)).table([run])
        return set(table["explainer"]) - {""}

    assert ranked() == {"b", "c"}
    assert ranked(controls=("reference", "baseline")) == {"a", "b", "c"}
    assert (
        Consistency(Config(controls=()))
        .incompatibility([run])
        .startswith("needs a recommender at two levels")
    )


def test_who_fails_at_one_level_is_ranked_at_none(climb: Climb) -> None:
    table = quick.table([climb({"25%": UP, "50%": UP, "100%": UP}, failed=[("50%", "b")])])
    assert set(table["explainer"]) == {"", "a", "c"}


def test_a_place_without_a_value_of_one_explainer_counts_for_none(climb: Climb) -> None:
    """c has no value for the only user who would rank it first."""
    values = {"a": [0.1, 0.1, 0.1, 0.1], "b": [0.2, 0.2, 0.2, 0.2], "c": [0.3, 0.3, None, 0.0]}
    table = quick.table([climb({"25%": values, "100%": UP_TWO})])
    mean = of(table, "mean", checkpoint="25%", explainer="c", top=1)
    assert (mean["mean"], mean["rank"], mean["n"]) == (0.3, 3, 1)


UP_TWO = {name: values[:4] for name, values in UP.items()}


def test_levels_of_training_and_of_quality_are_two_ladders_each_in_order(climb: Climb) -> None:
    table = quick.table([climb({"100%": UP, "25%": UP, "q100%": UP, "q50%": DOWN})])
    rows = table[(table["statistic"] == "mean") & (table["explainer"] == "a") & (table["top"] == 1)]
    assert rows.groupby("levels")["checkpoint"].agg(list).to_dict() == {
        "training": ["25%", "100%"],
        "quality": ["q50%", "q100%"],
    }
    assert of(table, levels="training", top=1)["mean"] == 1
    assert of(table, levels="quality", top=1)["mean"] == -1
    assert (table.loc[table["statistic"] == "HR@10", "mean"] == 0.25).all()
    words = quick.words(table)
    assert "Of 2 comparisons: all users, no in 2; size-matched, no in 2." in words


def test_a_model_that_is_only_called_so_is_no_level(climb: Climb, make_cell: Any) -> None:
    """``my@25%`` and ``my@100%`` are labels of recommenders of their own, ``mf@70%`` is no level of the protocol."""
    others = [
        make_cell(name, {METRIC: UP[name]}, model=model)
        for model in ("my@25%", "my@100%", "mf@70%", "ease")
        for name in "abc"
    ]
    table = quick.table([climb({"25%": UP, "100%": UP}, more=others)])
    assert set(table["model"]) == {"mf"}
    assert set(table["checkpoint"]) == {"", "25%", "100%"}


def test_runs_of_several_seeds_have_a_mean_and_a_spread(climb: Climb) -> None:
    rng = np.random.default_rng(8)
    runs = [climb({"25%": noisy(rng), "100%": noisy(rng)}, name=f"s{seed}", seed=seed) for seed in (3, 4, 5)]
    table = quick.table(runs)
    for where in ({"top": 1}, {"top": 2, "against": "top 1"}, {"top": 2, "sample": "size-matched"}):
        alone = [of(table, seeds=seed, **where)["mean"] for seed in ("3", "4", "5")]
        together = of(table, seeds="3, 4, 5", **where)
        assert together["mean"] == pytest.approx(np.mean(alone))
        assert together["spread"] == pytest.approx(np.std(alone, ddof=1))
        assert np.isnan(of(table, seeds="4", **where)["spread"])
    for seed, one in zip(("3", "4", "5"), runs, strict=True):
        own = quick.table([one])
        pd.testing.assert_frame_equal(
            own.reset_index(drop=True),
            table[table["seeds"] == seed].reset_index(drop=True),
            check_dtype=False,
        )
    mean = of(table, "mean", seeds="3, 4, 5", checkpoint="25%", explainer="a", top=1)
    alone = [of(table, "mean", seeds=s, checkpoint="25%", explainer="a", top=1)["mean"] for s in "345"]
    assert mean["mean"] == pytest.approx(np.mean(alone))
    assert "3, 4, 5" not in quick.words(table)
    assert len(quick.figures(table)) == len(quick.figures(table[table["seeds"] == "3, 4, 5"])) == 4


def test_runs_of_one_seed_are_distinguished_by_their_names(climb: Climb) -> None:
    runs = [climb({"25%": UP, "100%": UP}, name=name) for name in ("monday", "tuesday")]
    assert set(quick.table(runs)["seeds"]) == {"0 (monday), 0 (tuesday)", "0 (monday)", "0 (tuesday)"}


def test_lists_of_one_item_have_an_agreement_and_no_gain(climb: Climb) -> None:
    table = quick.table([climb({"25%": UP, "100%": DOWN}, k=1, metric="POS-P@1")])
    assert set(table["against"]) == {""} and set(table["sample"]) == {"all users", ""}
    assert quick.words(table) == (
        "shop · mf: rankings of explainers at 2 levels of training agree by -1 (-1 to -1) "
        "(Spearman, mean over metrics and pairs of levels)."
    )
    assert len(quick.figures(table)) == 2  # the matrix, and means by level at top 1


def test_it_declares_what_it_needs(climb: Climb, write: Any, make_cell: Any) -> None:
    assert quick.incompatibility([climb({"25%": UP, "100%": UP}, name="fits")]) == ""
    one_level = quick.incompatibility([climb({"25%": UP}, name="one-level")])
    assert one_level == (
        "needs a recommender at two levels of quality or more (protocol.checkpoints), each with two explainers"
    )
    assert (
        quick.incompatibility([climb({"25%": {"a": UP["a"]}, "100%": {"a": UP["a"]}}, name="one")])
        == one_level
    )
    assert quick.incompatibility([write(make_cell("a", {METRIC: UP["a"]}), name="no-levels")]) == one_level
    lists = climb({"25%": UP, "100%": UP}, name="lists", level="list")
    edits = climb({"25%": UP, "100%": UP}, name="edits", format="explicit")
    gini = climb({"25%": UP, "100%": UP}, name="gini", metric="Gini")
    for unfit in (lists, edits, gini):
        assert quick.incompatibility([unfit]) == (
            "needs importances for single items, and one of POS-P curve, NEG-P curve, POS-P, NEG-P"
        )
    assert Consistency(Config(metrics=("Gini",))).incompatibility([gini]) == ""


def test_figures_and_text_are_the_same_from_a_csv_file(climb: Climb) -> None:
    rng = np.random.default_rng(9)
    table = quick.table(
        [climb({"25%": noisy(rng), "q50%": noisy(rng), "100%": noisy(rng), "q100%": noisy(rng)})]
    )
    retained = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    figures = quick.figures(table)
    assert [figure.svg for figure in quick.figures(retained)] == [figure.svg for figure in figures]
    assert quick.words(retained) == quick.words(table)
    assert len({figure.title for figure in figures}) == len(figures) == 8
    for figure in figures:
        ElementTree.fromstring(figure.svg)
    assert "HR@10: 0.25 at 25%, 0.25 at 100%." in figures[2].note


def test_the_same_runs_have_the_same_answer(climb: Climb) -> None:
    rng = np.random.default_rng(10)
    run = climb({"25%": noisy(rng), "100%": noisy(rng)})
    pd.testing.assert_frame_equal(quick.table([run]), quick.table([Run(run.directory)]))


STUDY = {
    "suite": "recsys",
    "data": "debian-python",
    "recommenders": [{"name": "mf", "dimensions": 8, "epochs": 4}, "ease"],
    "explainers": [
        {"import": "my_lab:ByIndex", "label": "by-index"},
        {"import": "my_lab:NeedsTraining", "label": "learner"},
    ],
    "protocol": {
        "k": [3],
        "level": ["item"],
        "format": ["implicit"],
        "users": 20,
        "checkpoints": {"training": [0.25, 1.0]},
    },
    "metrics": ["curve-pos-p", {"name": "curve-neg-p", "t": [5]}],
    "executor": "inline",
}


def test_a_real_run_is_ranked_by_the_means_of_its_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(SAMPLES)
    done = run_study(STUDY, out=tmp_path / "run")
    table = quick.table([done])
    assert set(table["model"]) == {"mf"}
    whole = table[(table["statistic"] == "mean") & (table["top"] == 3)]
    found = whole.assign(model=whole["model"] + "@" + whole["checkpoint"])
    keys = ["model", "explainer", "metric"]
    expected = done.summary[done.summary["metric"].str.contains("curve")].set_index(keys)
    found = found.set_index(keys)
    assert len(found) == 2 * 2 * 4 and set(table.loc[table["top"] == 1, "n"]) == {20}
    np.testing.assert_allclose(found["mean"], expected.loc[found.index, "mean"], atol=1e-12)
    np.testing.assert_array_equal(found["n"], expected.loc[found.index, "n"])
    # In a table with as many users the summary's interval is that of the same bootstrap, with other draws.
    np.testing.assert_allclose(found["ci_low"], expected.loc[found.index, "ci_low"], atol=0.05)
    np.testing.assert_allclose(found["ci_high"], expected.loc[found.index, "ci_high"], atol=0.05)
    quality = done.quality.set_index(["model", "metric"])["value"]
    for level in ("25%", "100%"):
        row = of(table, "HR@10", metric="HR@10", checkpoint=level, sample="")
        assert row["mean"] == quality[f"mf@{level}", "HR@10"]
