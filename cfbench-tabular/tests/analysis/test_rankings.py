"""Ranks of explainers, and what may be concluded from them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cfbench_core.statistics import friedman, nemenyi_critical_difference, ranks
from cfbench_tabular.analysis.rankings import DATA_SETS, FACTUALS, Config, Rankings
from cfbench_tabular.analysis.run_data import masked

rankings = Rankings(Config())
NAN = float("nan")


def answered(make_cell: Any, name: str, coverage: list[float], distance: list[float], **given: Any) -> Any:
    return make_cell(name, {"validity": coverage, "L2": distance}, **given)


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """On u0 both counterfactual, a nearer: 1 and 2. On u1 only b: 2 and 1. On u2 no one: both 1.5."""
    run = write(
        answered(make_cell, "a", [1, 0, 0], [1.0, 0.1, NAN]),  # its 0.1 is no counterfactual: it is masked
        answered(make_cell, "b", [1, 1, 0], [2.0, 5.0, NAN]),
    )
    table = rankings.table([run]).query("reading == 'factuals'").set_index(["metric", "explainer"])
    assert table.loc[("L2", "a"), "rank"] == table.loc[("L2", "b"), "rank"] == 1.5
    assert table.loc[("validity", "a"), "rank"] == pytest.approx((1.5 + 2 + 1.5) / 3)
    assert table.loc[("validity", "b"), "rank"] == pytest.approx((1.5 + 1 + 1.5) / 3)
    assert (table["units"] == 3).all()


def test_average_ranks_of_twelve_algorithms_equal_the_published_ones(study: Any) -> None:
    """Per-factual metrics of the authors' later ranking; values of counterfactuals that are not valid are masked first."""
    rows = pd.read_parquet(study.reference / "ranking_categorical.parquet")
    expected = pd.read_csv(study.reference / "ranking_categorical_expected.csv", index_col=0)
    factual = ["dataset", "factual_class", "factual_idx"]

    def wide(name: str) -> pd.DataFrame:
        values = rows.assign(value=rows[name].astype(float))
        return values.pivot(index=factual, columns="algorithm", values="value")[list(expected.columns)]

    named = {"MAD": "MADD_paper_misaligned", "MD": "MD_paper"}
    higher, valid = ("validity", "sparsity"), wide("validity").to_numpy()
    assert valid.shape == (1327, 12)
    for metric, published in expected.iterrows():
        values = masked(wide(named.get(metric, metric)).to_numpy(), valid)
        found = ranks(values, "higher" if metric in higher else "lower").mean(axis=0)
        assert found == pytest.approx(published.to_numpy(dtype=float), abs=1e-6), metric


def test_it_is_the_test_of_friedman_with_iman_and_davenports_degrees_of_freedom(study: Any) -> None:
    """On the same real ranks, full of ties: scipy's statistic, F with (k-1) and (k-1)(N-1), scikit-posthocs' Nemenyi."""
    scikit_posthocs = pytest.importorskip("scikit_posthocs")
    from scipy import stats

    rows = pd.read_parquet(study.reference / "ranking_categorical.parquet")
    rows = rows.assign(value=rows["L2"].astype(float).where(rows["validity"].astype(bool)))
    values = rows.pivot(
        index=["dataset", "factual_class", "factual_idx"], columns="algorithm", values="value"
    ).to_numpy()
    ranked = ranks(values, "lower")
    test = friedman(ranked, "lower")
    k, n = 12, len(ranked)
    assert test.statistic == pytest.approx(stats.friedmanchisquare(*ranked.T).statistic)
    assert test.f_statistic == pytest.approx((n - 1) * test.statistic / (n * (k - 1) - test.statistic))
    assert test.f_p_value == pytest.approx(stats.f.sf(test.f_statistic, k - 1, (k - 1) * (n - 1)))
    p_values = scikit_posthocs.posthoc_nemenyi_friedman(ranked).to_numpy()
    apart = np.abs(test.average_ranks[:, None] - test.average_ranks)
    difference = nemenyi_critical_difference(k, n)
    clear = np.abs(apart - difference) > 1e-3
    assert ((apart > difference) == (p_values < 0.05))[clear].all()


def test_data_sets_as_units_need_more_than_factuals_do(write: Any, make_cell: Any) -> None:
    """Of two explainers a wins on every factual of four data sets: hundreds of factuals, and four data sets."""
    names, size = ["w", "x", "y", "z"], 50
    run = write(
        *(answered(make_cell, "a", [1] * size, [1.0] * size, dataset=name) for name in names),
        *(answered(make_cell, "b", [1] * size, [2.0] * size, dataset=name) for name in names),
        data={name: {} for name in names},
    )
    table = rankings.table([run]).query("metric == 'L2' and criterion == 'valid'")
    by = table.set_index(["reading", "explainer"])
    assert by.loc[(FACTUALS, "a"), "units"] == 200 and by.loc[(DATA_SETS, "a"), "units"] == 4
    assert by.loc[(FACTUALS, "a"), "rank"] == by.loc[(DATA_SETS, "a"), "rank"] == 1.0
    assert not by.loc[(FACTUALS, "b"), "best"]
    assert by.loc[(DATA_SETS, "b"), "cd"] == pytest.approx(1.96 * np.sqrt(2 * 3 / (6 * 4)), abs=1e-3)
    words = rankings.words(rankings.table([run]))
    assert "significant with factuals as units" in words and "with data sets as units" in words


def test_groups_go_by_the_types_of_columns(write: Any, make_cell: Any) -> None:
    numbers, words = (
        {"numeric_columns": 2, "categorical_columns": 0},
        {"numeric_columns": 0, "categorical_columns": 2},
    )
    both = {"numeric_columns": 1, "categorical_columns": 1}
    data = {"n1": numbers, "n2": numbers, "c": words, "m": both}
    run = write(
        *(answered(make_cell, who, [1, 1], [1.0, 2.0], dataset=name) for who in "ab" for name in data),
        data=data,
    )
    table = rankings.table([run]).query("metric == 'L2' and reading == 'factuals' and explainer == 'a'")
    assert dict(zip(table["group"], table["units"], strict=True)) == {
        "total": 8,
        "numerical": 4,
        "categorical": 2,
        "mixed": 2,
    }


def test_each_data_set_may_be_a_group_of_its_own(write: Any, make_cell: Any) -> None:
    run = write(
        *(answered(make_cell, "a", [1, 1], [1.0, 2.0], dataset=name) for name in ("x", "y")),
        answered(make_cell, "b", [1, 1], [2.0, 3.0], dataset="x"),
        answered(make_cell, "b", [1, 1], [0.0, 0.0], dataset="y"),
        data={"x": {}, "y": {}},
    )
    table = Rankings(Config(each=True)).table([run]).query("metric == 'L2' and criterion == 'valid'")
    found = table.set_index(["group", "explainer"])["rank"]
    assert found["total", "a"] == 1.5 and found["x", "a"] == 1.0 and found["y", "a"] == 2.0


def test_who_failed_is_last_and_who_was_not_to_run_is_not_ranked(write: Any, make_cell: Any) -> None:
    run = write(
        *(answered(make_cell, who, [1, 1], [1.0, 2.0]) for who in "ab"),
        answered(make_cell, "broken", [1, 1], [0.0, 0.0], status="failed"),
        answered(make_cell, "elsewhere", [1, 1], [0.0, 0.0], status="skipped"),
        answered(make_cell, "control", [1, 1], [0.0, 0.0], role="baseline"),
    )
    found = (
        rankings.table([run]).query("metric == 'L2' and reading == 'factuals'").set_index("explainer")["rank"]
    )
    assert found.to_dict() == {"a": 1.5, "b": 1.5, "broken": 3.0}


def test_realistic_counterfactuals_have_their_own_ranking(write: Any, make_cell: Any) -> None:
    def of(name: str, realistic: list[int]) -> Any:
        return make_cell(
            name, {"validity": [1, 1], "RUC": realistic, "realistic": realistic, "L2": [1.0, 1.0]}
        )

    table = rankings.table([write(of("a", [1, 1]), of("b", [0, 0]))]).query("reading == 'factuals'")
    by = table.set_index(["criterion", "metric", "explainer"])["rank"]
    assert by["valid", "L2", "a"] == by["valid", "L2", "b"] == 1.5
    assert by["realistic", "validity", "a"] == by["realistic", "L2", "a"] == 1.0
    assert "RUC" not in by["realistic"].index.get_level_values("metric")


@pytest.mark.parametrize("broken", [{"role": "bound"}, {"status": "failed"}])
def test_one_competitor_alone_is_no_question(write: Any, make_cell: Any, broken: dict[str, str]) -> None:
    run = write(
        answered(make_cell, "a", [1, 1], [1.0, 2.0]), answered(make_cell, "b", [1, 1], [1.0, 2.0], **broken)
    )
    assert rankings.incompatibility([run]) == "needs two explainers or more that compete"


def test_of_a_real_run_averages_are_those_of_its_scores(real_run: Any) -> None:
    table = rankings.table([real_run])
    scores = real_run.scores.set_index(["dataset", "unit", "explainer", "metric"])["value"].unstack("metric")
    blank = scores["L2"].where(scores["validity"] == 1).unstack("explainer")
    expected = blank.rank(axis=1, na_option="bottom").mean()
    found = table.query(
        "metric == 'L2' and criterion == 'valid' and group == 'total' and reading == 'factuals'"
    )
    pd.testing.assert_series_equal(
        found.set_index("explainer")["rank"].sort_index(), expected.sort_index(), check_names=False
    )
    selected = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    figures = rankings.figures(table)
    assert [f.svg for f in rankings.figures(selected)] == [f.svg for f in figures] and len(figures) >= 8
    assert rankings.words(selected) == rankings.words(table)
