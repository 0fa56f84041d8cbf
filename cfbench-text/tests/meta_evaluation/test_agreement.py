"""AUC, pairwise accuracy and Kendall's tau against scikit-learn, SciPy and counting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from cfbench_text.meta_evaluation.agreement import _draws, _Pairs, agreement

small = st.integers(-3, 3)


@st.composite
def rated(draw):
    """Values, ratings, what is right and documents of up to 25 texts, with many ties."""
    n = draw(st.integers(4, 25))
    values = np.array(draw(st.lists(small, min_size=n, max_size=n)), dtype=np.float64)
    labels = np.array(draw(st.lists(small, min_size=n, max_size=n)), dtype=np.float64)
    documents = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    documents = np.unique(documents, return_inverse=True)[1]
    return values, labels, labels >= labels.max(), documents


@settings(deadline=None, max_examples=150)
@given(rated())
def test_point_estimates_equal_those_of_scikit_learn_and_scipy(drawn) -> None:
    values, labels, good, documents = drawn
    found = agreement(values, labels, good, documents, resamples=2)

    if good.all():
        assert np.isnan(found.auc[0])
    else:
        assert found.auc[0] == pytest.approx(roc_auc_score(good, values))
    tau = stats.kendalltau(values, labels).statistic
    assert found.kendall[0] == pytest.approx(tau, nan_ok=True)


@settings(deadline=None, max_examples=100)
@given(rated())
def test_pairwise_accuracy_counts_pairs(drawn) -> None:
    values, labels, good, documents = drawn
    found = agreement(values, labels, good, documents, resamples=2)

    pairs = [(i, j) for i, j in itertools.product(range(len(values)), repeat=2) if labels[i] > labels[j]]
    inside = [(i, j) for i, j in pairs if documents[i] == documents[j]]
    counted = inside or pairs
    assert (found.within, found.pairs) == (bool(inside), len(counted))
    if counted:
        credit = [1.0 if values[i] > values[j] else 0.5 * (values[i] == values[j]) for i, j in counted]
        assert found.pairwise[0] == pytest.approx(np.mean(credit))
    else:
        assert np.isnan(found.pairwise[0])


@settings(deadline=None, max_examples=60)
@given(rated(), st.data())
def test_weights_are_the_same_as_repeated_texts(drawn, data) -> None:
    values, labels, good, documents = drawn
    counts = data.draw(st.lists(st.integers(0, 3), min_size=6, max_size=6))
    weights = np.array(counts, dtype=np.float64)[documents]
    rows = np.repeat(np.arange(len(values)), weights.astype(int))

    weighted = _Pairs(values, labels, good, documents).measures(weights[None])[0]
    if 0 < good[rows].sum() < len(rows):
        assert weighted[0] == pytest.approx(roc_auc_score(good[rows], values[rows]))
    tau = stats.kendalltau(values[rows], labels[rows]).statistic if len(rows) else np.nan
    assert weighted[2] == pytest.approx(tau, nan_ok=True)


def test_intervals_are_those_of_texts_that_were_drawn_one_by_one() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 4, 60).astype(float)
    values = labels + draw.normal(0, 2, 60)
    documents = np.repeat(np.arange(20), 3)
    found = agreement(values, labels, labels == 3, documents, resamples=200, seed=5)

    taus, aucs = [], []
    for weights in itertools.chain.from_iterable(_draws(20, 60, 200, 5)):
        rows = np.repeat(np.arange(60), weights[documents].astype(int))
        taus.append(stats.kendalltau(values[rows], labels[rows]).statistic)
        aucs.append(roc_auc_score(labels[rows] == 3, values[rows]))
    assert found.kendall[1:] == pytest.approx(np.quantile(taus, [0.025, 0.975]))
    assert found.auc[1:] == pytest.approx(np.quantile(aucs, [0.025, 0.975]))


def test_interval_of_independent_texts_is_near_the_one_of_delong() -> None:
    """DeLong et al. 1988: the variance of the AUC from the placements of both groups."""
    draw = np.random.default_rng(1)
    good = draw.random(400) < 0.4
    values = good * 0.8 + draw.normal(0, 1, 400)
    found = agreement(values, good.astype(float), good, np.arange(400), resamples=2000)

    above = (values[good][:, None] > values[~good]).astype(float)
    variance = above.mean(axis=1).var(ddof=1) / good.sum() + above.mean(axis=0).var(ddof=1) / (~good).sum()
    half = 1.96 * np.sqrt(variance)
    assert found.auc[0] == pytest.approx(above.mean())
    assert found.auc[1:] == pytest.approx([above.mean() - half, above.mean() + half], abs=0.008)


def test_intervals_of_dependent_texts_are_wider() -> None:
    draw = np.random.default_rng(2)
    documents = np.repeat(np.arange(30), 10)
    of_document = draw.normal(0, 1, 30)[documents]
    labels = (of_document + draw.normal(0, 0.3, 300) > 0).astype(float)
    values = of_document + draw.normal(0, 1, 300)
    together = agreement(values, labels, labels == 1, documents)
    alone = agreement(values, labels, labels == 1, np.arange(300))

    assert np.diff(together.auc[1:]) > 1.5 * np.diff(alone.auc[1:])


def test_the_measures_cover_the_truth_in_95_of_100_samples() -> None:
    """Two normal groups one deviation apart: AUC = Phi(1 / sqrt 2)."""
    truth = stats.norm.cdf(1 / np.sqrt(2))
    inside = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        good = np.repeat([True, False], 60)
        values = good + draw.normal(0, 1, 120)
        _, low, high = agreement(values, good.astype(float), good, np.arange(120), 300, seed).auc
        inside += low <= truth <= high
    assert 178 <= inside <= 198  # 190 expected, about 3 standard deviations


def test_texts_without_a_value_are_left_out() -> None:
    values, labels = np.array([1.0, np.nan, 3.0, 2.0]), np.array([0.0, 1.0, 1.0, 0.0])
    found = agreement(values, labels, labels == 1, np.arange(4), resamples=10)

    assert (found.n, found.auc[0]) == (3, 1.0)
    nothing = agreement(np.full(4, np.nan), labels, labels == 1, np.arange(4), resamples=10)
    assert nothing.n == 0 and np.isnan(nothing.auc).all()
