import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Column, Table
from cfbench_tabular.testing import example_data


def test_each_class_is_split_in_the_same_shares():
    target = np.array(["common"] * 100 + ["rare"] * 10, dtype=object)
    table = Table("t", (Column("x"),), {"x": np.arange(110.0)}, target)
    data = PreparedDataset.make(table, 0.2, 0.2, generator(0))
    counts = {part: np.bincount(data.sample(part)[1]).tolist() for part in ("train", "validation", "test")}
    assert counts == {"train": [6, 60], "validation": [2, 20], "test": [2, 20]}
    assert data.classes == ("rare", "common")


def test_the_split_is_a_draw_and_another_stream_gives_another():
    table = Table("t", (Column("x"),), {"x": np.arange(50.0)}, np.array(["a", "b"] * 25, dtype=object))
    first, again, other = (PreparedDataset.make(table, 0.2, 0.2, generator(seed)).split for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_problem_is_the_same_after_saving(tmp_path):
    data = example_data()
    data.save(tmp_path)
    loaded = PreparedDataset.load(tmp_path)
    assert np.array_equal(loaded.vectors, data.vectors)
    assert np.array_equal(loaded.labels, data.labels)
    assert np.array_equal(loaded.split, data.split)
    assert loaded.classes == data.classes
    assert loaded.table.target.tolist() == data.table.target.tolist()


def test_a_class_with_one_row_trains():
    target = np.array(["many"] * 9 + ["one"], dtype=object)
    data = PreparedDataset.make(
        Table("t", (Column("x"),), {"x": np.arange(10.0)}, target), 0.2, 0.2, generator(0)
    )
    assert data.split[9] == 0


def test_a_class_without_training_rows_is_refused():
    target = np.array(["many"] * 9 + ["one"], dtype=object)
    table = Table("t", (Column("x"),), {"x": np.arange(10.0)}, target)
    with pytest.raises(UserError, match="too few rows to have both classes among the training rows"):
        PreparedDataset.make(table, 0.1, 0.8, generator(0))


def test_a_table_of_two_rows_is_refused():
    table = Table("t", (Column("x"),), {"x": np.arange(2.0)}, np.array(["a", "b"], dtype=object))
    with pytest.raises(UserError, match="t: has 2 rows; at least 10 are needed"):
        PreparedDataset.make(table, 0.2, 0.2, generator(0))
