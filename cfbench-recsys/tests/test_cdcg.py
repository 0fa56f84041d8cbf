"""CDCG@K_e."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.cdcg import Cdcg, Config, cdcg


def test_the_first_place_is_worth_one_and_the_third_a_half() -> None:
    assert cdcg(np.array([1, 3])) == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize("supporting_only", [True, False])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_equals_the_formula(draw_implicit, supporting_only: bool, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, "item")
    results = Cdcg(Config(k_e=(1, 2, 9), supporting_only=supporting_only)).compute(case.implicit(importances))
    for b, ((user, [item]), of_unit) in enumerate(zip(case.units(), importances, strict=True)):
        order = [i for i in case.order(user, of_unit) if of_unit[i] > 0 or not supporting_only]
        for k_e in (1, 2, 9):
            rank = case.rank(user, case.histories[user] - set(order[:k_e]), item)
            name = f"CDCG{'' if supporting_only else '-all'}@{k_e}"
            assert results[name][b] == pytest.approx(1 / np.log2(1 + rank), abs=1e-12)
