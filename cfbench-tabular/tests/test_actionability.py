import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.actionability import Actionability, Config
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import Column
from cfbench_tabular.testing import Constant

ENCODING = Encoding(
    (
        Column("age", direction="up"),
        Column("debt", direction="down"),
        Column("income"),
        Column("born", "categorical", ("here", "there", "elsewhere"), immutable=True),
    ),
    np.zeros(4),
    np.ones(4),
    np.array([-1.0, -1.0, -1.0, 0.0]),
    np.array([1.0, 1.0, 1.0, 1.0]),
)
FACTUAL = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]


def actionable(counterfactual, factual=FACTUAL):
    counterfactual = np.array([counterfactual], dtype=float)
    valid = ~np.isnan(counterfactual).any(axis=1)
    results = Observed(
        np.array([factual], dtype=float),
        counterfactual,
        np.zeros(1, dtype=np.int64),
        valid,
        ENCODING,
        np.zeros((1, 6)),
        Constant(),
    )
    return Actionability(Config()).compute(results)["actionable"][0]


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ({}, 1.0),
        ({0: 0.5, 1: -0.5, 2: -1.0}, 1.0),
        ({0: -0.5}, 0.0),  # no one gets younger
        ({1: 0.5}, 0.0),
        ({2: 1.5}, 0.0),  # beyond what was observed
        ({2: 1.0 + 1e-13}, 1.0),  # rounding
        ({3: 0.0, 4: 1.0}, 0.0),  # born somewhere else
        ({0: np.nan}, np.nan),
    ],
)
def test_each_rule_by_hand(changed, value):
    counterfactual = [changed.get(place, number) for place, number in enumerate(FACTUAL)]
    assert np.array_equal(actionable(counterfactual), value, equal_nan=True)


def test_a_factual_beyond_the_range_may_stay_there():
    beyond = [5.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert actionable(beyond, beyond) == 1.0
    assert actionable([6.0, *beyond[1:]], beyond) == 0.0


step = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])


@given(step, step, step, st.booleans())
def test_it_is_the_literal_conjunction(age, debt, income, moved):
    counterfactual = [age, debt, income, *([0.0, 1.0, 0.0] if moved else [1.0, 0.0, 0.0])]
    rules = [0 <= age <= 1, -1 <= debt <= 0, -1 <= income <= 1, not moved]
    assert actionable(counterfactual) == float(all(rules))


def test_without_constraints_only_ranges_count():
    free = tuple(dataclasses.replace(c, direction="any", immutable=False) for c in ENCODING.columns)
    assert dataclasses.replace(ENCODING, columns=free).allowed(np.array([FACTUAL]))[0].tolist() == [
        [-1.0, -1.0, -1.0, 0.0, 0.0, 0.0]
    ]
