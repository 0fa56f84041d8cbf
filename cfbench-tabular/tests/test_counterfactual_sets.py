import numpy as np
import pytest

from cfbench_tabular.explainers.counterfactual_sets import apart, distinct, diverse_subset, diversity


def spaced(rows, minimum):
    """Which of the rows are apart from the one with an index."""
    return lambda index: apart(rows, rows[index], minimum)


def test_of_two_far_rows_and_a_copy_the_far_ones_are_chosen():
    rows = np.array([[0.0], [0.01], [5.0]])
    assert diverse_subset(rows, np.zeros(3), 2, np.ones(1), 1.0, spaced(rows, 0.0)) == [0, 2]


@pytest.mark.parametrize("seed", range(5))
def test_each_choice_minimises_the_objective_of_the_set(seed):
    draw = np.random.default_rng(seed)
    rows, costs, weights = draw.normal(size=(12, 3)), draw.uniform(size=12), draw.uniform(0.5, 2, size=3)
    chosen = diverse_subset(rows, costs, 4, weights, 0.7, spaced(rows, 0.5))
    for number in range(1, len(chosen) + 1):
        before = chosen[: number - 1]
        objectives = {}
        for place in range(12):
            if all(np.linalg.norm(rows[place] - rows[other]) >= 0.5 for other in before):
                determinant = diversity(rows[None, [*before, place]], weights)[0] if before else 0.0
                objectives[place] = costs[place] / 4 - 0.7 * determinant
        assert objectives[chosen[number - 1]] == pytest.approx(min(objectives.values()), abs=1e-12)


def test_fewer_rows_are_chosen_if_the_others_are_too_close():
    rows = np.array([[0.0], [0.3], [1.0]])
    assert diverse_subset(rows, np.zeros(3), 3, np.ones(1), 1.0, spaced(rows, 0.5)) == [0, 2]
    assert diverse_subset(rows[:0], np.zeros(0), 3, np.ones(1), 1.0, spaced(rows, 0.5)) == []


def test_equal_rows_are_not_apart_and_missing_ones_are():
    rows = np.array([[1.0, 1.0], [np.nan, np.nan], [1.0, 1.5]])
    assert apart(rows[0], rows, 0.0).tolist() == [False, True, True]
    assert apart(rows[0], rows, 0.6).tolist() == [False, True, False]


def test_a_row_near_one_that_does_not_count_is_distinct():
    rows = np.array([[[0.0], [0.4], [0.8]]])
    counts = distinct(rows, np.ones((1, 3), dtype=bool), 0.5)
    assert counts.tolist() == [[True, False, True]]
