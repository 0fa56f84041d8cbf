import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_tabular.table import Column, Table

TARGET = np.array(["yes", "no", "no"], dtype=object)


def table(values, target=TARGET, target_class=None, column=None):
    column = column or Column("x")
    return Table("tiny", (column,), {column.name: values}, target, target_class)


def test_the_majority_is_class_one_and_a_second_class_keeps_its_name():
    assert table(np.array([1.0, 2.0, 3.0])).classes() == ("yes", "no")


def test_a_named_class_is_predicted_against_the_rest():
    target = np.array(["a", "b", "c"], dtype=object)
    assert table(np.arange(3.0), target, "b").classes() == ("not b", "b")


def test_of_classes_equally_frequent_the_last_by_name_is_the_target():
    target = np.array(["b", "a", "c"], dtype=object)
    assert table(np.arange(3.0), target).classes() == ("not c", "c")


def test_a_missing_number_is_reported_with_its_column_and_row():
    with pytest.raises(UserError, match=r"tiny: column 'x' is missing or infinite in 1 rows .*row 1"):
        table(np.array([1.0, np.nan, 3.0]))


def test_a_table_with_one_class_is_refused():
    with pytest.raises(UserError, match="every row has the class 'no'"):
        table(np.arange(3.0), np.array(["no"] * 3, dtype=object)).classes()


def test_a_target_that_is_not_there_is_reported_with_those_that_are():
    with pytest.raises(UserError, match="no row has the class 'maybe'; there are no, yes"):
        table(np.arange(3.0), target_class="maybe").classes()


def test_a_value_outside_its_levels_is_refused():
    column = Column("colour", "categorical", ("red", "blue"))
    with pytest.raises(
        UserError, match=r"column 'colour' has values that are not among its levels: \['green'\]"
    ):
        table(np.array(["red", "green", "blue"], dtype=object), column=column)


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(UserError, match="has 2 values for 3 rows"):
        table(np.arange(2.0))


def test_a_category_with_one_level_is_refused():
    column = Column("colour", "categorical", ("red",))
    with pytest.raises(
        UserError, match="column 'colour' has only the level 'red', so it carries no information"
    ):
        table(np.array(["red"] * 3, dtype=object), column=column)
