"""Our metrics on 742 counterfactuals of CF-tabular, against the values stored with them.

The stored metrics are those of CF-tabular's own constraints: spread and covariance of all rows, an L2 of rows rounded to
four decimals, checks of realism with one side each, no slack.
"""

import dataclasses

import numpy as np
import pytest

from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.l2 import L2
from cfbench_tabular.metrics.l2 import Config as L2Config
from cfbench_tabular.metrics.madd import MADD
from cfbench_tabular.metrics.madd import Config as MADDConfig
from cfbench_tabular.metrics.mahalanobis import Config as MahalanobisConfig
from cfbench_tabular.metrics.mahalanobis import Mahalanobis
from cfbench_tabular.metrics.realism import Config as RealismConfig
from cfbench_tabular.metrics.realism import Realism
from cfbench_tabular.metrics.sparsity import Config as SparsityConfig
from cfbench_tabular.metrics.sparsity import Sparsity
from cfbench_tabular.observations import observed_of
from cfbench_tabular.testing import example_data

RULES = {
    "BCW": (Constraint(column="4", relation="product", of=("1", "1"), factor=np.pi, relative=0.1),),
    "PBC": (
        Constraint(column="2", relation="product", of=("0", "1"), absolute=1e-3),
        Constraint(column="3", relation="ratio", of=("1", "0"), absolute=0.005),
        Constraint(column="4", relation="ratio", of=("7", "2"), absolute=0.001),
        Constraint(column="5", relation="ratio", of=("8", "2"), absolute=0.001),
        Constraint(column="6", relation="ratio", of=("7", "9"), absolute=0.005),
    ),
}
"""Between the columns of CF-tabular's files, which have numbers for names: area = pi radius^2; area = height length,
eccentricity = length / height, and so on."""

ILL_DETERMINED = {"BalanceScale", "CarEvaluation", "Chess", "Nursery", "TicTacToe"}
"""Sets whose covariance is singular by its one-hot groups, and whose null space NumPy's default cut (1e-15) takes
for variance: the stored pseudo-inverse holds the inverses of rounding errors."""


@pytest.fixture(scope="module")
def golden(study):
    """For each set: the stored rows, and the counterfactuals as we judge them with CF-tabular's network."""
    pd = pytest.importorskip("pandas")
    stored = pd.read_parquet(study.reference / "counterfactuals_sample.parquet")
    stored = stored[stored["model_available"].astype(bool)]
    cases = {}
    for name, rows in stored.groupby("dataset"):
        vectors = np.stack(
            [
                study.factuals(name, label)[place]
                for label, place in zip(rows["factual_class"], rows["factual_idx"], strict=True)
            ]
        )
        counterfactuals = np.stack([np.asarray(row, dtype=float) for row in rows["counterfactual"]])
        factuals = Factuals(vectors, rows["factual_class"].to_numpy(), tuple(map(str, range(len(rows)))))
        cases[name] = rows, observed_of(study.network(name), factuals, counterfactuals, example_data())
    return cases


@pytest.fixture(scope="module")
def complete(golden, study):
    """Those of sets on hand as a whole: their counterfactuals know the encoding and all rows."""
    cases = {}
    for name, (rows, results) in golden.items():
        if not rows["background_data_partial"].any():
            encoding = dataclasses.replace(study.encoding(name), constraints=RULES.get(name, ()))
            vectors = study.vectors(name)
            changed = {"encoding": encoding, "background": vectors[:2], "table": vectors}
            cases[name] = rows, Observed(**{**vars(results), **changed})
    assert len(cases) == 19
    return cases


def equal(found, rows, column):
    return found == pytest.approx(rows[column].to_numpy(dtype=float), abs=1e-6, nan_ok=True)


def test_validity_sparsity_and_l2(golden):
    compared = 0
    for name, (rows, results) in golden.items():
        assert results.valid.tolist() == rows["validity"].astype(bool).tolist(), name
        # The encoding only returns which places are one column: here that of another set, cut to length.
        wide = dataclasses.replace(results, encoding=_plain(results.factuals.shape[1]))
        assert equal(Sparsity(SparsityConfig()).compute(wide)["sparsity"], rows, "sparsity"), name
        assert equal(L2(L2Config(decimals=4)).compute(results)["L2"], rows, "L2"), name
        compared += int(results.valid.sum())
    assert compared == 534


def test_madd_with_the_published_1e_8(complete):
    metric, compared = MADD(MADDConfig(zero_mad="paper", over="table")), 0
    for name, (rows, results) in complete.items():
        found = metric.compute(results)["MADD"]
        # Of values of 10^7 (a change of a column with MAD 0) six decimals are more than a double has.
        stored = rows["MADD_fixed"].to_numpy(dtype=float)
        assert found == pytest.approx(stored, abs=1e-6, rel=1e-12, nan_ok=True), name
        compared += int(results.valid.sum())
    assert compared == 511


def test_without_it_no_column_weighs_millions(complete):
    metric = MADD(MADDConfig(over="table"))
    largest = max(np.nanmax(metric.compute(results)["MADD"]) for _, results in complete.values())
    stored = max(rows["MADD_fixed"].max() for rows, _ in complete.values())
    assert stored > 1e7 and largest < 100


def test_mahalanobis_with_the_inverse_and_with_the_covariance(complete):
    inverse = Mahalanobis(MahalanobisConfig(over="table"))
    wrong = Mahalanobis(MahalanobisConfig(over="table", matrix="covariance"))
    compared = 0
    for name, (rows, results) in complete.items():
        assert equal(wrong.compute(results)["MD"], rows, "MD_paper"), name
        if name not in ILL_DETERMINED:
            assert equal(inverse.compute(results)["MD"], rows, "MD_pinv"), name
            compared += int(results.valid.sum())
    assert compared == 376


def test_five_stored_pseudo_inverses_are_made_of_rounding_errors(complete):
    """Cut at NumPy's default, the length of one and the same change depends on the order of the rows, by up to
    millions; ours does not, and agrees with the stored ones to about 1% where a change breaks no category."""
    draw = np.random.default_rng(0)
    inverse = Mahalanobis(MahalanobisConfig(over="table"))
    for name in ILL_DETERMINED:
        rows, results = complete[name]
        shuffled = dataclasses.replace(results, table=draw.permutation(results.table))
        found = inverse.compute(results)["MD"]
        assert inverse.compute(shuffled)["MD"] == pytest.approx(found, abs=1e-6, nan_ok=True)
        change = (results.counterfactuals - results.factuals)[results.valid]
        selected = np.all(
            [abs(change[:, group].sum(axis=1)) < 1e-6 for group in results.encoding.groups], axis=0
        )
        stored = rows["MD_pinv"].to_numpy(dtype=float)[results.valid]
        assert found[results.valid][selected] == pytest.approx(stored[selected], rel=0.02, abs=0.02)
        noisy = [
            np.linalg.pinv(np.cov(table, rowvar=False), rcond=1e-15)
            for table in (results.table, shuffled.table)
        ]
        lengths = [np.einsum("bi,ij,bj->b", change, matrix, change) for matrix in noisy]
        assert np.abs(lengths[0] - lengths[1]).max() > 1e-3


def test_realism_by_the_published_one_sided_checks(complete):
    # CF-tabular had no slack; one end of PBC's ranges comes out a bit of the last place off in our arithmetic.
    metric, compared = Realism(RealismConfig(tolerance=1e-16, constraint_check="one-sided")), 0
    for name, (rows, results) in complete.items():
        scores = metric.compute(results)
        for column in ("RUC", "RMC"):
            stored = np.where(results.valid, rows[column].to_numpy(dtype=float), np.nan)
            assert np.array_equal(scores[column], stored, equal_nan=True), (name, column)
        assert scores["realistic"].astype(bool).tolist() == rows["realistic"].astype(bool).tolist(), name
        compared += int(results.valid.sum())
    assert compared == 511


def test_two_sided_checks_differ_where_a_side_was_missing_and_nowhere_else(complete):
    two, one = (
        Realism(RealismConfig(tolerance=0.0)),
        Realism(RealismConfig(tolerance=0.0, constraint_check="one-sided")),
    )
    without_level = broken_rules = 0
    for name, (_, results) in complete.items():
        strict, lax = two.compute(results)["RMC"], one.compute(results)["RMC"]
        assert (strict[results.valid] <= lax[results.valid]).all(), name
        for place in np.flatnonzero(results.valid & (strict != lax)):
            vector, encoding = results.counterfactuals[place], results.encoding
            empty = any((vector[group] != 1.0).all() for group in encoding.groups)
            without_level += empty
            broken_rules += not encoding.constraints_hold(vector[None])[0]
            assert empty or name in RULES
    assert without_level == 19
    assert broken_rules > 0


def _plain(width):
    """An encoding of so many numeric columns."""
    from cfbench_tabular.encoding import Encoding
    from cfbench_tabular.table import Column

    zeros, ones = np.zeros(width), np.ones(width)
    return Encoding(tuple(Column(str(place)) for place in range(width)), zeros, ones, -ones, ones)
