"""The nearest training points of the other class, by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_tabular.explainers import other_class
from cfbench_tabular.explainers.other_class import OtherClass


@settings(deadline=None)
@given(seed=st.integers(0, 2**16), size=st.integers(1, 50), count=st.integers(1, 5), limited=st.booleans())
def test_means_and_rows_are_those_of_brute_force(seed: int, size: int, count: int, limited: bool) -> None:
    draw = np.random.default_rng(seed)
    points, known = draw.normal(size=(20, 3)), draw.normal(size=(size, 3))
    classes, known_classes = draw.integers(2, size=20), draw.integers(2, size=size)
    inside = points - 1.5, points + 1.0
    other = OtherClass(known, known_classes)
    means = other.nearest_means(points, classes, count)
    rows = other.nearest_rows(points, classes, count, inside if limited else None)
    for place, point in enumerate(points):
        enemies = known[known_classes != classes[place]]
        enemies = enemies[np.linalg.norm(enemies - point, axis=1).argsort()]
        mean = enemies[:count].mean(axis=0) if len(enemies) else np.full(3, np.nan)
        assert means[place] == pytest.approx(mean, nan_ok=True)
        if limited:
            enemies = enemies[((enemies >= inside[0][place]) & (enemies <= inside[1][place])).all(axis=1)]
        nearest = enemies[:count]
        assert (rows[place, : len(nearest)] == nearest).all()
        assert np.isnan(rows[place, len(nearest) :]).all()


def test_without_points_of_the_other_class_there_is_none() -> None:
    points, classes = np.zeros((4, 2)), np.zeros(4, dtype=np.int64)
    other = OtherClass(np.ones((3, 2)), np.zeros(3, dtype=np.int64))
    assert np.isnan(other.nearest_means(points, classes, 2)).all()
    assert np.isnan(other.nearest_rows(points, classes, 2)).all()


def test_one_tree_serves_both(monkeypatch) -> None:
    built = []

    def counted(points):
        built.append(len(points))
        return tree(points)

    tree = other_class.cKDTree
    monkeypatch.setattr(other_class, "cKDTree", counted)
    points, classes = np.arange(12.0).reshape(6, 2), np.array([0, 0, 1, 1, 1, 1])
    other = OtherClass(points, classes)
    other.nearest_means(points, classes, 1)
    other.nearest_rows(points, classes, 2)
    assert sorted(built) == [2, 4]
