import numpy as np
import pytest
from small_grid import EVERY_ROW, FACTUAL, Blocks, admissible, answers, is_row_of, row, valid

from cfbench_tabular.explainers.dice_kdtree import Config, DiCEKDTree

PLAIN = {"sparsity": "none", "diversity": 0.0, "changes": 0.0, "minimum_distance": 0.0}


def test_a_training_row_is_returned_as_it_is_or_made_sparse():
    background = np.stack([FACTUAL, row(5, 6, "oil", 1)])
    assert answers(DiCEKDTree(Config(**PLAIN)), 1, background)[0] == pytest.approx(background[1])
    sparse = answers(DiCEKDTree(Config()), 1, background)[0]
    # It may have many rooms, or a high floor with another heating; one number moves to the boundary.
    assert sparse.tolist() in (row(4, 2, "gas", 1).tolist(), row(1, 4, "oil", 1).tolist())


@pytest.mark.parametrize("seed", range(4))
def test_the_pool_holds_the_nearest_rows_of_the_other_class(seed):
    draw = np.random.default_rng(seed)
    background = admissible()[draw.choice(len(admissible()), size=25, replace=False)]
    enemies = background[Blocks().predict_proba(background)[:, 1] > 0.5]
    found = answers(DiCEKDTree(Config(**PLAIN, neighbours=2)), 2, background)
    enemies = enemies[np.linalg.norm(enemies - FACTUAL, axis=1).argsort(kind="stable")]
    first, others = enemies[0] - FACTUAL, enemies[1:] - FACTUAL
    contain = (np.sign(first) * others >= np.abs(first)).all(axis=1, where=first != 0)
    nearest = np.linalg.norm([first, others[~contain][0]], axis=1)
    assert np.sort(np.linalg.norm(found - FACTUAL, axis=1)) == pytest.approx(nearest)


def test_immutable_columns_are_those_of_the_factual_and_the_result_is_tested():
    background = np.stack([FACTUAL, row(5, 0, "gas", 4), row(0, 6, "gas", 4)])
    found = answers(DiCEKDTree(Config()), 2, background)
    assert is_row_of(found[:1], valid()).all() and np.isnan(found[1]).all()


@pytest.mark.parametrize("size", [1, 3, 4])
def test_answers_are_valid_admissible_rows_that_are_apart(size):
    found = answers(DiCEKDTree(Config(minimum_distance=0.6)), size, EVERY_ROW)
    found = found[~np.isnan(found).any(axis=1)]  # fewer, where more would contain one another
    assert len(found) >= min(size, 3) and is_row_of(found, valid()).all()
    pairs = np.triu_indices(len(found), k=1)
    assert (np.linalg.norm(found[pairs[0]] - found[pairs[1]], axis=1) >= 0.6).all()


def test_without_training_rows_of_the_other_class_nothing_is_found():
    assert np.isnan(answers(DiCEKDTree(Config()), 2, FACTUAL[None])).all()
