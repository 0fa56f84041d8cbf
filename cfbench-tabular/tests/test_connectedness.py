import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.connectedness import Config, Connectedness
from cfbench_tabular.table import Column, Table
from cfbench_tabular.testing import Constant


def scored(make_observed, linear, counterfactuals, rows, labels, **options):
    rows = np.atleast_2d(np.array(rows, dtype=float).T).T
    factuals = np.full((len(counterfactuals), rows.shape[1]), -1.0)
    results = make_observed(
        factuals,
        np.array(counterfactuals, dtype=float).reshape(len(counterfactuals), -1),
        background=rows,
        background_labels=np.array(labels),
        model=linear([1.0] + [0.0] * (rows.shape[1] - 1)),
    )
    return Connectedness(Config(**options)).compute(results)["connected"]


def test_a_path_of_rows_leads_to_a_true_member_or_not(make_observed, linear):
    """Rows at 1, 2, 3 reach the true member at 3; those at 10, 11 are the model's own; -2 is not in the class."""
    rows, labels = [1, 2, 3, 10, 11, -2], [0, 0, 1, 0, 0, 1]
    connected = scored(make_observed, linear, [0.5, 2.6, 10.5, 6.0, np.nan], rows, labels, epsilon=1.0)
    assert np.array_equal(connected, [1.0, 1.0, 0.0, 0.0, np.nan], equal_nan=True)


def test_the_step_is_how_far_members_are_from_each_other(make_observed, linear):
    """Gaps 1, 1, 1, 1, 4: nearest others are at 1, 1, 1, 1, 1 and 4."""
    rows, labels = [1, 2, 3, 4, 5, 9], [1, 1, 1, 1, 1, 1]
    assert scored(make_observed, linear, [6.5], rows, labels, quantile=0.5)[0] == 0.0
    assert scored(make_observed, linear, [6.5], rows, labels, quantile=1.0)[0] == 1.0


def test_fewer_than_two_members_give_no_value(make_observed, linear):
    assert np.isnan(scored(make_observed, linear, [2.0], [1, -1], [1, 0], epsilon=9.0)[0])


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_breadth_first_search(make_observed, linear, seed):
    draw = np.random.default_rng(seed)
    rows, labels = draw.normal(size=(60, 2)), draw.integers(2, size=60)
    points = np.abs(draw.normal(size=(20, 2))) + np.array([0.01, 0.0])
    found = scored(make_observed, linear, points, rows, labels, epsilon=0.35)
    members = [place for place in range(60) if rows[place, 0] > 0]

    def near(a, b):
        return np.linalg.norm(a - b) <= 0.35

    for point, value in zip(points, found, strict=True):
        seen, queue = set(), [m for m in members if near(point, rows[m])]
        while queue:
            here = queue.pop()
            if here not in seen:
                seen.add(here)
                queue += [m for m in members if near(rows[here], rows[m])]
        assert value == float(any(labels[m] == 1 for m in seen))


def connected(encoding, rows, labels, points, **options):
    """Of points that are valid counterfactuals of class 1, among rows that the model puts there, too."""
    valid, classes = np.ones(len(points), dtype=bool), np.zeros(len(points), dtype=np.int64)
    results = Observed(
        points, points, classes, valid, encoding, rows, Constant(), background_labels=np.array(labels)
    )
    return Connectedness(Config(**options)).compute(results)["connected"].tolist()


@given(
    st.integers(2, 60), st.sampled_from([0.05, 0.5, 0.95, 1.0]), st.floats(1e-3, 1e3), st.floats(-1e8, 1e8)
)
def test_evenly_spaced_numbers_are_a_path_in_any_encoding(count, quantile, scale, mean):
    """Rows at 0, 1, 2, ..., of which 0 alone is truly of the class: one step further is connected, a bit more is not."""
    rows = np.arange(count, dtype=float)[:, None]
    points = np.array([[count], [-1], [count + 1e-5], [-1 - 1e-5]])
    encoding = Encoding((Column("a"),), np.array([mean]), np.array([scale]), np.zeros(1), np.ones(1))
    found = connected(
        encoding,
        (rows - mean) / scale,
        [1] + [0] * (count - 1),
        (points - mean) / scale,
        quantile=quantile,
    )
    assert found == [1.0, 1.0, 0.0, 0.0]


def test_whole_numbers_of_a_table_are_a_path():
    values = np.arange(6.0)
    table = Table("t", (Column("a", step=1.0),), {"a": values}, np.array(list("xyxyxy"), dtype=object))
    encoding = Encoding.fit(table, np.arange(6))
    rows, point = encoding.encode({"a": values}), encoding.encode({"a": np.array([6.0])})
    assert connected(encoding, rows, [1, 0, 0, 0, 0, 0], point) == [1.0]


@given(st.integers(15, 40), st.integers(0, 10**6), st.permutations(range(5)))
def test_the_order_of_columns_does_not_matter(count, seed, order):
    """Distances are then sums in another order, which changes their last bits."""
    draw = np.random.default_rng(seed)
    encoded = draw.integers(4, size=(count, 5)) / np.array([0.7, 0.3, 0.7, 0.3, 0.9])
    labels = (draw.random(count - 3) < 0.1).astype(np.int64)
    encoding = Encoding(tuple(Column(str(n)) for n in range(5)), *np.ones((4, 5)))
    found = connected(encoding, encoded[3:], labels, encoded[:3], quantile=0.5)
    moved = encoded[:, order]
    assert connected(encoding, moved[3:], labels, moved[:3], quantile=0.5) == found
