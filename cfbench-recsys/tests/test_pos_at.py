"""POS@K_r,K_e."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.pos_at import Config, PosAt, pos_at


def test_the_item_is_among_the_first_five_or_not() -> None:
    np.testing.assert_array_equal(pos_at(np.array([5, 6, 1]), k_r=5), [1.0, 0.0, 1.0])


def test_column_names_show_departures_from_the_paper() -> None:
    assert PosAt(Config(k_r=(5,), k_e=(1, 2))).columns({"k": 10, "level": "item"})[1].name == "POS@5,2"
    assert (
        PosAt(Config(k_r=(5,), k_e=(1,), supporting_only=False)).columns({"k": 10, "level": "item"})[0].name
        == "POS-all@5,1"
    )


@pytest.mark.parametrize("supporting_only", [True, False])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_equals_the_formula(draw_implicit, supporting_only: bool, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, "item")
    metric = PosAt(Config(k_r=(1, 3), k_e=(1, 2, 9), supporting_only=supporting_only))
    results = metric.compute(case.implicit(importances))
    assert list(results) == [column.name for column in metric.columns({"k": case.k, "level": "item"})]
    for b, ((user, [item]), of_unit) in enumerate(zip(case.units(), importances, strict=True)):
        order = [i for i in case.order(user, of_unit) if of_unit[i] > 0 or not supporting_only]
        for k_r in (1, 3):
            for k_e in (1, 2, 9):
                rank = case.rank(user, case.histories[user] - set(order[:k_e]), item)
                name = f"POS{'' if supporting_only else '-all'}@{k_r},{k_e}"
                assert results[name][b] == (rank <= k_r)
