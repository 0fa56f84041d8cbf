import numpy as np
import pytest
from small_grid import EVERY_ROW, Blocks, answers, changed_columns, cost, is_row_of, valid

from cfbench_tabular.explainers.dice_random import Config, DiCERandom


def test_the_column_that_matters_changes(linear, numbers, explain):
    found = explain(DiCERandom(Config()), linear([2.0, 0.0], -2.0), numbers(2), [[0.0, 3.0]], [[0.0, 0.0]])
    assert found[0, 0] == pytest.approx([1.0, 3.0], abs=0.05)


def test_with_many_samples_it_finds_the_cheapest_row_of_all():
    for proximity, changes in ((0.5, 0.2), (1.0, 0.0), (0.0, 1.0)):
        config = Config(proximity=proximity, changes=changes, samples=4000, sparsity="none")
        found = answers(DiCERandom(config), 1)
        cheapest = cost(valid(), EVERY_ROW, proximity, changes).min()
        assert cost(found, EVERY_ROW, proximity, changes)[0] == pytest.approx(cheapest)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_answers_are_valid_admissible_rows_that_are_apart(size):
    found = answers(DiCERandom(Config(minimum_distance=0.6)), size)
    found = found[~np.isnan(found).any(axis=1)]  # fewer, where more would contain one another
    assert len(found) >= min(size, 3) and is_row_of(found, valid()).all()
    pairs = np.triu_indices(len(found), k=1)
    assert (np.linalg.norm(found[pairs[0]] - found[pairs[1]], axis=1) >= 0.6).all()


def test_few_columns_change():
    found = answers(DiCERandom(Config()), 3)
    assert changed_columns(found).min() == 1 and changed_columns(found).max() <= 2


def test_without_a_row_of_the_other_class_nothing_is_found(monkeypatch):
    monkeypatch.setattr(Blocks, "predict_proba", lambda self, rows: np.tile([0.9, 0.1], (len(rows), 1)))
    assert np.isnan(answers(DiCERandom(Config()), 2)).all()
