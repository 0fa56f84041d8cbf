import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.madd import MADD, Config
from cfbench_tabular.table import Column
from cfbench_tabular.testing import Constant

COLUMNS = (
    Column("size"),
    Column("weight"),
    Column("colour", "categorical", ("red", "green", "blue")),
    Column("striped", "categorical", ("no", "yes")),
)
ENCODING = Encoding(
    COLUMNS, np.zeros(4), np.ones(4), np.array([0.0, -5.0, 0.0, 0.0]), np.array([10.0, 5.0, 1.0, 1.0])
)


def scored(factual, counterfactual, rows, **options):
    results = Observed(
        np.array([factual], dtype=float),
        np.array([counterfactual], dtype=float),
        np.zeros(1, dtype=np.int64),
        np.array([not np.isnan(counterfactual).any()]),
        ENCODING,
        np.array(rows, dtype=float),
        Constant(),
    )
    return MADD(Config(**options)).compute(results)["MADD"][0]


ROWS = [[0, 0, 1, 0, 0, 0], [2, 0, 1, 0, 0, 0], [4, 0, 1, 0, 0, 0], [6, 3, 0, 1, 0, 1], [9, 0, 0, 0, 1, 1]]
"""Median of size 4, absolute deviations 4, 2, 0, 2, 5: MAD 2. Weight: MAD 0, mean deviation 3 / 5."""


def test_by_hand():
    """Size moves by 4 = 2 MAD, the colour changes (two of four categorical places): 2 / 2 + 2 / 4."""
    assert scored([1, 0, 1, 0, 0, 0], [5, 0, 0, 1, 0, 0], ROWS) == pytest.approx(1.5)


def test_a_column_without_mad_counts_by_its_mean_deviation():
    assert scored([1, 0, 1, 0, 0, 0], [1, 3, 1, 0, 0, 0], ROWS) == pytest.approx(3 / 0.6 / 2)


def test_the_constant_of_cf_tabular_can_be_reproduced():
    paper = scored([1, 0, 1, 0, 0, 0], [1, 3, 1, 0, 0, 0], ROWS, zero_mad="paper")
    assert paper == pytest.approx(3 / 1e-8 / 2)


def test_a_column_that_training_rows_do_not_vary_in_counts_by_its_range():
    rows = [[4, 0, 1, 0, 0, 0]] * 5
    assert scored([4, 0, 1, 0, 0, 0], [6, 0, 1, 0, 0, 0], rows) == pytest.approx(2 / 10 / 2)


def test_no_counterfactual_has_no_value():
    assert np.isnan(scored([1, 0, 1, 0, 0, 0], [np.nan] * 6, ROWS))


number = st.sampled_from([-2.0, 0.0, 0.0, 0.5, 1.0, 4.0])
row = st.tuples(number, number, *[st.sampled_from([0.0, 1.0])] * 4).map(list)


@given(row, row, st.lists(row, min_size=1, max_size=7))
def test_it_is_the_literal_formula(factual, counterfactual, rows):
    expected = 0.0
    for place in (0, 1):
        values = [r[place] for r in rows]
        middle = statistics.median(values)
        deviations = [abs(v - middle) for v in values]
        spread = statistics.median(deviations) or statistics.mean(deviations) or 10.0
        expected += abs(factual[place] - counterfactual[place]) / spread / 2
    expected += sum(factual[place] != counterfactual[place] for place in range(2, 6)) / 4
    assert scored(factual, counterfactual, rows) == pytest.approx(expected)


def test_it_does_not_depend_on_the_batch(make_observed):
    """In CF-tabular, factuals without a counterfactual did."""
    rows = np.array([[0.0, 1.0], [1.0, 2.0], [4.0, 9.0]])
    pair = make_observed([[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [np.nan, np.nan]], background=rows)
    alone = make_observed([[0.0, 0.0]], [[1.0, 0.0]], background=rows)
    assert MADD(Config()).compute(pair)["MADD"][0] == MADD(Config()).compute(alone)["MADD"][0]
