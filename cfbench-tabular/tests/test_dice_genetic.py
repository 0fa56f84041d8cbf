import numpy as np
import pytest
from small_grid import ENCODING, EVERY_ROW, FACTUAL, answers, cost, is_row_of, valid

from cfbench_tabular.explainers.counterfactual_sets import diversity, inverse_deviations
from cfbench_tabular.explainers.dice_genetic import Config, DiCEGenetic


def test_the_column_that_matters_goes_near_the_boundary(linear, numbers, explain):
    found = explain(DiCEGenetic(Config()), linear([2.0, 0.0], -2.0), numbers(2), [[0.0, 3.0]], [[0.0, 0.0]])
    assert found[0, 0] == pytest.approx([1.0, 3.0], abs=0.05)


def test_it_finds_the_cheapest_row_of_all():
    for proximity, changes in ((0.5, 0.2), (1.0, 0.0), (0.0, 1.0)):
        config = Config(proximity=proximity, changes=changes, sparsity="none")
        found = answers(DiCEGenetic(config), 1)
        cheapest = cost(valid(), EVERY_ROW, proximity, changes).min()
        assert cost(found, EVERY_ROW, proximity, changes)[0] == pytest.approx(cheapest)


def test_it_finds_it_without_training_rows_of_the_other_class():
    config = Config(proximity=1.0, changes=0.0, sparsity="none")
    found = answers(DiCEGenetic(config), 1, FACTUAL[None])
    assert is_row_of(found, valid()).all()


@pytest.mark.parametrize("size", [1, 3, 5])
def test_answers_are_valid_admissible_rows_that_are_apart(size):
    found = answers(DiCEGenetic(Config(minimum_distance=0.6)), size)
    found = found[~np.isnan(found).any(axis=1)]  # fewer, where more would contain one another
    assert len(found) >= min(size, 3) and is_row_of(found, valid()).all()
    pairs = np.triu_indices(len(found), k=1)
    assert (np.linalg.norm(found[pairs[0]] - found[pairs[1]], axis=1) >= 0.6).all()


def test_the_weight_of_the_determinant_makes_sets_diverse():
    def determinant(weight):
        options = {"sparsity": "none", "minimum_distance": 0.0, "diversity": weight}
        found = answers(DiCEGenetic(Config(**options)), 3)
        return diversity(found[None], inverse_deviations(EVERY_ROW, ENCODING))[0]

    assert determinant(0.0) < determinant(1.0) < determinant(20.0) + 1e-12
