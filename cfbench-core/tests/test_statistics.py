from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from cfbench_core import statistics
from cfbench_core.lifecycle.streams import generator

NAN = float("nan")


def exhaustive(values: list[float], clusters: list[int], level: float = 0.95) -> tuple[float, float]:
    """The interval over *all* resamples of the clusters, written as the definition has it."""
    names = sorted(set(clusters))
    means = []
    for drawn in itertools.product(names, repeat=len(names)):
        pooled = [v for name in drawn for v, c in zip(values, clusters, strict=True) if c == name and v == v]
        if pooled:
            means.append(sum(pooled) / len(pooled))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


# Bootstrap


def test_a_percentile_interval_leaves_out_missing_replicates() -> None:
    assert statistics.percentile_interval([*range(41), NAN]) == pytest.approx(
        (1.0, 39.0)
    )  # a fortieth on each side
    assert statistics.percentile_interval([3.0], level=0.5) == (3.0, 3.0)
    assert np.isnan(statistics.percentile_interval([NAN, NAN])).all()
    assert np.isnan(statistics.percentile_interval([])).all()


def test_two_units_can_only_average_to_three_values() -> None:
    low, high = statistics.bootstrap_interval([0.0, 1.0])
    assert (low, high) == (0.0, 1.0)
    low, high = statistics.bootstrap_interval([0.0, 1.0], level=0.2)
    assert (low, high) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("values", "clusters"),
    [
        ([0.1, 0.9, 0.4, 0.35, 0.7], [0, 1, 2, 3, 4]),
        ([0.1, 0.2, 0.9, 0.8, 0.85, 0.4, 0.1], [0, 0, 1, 1, 1, 2, 3]),
        ([0.1, NAN, 0.9, 0.8, NAN, 0.4, NAN], [0, 0, 1, 1, 1, 2, 3]),
    ],
)
def test_intervals_are_those_over_all_resamples_of_clusters(values: list[float], clusters: list[int]) -> None:
    found = statistics.bootstrap_interval(values, level=0.8, resamples=40_000, clusters=clusters)
    assert np.allclose(found, exhaustive(values, clusters, level=0.8), atol=0.012)


def test_intervals_agree_with_scipy() -> None:
    values = np.random.default_rng(3).gamma(1.0, size=200)
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(0)
    ).confidence_interval
    assert np.allclose(statistics.bootstrap_interval(values, resamples=20_000), expected, atol=0.01)


def test_units_of_one_user_do_not_count_as_independent() -> None:
    users = np.repeat(np.arange(40), 10)
    values = np.random.default_rng(0).normal(size=40)[users]  # ten copies of one number for each user
    low, high = statistics.bootstrap_interval(values, clusters=users)
    alone_low, alone_high = statistics.bootstrap_interval(values[::10])
    assert np.allclose([low, high], [alone_low, alone_high])
    naive_low, naive_high = statistics.bootstrap_interval(values)
    assert high - low > 2.5 * (naive_high - naive_low)


def test_one_cluster_says_nothing_of_its_spread() -> None:
    low, high = statistics.bootstrap_interval([[0.3, 1.0], [0.4, NAN]], clusters=["a", "a"])
    assert np.isnan(low).all() and np.isnan(high).all()
    low, high = statistics.bootstrap_interval([[0.3, 1.0], [0.4, NAN]])
    assert np.isnan(low).tolist() == [False, True]


def test_columns_of_a_matrix_are_resampled_as_if_alone() -> None:
    values = np.random.default_rng(1).random((30, 3))
    values[::4, 1] = NAN
    low, high = statistics.bootstrap_interval(values)
    for column in range(3):
        assert np.allclose(statistics.bootstrap_interval(values[:, column]), (low[column], high[column]))


def test_means_of_resamples_are_those_that_intervals_are_made_of() -> None:
    draw = np.random.default_rng(1)
    values, clusters = draw.random((40, 2)), draw.integers(0, 9, 40)
    values[::3, 1] = NAN
    means = statistics.resampled_means(values, clusters=clusters)
    assert means.shape == (2000, 2)
    assert np.allclose(
        np.quantile(means, [0.025, 0.975], axis=0), statistics.bootstrap_interval(values, clusters=clusters)
    )


def test_the_columns_of_a_resample_are_means_of_the_same_draws() -> None:
    values = np.random.default_rng(2).random(25)
    means = statistics.resampled_means(np.column_stack([values, 3 * values, NAN * values]), resamples=50)
    assert np.allclose(means[:, 1], 3 * means[:, 0]) and np.isnan(means[:, 2]).all()


def test_the_interval_does_not_depend_on_the_order_of_the_units() -> None:
    draw = np.random.default_rng(5)
    values, clusters = draw.random(50), draw.integers(0, 12, 50)
    order = draw.permutation(50)
    assert np.allclose(
        statistics.bootstrap_interval(values, clusters=clusters),
        statistics.bootstrap_interval(values[order], clusters=clusters[order]),
        rtol=1e-12,
    )


def test_a_generator_of_ones_own_is_used() -> None:
    values = np.random.default_rng(5).random(50)
    first = statistics.bootstrap_interval(values, generator=generator("a"))
    assert first == statistics.bootstrap_interval(values, generator=generator("a"))
    assert first != statistics.bootstrap_interval(values, generator=generator("b"))


def test_more_units_than_fit_a_block_give_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(size=30_000)  # 133 resamples a block
    low, high = statistics.bootstrap_interval(values, resamples=400)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert abs((high - low) / 2 / half - 1) < 0.15


# Summary


def scores(*rows: tuple[str, str, str, float]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["cell", "metric", "unit", "value"])
    return frame.assign(user=frame["unit"].str.split("/").str[0])


def test_a_summary_by_hand() -> None:
    table = scores(
        ("c", "hit", "a/1", 1.0), ("c", "hit", "a/2", 0.0),
        ("c", "hit", "b/1", 1.0), ("c", "hit", "b/2", NAN),
        ("c", "edits", "a/1", 3.0), ("c", "edits", "a/2", NAN), ("c", "edits", "b/1", 5.0),
    )  # fmt: skip
    summary = statistics.summarise(table, cluster="user").set_index("metric")
    assert summary.loc["hit", ["mean", "n", "n_missing"]].tolist() == [2 / 3, 3, 1]
    assert summary.loc["hit", "std"] == pytest.approx(np.std([1, 0, 1], ddof=1))
    assert summary.loc["edits", ["mean", "n", "n_missing"]].tolist() == [4.0, 2, 2]
    assert summary.loc["hit", ["ci_low", "ci_high"]].tolist() == [0.5, 1.0]  # user a alone, user b alone


@pytest.mark.parametrize(
    "values",
    [[np.inf, np.inf], [-np.inf, np.inf, 1.0], [1.0, np.inf, 2.0], [np.nan, np.nan], [1.0, np.nan, 4.0]],
)
def test_the_deviation_of_infinite_scores_is_missing(values: list[float]) -> None:
    scores = pd.DataFrame({"cell": "c", "metric": "m", "unit": range(len(values)), "value": values})
    (row,) = statistics.summarise(scores).to_dict("records")
    with np.errstate(invalid="ignore"):
        expected = pd.Series(values, dtype=float).agg(["mean", "std"]).tolist()
    assert [row["mean"], row["std"]] == pytest.approx(expected, nan_ok=True)


def test_a_summary_does_not_depend_on_other_cells_or_the_order_of_rows() -> None:
    draw = np.random.default_rng(0)
    rows = [
        (cell, metric, f"u{user}/{item}", draw.random())
        for cell in ("x", "y", "z")
        for metric in ("m", "n")
        for user in range(9)
        for item in range(3)
    ]
    whole = statistics.summarise(scores(*rows), cluster="user").set_index(["cell", "metric"])
    alone = statistics.summarise(scores(*[row for row in rows if row[0] == "y"]), cluster="user")
    mixed = statistics.summarise(scores(*[rows[i] for i in draw.permutation(len(rows))]), cluster="user")
    pd.testing.assert_frame_equal(whole.loc[["y"]], alone.set_index(["cell", "metric"]))
    pd.testing.assert_frame_equal(whole, mixed.set_index(["cell", "metric"]).loc[whole.index], rtol=1e-12)
    low, high = statistics.bootstrap_interval(
        [r[3] for r in rows[:27]], clusters=[r[2].split("/")[0] for r in rows[:27]]
    )
    assert np.allclose(whole.loc[("x", "m"), ["ci_low", "ci_high"]].astype(float), [low, high])


def test_a_unit_scored_twice_is_an_error_and_units_that_could_not_be_listed_are_none() -> None:
    with pytest.raises(ValueError, match="scored twice"):
        statistics.summarise(scores(("c", "m", "a", 1.0), ("c", "m", "a", 2.0)))
    nobody = scores(("c", "m", "a", 1.0)).assign(unit=None)
    assert statistics.summarise(nobody).empty


def test_cells_are_aligned_by_their_units() -> None:
    cells = statistics.unit_values(
        scores(("x", "m", "b", 2.0), ("x", "m", "a", 1.0), ("y", "m", "b", 5.0), ("y", "n", "c", 7.0))
    )
    units, clusters, values = statistics.align([cells["x"], cells["y"]], ["m", "n"])
    assert units.tolist() == clusters.tolist() == ["a", "b", "c"]
    assert np.array_equal(values[:, :, 0], [[1, NAN], [2, 5], [NAN, NAN]], equal_nan=True)
    assert np.array_equal(values[:, :, 1], [[NAN, NAN], [NAN, NAN], [NAN, 7]], equal_nan=True)


# Paired comparison


def test_five_units_all_better_have_the_exact_p_of_one_in_sixteen() -> None:
    found = statistics.paired_difference([2, 4, 6, 8, 10], [1, 2, 3, 4, 5])
    assert found.difference == 3.0
    assert found.p_value == pytest.approx(2 / 2**5)
    assert found.n == 5
    assert found.ci_low > 0


def test_only_units_with_both_values_count_and_equal_methods_do_not_differ() -> None:
    found = statistics.paired_difference([1.0, NAN, 3.0], [1.0, 2.0, NAN])
    assert found == (0.0, pytest.approx(NAN, nan_ok=True), pytest.approx(NAN, nan_ok=True), 1.0, 1)
    same = statistics.paired_difference([0.2, 0.5, 0.1], [0.2, 0.5, 0.1])
    assert same == (0.0, 0.0, 0.0, 1.0, 3)
    assert statistics.paired_difference([NAN], [1.0]).n == 0


def test_clusters_are_what_wilcoxon_compares() -> None:
    draw = np.random.default_rng(0)
    users = np.repeat(np.arange(12), 5)
    effect = draw.normal(0.2, 1, size=12)
    first = effect[users] + draw.normal(0, 0.1, 60)
    found = statistics.paired_difference(first, np.zeros(60), clusters=users)
    expected = stats.wilcoxon(pd.Series(first).groupby(users).mean())
    assert found.p_value == pytest.approx(expected.pvalue)


# Rankings


def test_ranks_by_hand() -> None:
    values = [[0.9, 0.5, 0.5, NAN], [NAN, NAN, 1.0, 2.0]]
    assert statistics.ranks(values, "higher").tolist() == [[1, 2.5, 2.5, 4], [3.5, 3.5, 2, 1]]
    assert statistics.ranks(values, "lower").tolist() == [[3, 1.5, 1.5, 4], [3.5, 3.5, 1, 2]]
    with pytest.raises(ValueError, match="direction"):
        statistics.ranks(values, "")


tied = st.integers(3, 6).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 4), min_size=k, max_size=k), min_size=3, max_size=12)
)


@settings(max_examples=60, deadline=None)
@given(tied)
def test_friedman_agrees_with_scipy_with_ties(values: list[list[int]]) -> None:
    found = statistics.friedman(values, "higher")
    if all(len(set(row)) == 1 for row in values):
        assert (found.statistic, found.p_value) == (0.0, 1.0)
        return
    expected = stats.friedmanchisquare(*np.array(values).T)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_iman_davenport_is_the_analysis_of_variance_of_the_ranks() -> None:
    ranks = statistics.ranks(np.random.default_rng(4).integers(0, 5, size=(14, 4)) + np.arange(4), "lower")
    n, k = ranks.shape
    between = n * ((ranks.mean(axis=0) - ranks.mean()) ** 2).sum()
    residual = ((ranks - ranks.mean(axis=0) - ranks.mean(axis=1, keepdims=True) + ranks.mean()) ** 2).sum()
    expected = (between / (k - 1)) / (residual / ((k - 1) * (n - 1)))
    found = statistics.friedman(ranks, "lower")
    assert found.f_statistic == pytest.approx(expected)
    assert found.f_p_value == pytest.approx(stats.f.sf(expected, k - 1, (k - 1) * (n - 1)))


def test_perfect_agreement_of_all_units_has_an_infinite_f() -> None:
    found = statistics.friedman([[3, 2, 1]] * 5, "higher")
    assert found.average_ranks.tolist() == [1, 2, 3]
    assert found.statistic == pytest.approx(10)
    assert (found.f_statistic, found.f_p_value) == (np.inf, 0.0)
    with pytest.raises(ValueError, match="at least 2"):
        statistics.friedman([[1, 2]], "higher")


@pytest.mark.parametrize(
    ("methods", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (8, 3.031), (10, 3.164)]
)
def test_critical_differences_use_demsars_table_of_q(methods: int, q: float) -> None:
    found = statistics.nemenyi_critical_difference(methods, 30)
    assert found / np.sqrt(methods * (methods + 1) / (6 * 30)) == pytest.approx(q, abs=1e-3)


def test_nemenyi_agrees_with_scikit_posthocs() -> None:
    values = np.random.default_rng(2).random((20, 5)) + np.arange(5) / 8
    found = statistics.nemenyi_p_values(statistics.friedman(values, "lower").average_ranks, 20)
    expected = scikit_posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    assert np.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("methods", [2, 3, 12, 20, 60])
@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.001])
def test_critical_differences_are_scipys_quantiles_of_the_studentized_range(
    methods: int, alpha: float
) -> None:
    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf)
    expected = q * np.sqrt(methods * (methods + 1) / (12 * 7))
    assert statistics.nemenyi_critical_difference(methods, 7, alpha) == pytest.approx(expected, rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 6)),
        elements=st.sampled_from([0, 1, 2.5, -np.inf, np.inf]),
    )
)
def test_ranks_are_scipys(values: np.ndarray) -> None:
    assert np.array_equal(statistics.ranks(values, "lower"), stats.rankdata(values, axis=1))
    assert np.array_equal(statistics.ranks(values, "higher"), stats.rankdata(-values, axis=1))


def test_bars_join_methods_without_a_significant_difference() -> None:
    assert statistics.indistinguishable([1.0, 1.8, 2.4, 5.0], 1.0) == [(0, 1), (1, 2)]
    assert statistics.indistinguishable([2.0, 1.0, 1.5], 3.0) == [(1, 2, 0)]
    assert statistics.indistinguishable([1.0, 3.0], 1.0) == []


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.floats(-2, 2, width=16) | st.just(np.inf)), max_size=25)
    | st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=101, max_size=110),
)
@example([(1, 2.0), (2, NAN), (3, 1.0)])
def test_rank_agreement_is_kendalls_tau_b(pairs: list[tuple[int, float]]) -> None:
    first, second = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    expected = stats.kendalltau(first, second).statistic if len(pairs) > 1 else np.nan
    assert statistics.rank_agreement(first, second) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_rank_agreement_by_hand() -> None:
    # pairs: (1,2) concordant, (1,3) concordant, (2,3) tied in the first only
    assert statistics.rank_agreement([1, 2, 2], [1, 2, 3]) == pytest.approx(2 / np.sqrt(2 * 3))
    assert statistics.rank_agreement([1, 2, 3], [3, 2, 1]) == -1.0
    assert np.isnan(statistics.rank_agreement([1, 1, 1], [1, 2, 3]))


@settings(max_examples=40, deadline=None)
@given(tied, st.sampled_from(["higher", "lower"]))
def test_win_rates_are_counted_pair_by_pair(values: list[list[int]], direction: str) -> None:
    found = statistics.win_rates(values, direction)
    sign = 1 if direction == "higher" else -1
    for i, j in itertools.product(range(len(values[0])), repeat=2):
        wins = [1.0 if sign * row[i] > sign * row[j] else 0.5 if row[i] == row[j] else 0.0 for row in values]
        assert found[i, j] == pytest.approx(sum(wins) / len(wins))


def test_average_ranks_of_the_published_study() -> None:
    """Paper 003's categorical ranking: answers that are not valid are blanked, blanks share the last rank."""
    data = Path(os.environ.get("CFBENCH_DATA_DIR", Path(__file__).parents[3] / "shared" / "data"))
    folder = data.parent / "reference" / "tabular"
    if not folder.is_dir():
        pytest.skip(f"no reference values at {folder}")
    found = pd.read_parquet(folder / "ranking_categorical.parquet")
    expected = pd.read_csv(folder / "ranking_categorical_expected.csv", index_col=0)
    units = ["dataset", "factual_class", "factual_idx"]
    valid = found["validity"].astype(bool)
    found["valid"] = np.where(valid, 1.0, NAN)
    columns = {
        "validity": "valid",
        "sparsity": "sparsity",
        "L2": "L2",
        "MAD": "MADD_paper_misaligned",
        "MD": "MD_paper",
    }
    for name, column in columns.items():
        values = found.assign(value=found[column].where(valid)).pivot(
            index=units, columns="algorithm", values="value"
        )
        direction = "higher" if name in ("validity", "sparsity") else "lower"
        average = statistics.ranks(values[expected.columns].to_numpy(), direction).mean(axis=0)
        assert np.allclose(average, expected.loc[name], atol=1e-6), name


def test_the_interval_of_many_clusters_is_that_of_the_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    clusters = draw.integers(0, 2000, 6000)
    values = draw.exponential(size=(6000, 2)) + (clusters % 5)[:, None] / 3
    values[draw.random(values.shape) < 0.1] = np.nan
    drawn = np.array(statistics.bootstrap_interval(values, clusters=clusters, resamples=20_000))
    monkeypatch.setattr("cfbench_core.statistics.bootstrap.LARGE", 1000)
    normal = np.array(statistics.bootstrap_interval(values, clusters=clusters))
    half = (drawn[1] - drawn[0]) / 2
    assert (np.abs(normal - drawn) < 0.04 * half).all()
