"""The continuous originals of LXR: POS-P, NEG-P, NDCG-P, DEL-P and INS-P over 11 points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.base import compute_metrics
from cfbench_recsys.metrics.lxr_curves import Config as CurvesConfig
from cfbench_recsys.metrics.lxr_curves import LxrCurves, point_name
from cfbench_recsys.metrics.lxr_del_p import LxrDelP, lxr_del_p
from cfbench_recsys.metrics.lxr_ins_p import LxrInsP
from cfbench_recsys.metrics.lxr_ndcg_p import LxrNdcgP, lxr_ndcg_p
from cfbench_recsys.metrics.lxr_neg_p import LxrNegP
from cfbench_recsys.metrics.lxr_pos_p import Config, LxrPosP, lxr_pos_p


def test_the_untouched_profile_is_one_of_the_points() -> None:
    before, after = np.array([1]), np.full((1, 10), 3)
    assert lxr_pos_p(before, after, t=1) == pytest.approx([1 / 11])
    assert lxr_ndcg_p(before, after) == pytest.approx([(1 + 10 * 0.5) / 11])
    assert lxr_del_p(np.array([0.0]), np.full((1, 10), -1e9), "sigmoid") == pytest.approx([0.5 / 11])


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "identity"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_they_equal_the_mean_over_eleven_points(draw_implicit, link: str, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, "item")
    case.link = link
    lists = Config(t=(1, 2, 5))
    metrics = [LxrPosP(lists), LxrNegP(lists), LxrNdcgP(), LxrDelP(), LxrInsP()]
    results = compute_metrics(metrics, case.implicit(importances))

    for b, ((user, [item]), of_unit) in enumerate(zip(case.units(), importances, strict=True)):
        history, order = case.histories[user], case.order(user, of_unit)
        chunks = [len(chunk) for chunk in np.array_split(np.array(order), 10)]
        gone = [sum(chunks[:point]) for point in range(11)]
        pos = [history - set(order[:n]) for n in gone]
        neg = [history - set(order[::-1][:n]) for n in gone]
        ins = [set(order[:n]) for n in gone]
        for t in (1, 2, 5):
            expected = np.mean([case.rank(user, profile, item) <= t for profile in pos])
            assert results[f"LXR-POS-P@{t}"][b] == pytest.approx(expected, abs=1e-12)
            expected = np.mean([case.rank(user, profile, item) <= t for profile in neg])
            assert results[f"LXR-NEG-P@{t}"][b] == pytest.approx(expected, abs=1e-12)
        expected = np.mean([1 / math.log2(1 + case.rank(user, profile, item)) for profile in pos])
        assert results["LXR-NDCG-P"][b] == pytest.approx(expected, abs=1e-12)
        assert results["LXR-DEL-P"][b] == pytest.approx(
            np.mean([case.value(x, item) for x in pos]), abs=1e-12
        )
        assert results["LXR-INS-P"][b] == pytest.approx(
            np.mean([case.value(x, item) for x in ins]), abs=1e-12
        )


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "identity"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_means_of_the_curves_are_the_metrics(draw_implicit, link: str, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, "item")
    case.link = link
    metrics = [LxrPosP(Config(t=(2,))), LxrNdcgP(), LxrDelP(), LxrInsP(), LxrCurves(CurvesConfig(t=2))]
    results = compute_metrics(metrics, case.implicit(importances))
    for curve in ("POS-P@2", "NDCG-P", "DEL-P", "INS-P"):
        points = np.stack([results[point_name(curve, share)] for share in range(0, 101, 10)])
        assert points.mean(axis=0) == pytest.approx(results[f"LXR-{curve}"], abs=1e-12)
    for b, (user, [item]) in enumerate(case.units()):
        assert results[point_name("DEL-P", 0)][b] == pytest.approx(case.value(case.histories[user], item))
        assert results[point_name("INS-P", 0)][b] == pytest.approx(case.value(set(), item))
        assert results[point_name("DEL-P", 100)][b] == pytest.approx(case.value(set(), item))
