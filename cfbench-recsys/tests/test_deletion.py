"""DEL@K_e."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.deletion import Config, Deletion, deletion


def test_half_the_score_is_left_or_the_score_is_a_half() -> None:
    after, before = np.array([[0.0]]), np.array([[1000.0]])  # sigmoids 1/2 and 1
    assert deletion(after, before, normalize=True) == pytest.approx(0.5)
    assert deletion(after, before, normalize=False) == pytest.approx(0.5)


def test_the_ratio_survives_scores_that_float64_cannot_hold() -> None:
    tiny = np.array([[-800.0]])  # its sigmoid underflows to 0
    assert deletion(tiny - math.log(2), tiny, normalize=True) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("supporting_only", "normalize"), [(True, True), (False, True), (True, False), (False, False)]
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_it_equals_the_formula(
    draw_implicit, supporting_only: bool, normalize: bool, data: st.DataObject
) -> None:
    case, importances = draw_implicit(data, "item")
    metric = Deletion(Config(k_e=(1, 2, 9), supporting_only=supporting_only, normalize=normalize))
    results = metric.compute(case.implicit(importances))
    names = [column.name for column in metric.columns({"k": case.k, "level": "item"})]
    for b, ((user, [item]), of_unit) in enumerate(zip(case.units(), importances, strict=True)):
        order = [i for i in case.order(user, of_unit) if of_unit[i] > 0 or not supporting_only]
        before = 1 / (1 + math.exp(-case.score(case.histories[user], item)))
        for name, k_e in zip(names, (1, 2, 9), strict=True):
            after = 1 / (1 + math.exp(-case.score(case.histories[user] - set(order[:k_e]), item)))
            assert results[name][b] == pytest.approx(after / before if normalize else after, rel=1e-12)


def test_the_four_variants_have_four_names() -> None:
    variants = [
        Config(k_e=(3,), supporting_only=s, normalize=n) for s in (True, False) for n in (True, False)
    ]
    names = [Deletion(config).columns({"k": 5, "level": "item"})[0].name for config in variants]
    assert names == ["DEL@3", "DEL-raw@3", "DEL-all@3", "DEL-raw-all@3"]
