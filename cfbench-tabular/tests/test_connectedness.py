import numpy as np
import pytest

from cfbench_tabular.metrics.connectedness import Config, Connectedness


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
