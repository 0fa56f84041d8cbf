import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_tabular.constraints import Constraint
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.realism import (
    Config,
    Realism,
    multivariate,
    one_sided_multivariate,
    univariate,
)
from cfbench_tabular.table import Column
from cfbench_tabular.testing import Constant, example_data

ENCODING = Encoding(
    (
        Column("size"),
        Column("colour", "categorical", ("red", "green", "blue")),
        Column("striped", "categorical", ("no", "yes")),
    ),
    mean=np.zeros(3),
    scale=np.ones(3),
    low=np.array([-1.0, 0.0, 0.0]),
    high=np.array([2.0, 1.0, 1.0]),
)


@pytest.mark.parametrize(
    ("vector", "ruc", "rmc"),
    [
        ([0.5, 0, 1, 0, 1], True, True),
        ([2.0, 0, 1, 0, 1], True, True),  # the end of the range belongs to it
        ([2.1, 0, 1, 0, 1], False, True),
        ([-1.1, 0, 1, 0, 1], False, True),
        ([0.5, 0, 0.9, 0, 1], False, False),
        ([0.5, 0, 1, 0, 0.5], False, True),  # a two-valued column is no group
        ([0.5, 1, 1, 0, 1], True, False),  # two levels
        ([0.5, 0, 0, 0, 1], True, False),  # no level: CF-tabular counted it as realistic
        ([np.nan] * 5, False, False),
    ],
)
def test_each_constraint_by_hand(vector, ruc, rmc):
    vectors = np.array([vector])
    assert univariate(ENCODING, vectors, 0.0).tolist() == [ruc]
    assert multivariate(ENCODING, vectors).tolist() == [rmc]


value = st.sampled_from([0.0, 1.0, 0.5, -1.0, 2.0, 2.5])


@given(st.lists(value, min_size=5, max_size=5))
def test_they_are_the_literal_constraints(vector):
    ruc = -1.0 <= vector[0] <= 2.0 and all(place in (0.0, 1.0) for place in vector[1:])
    rmc = sorted(vector[1:4]) == [0.0, 0.0, 1.0]
    assert univariate(ENCODING, np.array([vector]), 0.0).tolist() == [ruc]
    assert multivariate(ENCODING, np.array([vector])).tolist() == [rmc]


def test_every_row_of_a_table_is_realistic():
    data = example_data()
    assert univariate(data.encoding, data.vectors, 0.0).all()
    assert multivariate(data.encoding, data.vectors).all()


def test_realistic_requires_validity_ruc_and_rmc_and_is_never_missing():
    good, broken = [0.5, 0, 1, 0, 1], [0.5, 1, 1, 0, 1]
    counterfactuals = np.array([good, broken, good, [np.nan] * 5])
    scores = Realism(Config()).compute(
        Observed(
            factuals=np.zeros((4, 5)),
            counterfactuals=counterfactuals,
            factual_classes=np.zeros(4, dtype=np.int64),
            valid=np.array([True, True, False, False]),
            encoding=ENCODING,
            background=np.zeros((1, 5)),
            model=Constant(),
        )
    )
    assert scores["realistic"].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.array_equal(scores["RUC"], [1.0, 1.0, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(scores["RMC"], [1.0, 0.0, np.nan, np.nan], equal_nan=True)


RULED = Encoding(
    tuple(Column(name) for name in ("height", "length", "area", "ratio")),
    mean=np.array([1.0, 1.0, 0.0, 0.0]),
    scale=np.array([2.0, 1.0, 1.0, 1.0]),
    low=np.full(4, -9.0),
    high=np.full(4, 9.0),
    constraints=(
        Constraint(column="area", relation="product", of=("height", "length"), absolute=0.5),
        Constraint(column="ratio", relation="ratio", of=("length", "height"), absolute=0.1),
    ),
)


@pytest.mark.parametrize(
    ("row", "both", "study"),
    [
        ((2.0, 3.0, 6.0, 1.5), True, True),
        ((2.0, 3.0, 6.4, 1.55), True, True),  # within what is rounded
        ((2.0, 3.0, 5.0, 1.5), False, False),  # the area is too small
        ((2.0, 3.0, 7.0, 1.5), False, True),  # too large: CF-tabular did not look
        ((2.0, 3.0, 6.0, 1.7), False, False),  # the ratio is too large
        ((2.0, 3.0, 6.0, 1.0), False, True),  # too small: CF-tabular did not look
    ],
)
def test_constraints_between_columns_hold_both_ways_or_as_in_cf_tabular(row, both, study):
    vector = ((np.array(row) - RULED.mean) / RULED.scale)[None]
    assert multivariate(RULED, vector).tolist() == [both]
    assert one_sided_multivariate(RULED, vector).tolist() == [study]


def test_the_study_let_part_of_a_level_pass_as_one():
    vectors = np.array([[0.5, 0, 0.4, 0, 1], [0.5, 0, 1, 0, 1], [0.5, 0.5, 0.5, 0, 1], [0.5, 0, 0, 0, 1]])
    assert one_sided_multivariate(ENCODING, vectors).tolist() == [True, True, False, False]
    assert multivariate(ENCODING, vectors).tolist() == [False, True, False, False]
