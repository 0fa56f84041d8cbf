"""Constraints as polynomials hold for exactly the rows for which the constraints hold."""

from __future__ import annotations

import numpy as np
import pytest
from constrained_grid import case_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cfbench_tabular.explainers.constraint_forms import alternatives, raw_columns, value_of, values_at
from cfbench_tabular.explainers.exact import reach_of
from cfbench_tabular.explainers.optimum import costs_of


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1_000_000), slack=st.booleans())
def test_one_of_the_alternatives_holds_where_the_constraint_does(seed: int, slack: bool) -> None:
    case = case_of(seed)
    assume(case is not None)
    encoding = case.encoding
    reach = reach_of(costs_of("l1", case.context()), case.factual)
    columns = raw_columns(reach, encoding.constraints)
    low, high = encoding.allowed(case.factual[None])
    inside = np.flatnonzero(((case.rows >= low - 1e-9) & (case.rows <= high + 1e-9)).all(axis=1))
    for place in np.random.default_rng(seed).choice(inside, size=min(30, len(inside)), replace=False):
        values = values_at(columns, reach, case.rows[place])
        holds = [
            any(
                all(value_of(polynomial, values) <= 0 for polynomial in part)
                for part in alternatives(one, columns, slack)
            )
            for one in encoding.constraints
        ]
        assert all(holds) == case.possible[place]
