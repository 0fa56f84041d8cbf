import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.feature_changes import Change, apply, feature_changes
from cfbench_tabular.table import Column

ENCODING = Encoding(
    (
        Column("size"),
        Column("colour", "categorical", ("red", "green", "blue")),
        Column("striped", "categorical", ("no", "yes")),
    ),
    mean=np.array([10.0, 0.0, 0.0]),
    scale=np.array([2.0, 1.0, 1.0]),
    low=np.array([-3.0, 0.0, 0.0]),
    high=np.array([3.0, 1.0, 1.0]),
)
FACTUAL = np.array([0.5, 1.0, 0.0, 0.0, 1.0])


def again(found):
    return apply(ENCODING, FACTUAL, [(change.column, change.level, change.value) for change in found])


def test_changes_by_hand():
    found = feature_changes(ENCODING, FACTUAL, np.array([1.0, 0.0, 0.0, 1.0, 1.0]))
    assert found == [Change("size", None, "11.0", "12.0"), Change("colour", None, "red", "blue")]


def test_no_counterfactual_and_no_difference_have_no_changes():
    assert feature_changes(ENCODING, FACTUAL, np.full(5, np.nan)) == []
    assert feature_changes(ENCODING, FACTUAL, FACTUAL) == []


def test_a_difference_of_the_last_bit_is_none():
    nearly = FACTUAL + np.array([1e-15, 0, 0, 0, 0])
    assert nearly[0] != FACTUAL[0]
    assert feature_changes(ENCODING, FACTUAL, nearly) == []


def test_a_category_that_is_no_level_takes_a_line_for_each_level_that_changed():
    broken = np.array([0.5, 0.4, 0.6, 0.0, 0.25])
    found = feature_changes(ENCODING, FACTUAL, broken)
    assert found == [
        Change("colour", "red", "1.0", "0.4"),
        Change("colour", "green", "0.0", "0.6"),
        Change("striped", "yes", "1.0", "0.25"),
    ]
    assert again(found).tolist() == broken.tolist()


weights = st.floats(-2, 2)
level = st.sampled_from([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])


@given(
    st.floats(-50, 50), level | st.tuples(weights, weights, weights), st.sampled_from([0.0, 1.0]) | weights
)
def test_what_is_written_reads_back_as_the_same_vector(size, colour, striped):
    counterfactual = np.array([size, *colour, striped])
    back = again(feature_changes(ENCODING, FACTUAL, counterfactual))
    assert back[1:].tolist() == counterfactual[1:].tolist()
    assert back[0] == pytest.approx(size, abs=1e-11)


def test_reading_back_twice_changes_nothing_more():
    once = again(feature_changes(ENCODING, FACTUAL, np.array([1 / 3, 0.0, 1.0, 0.0, 0.0])))
    assert again(feature_changes(ENCODING, FACTUAL, once)).tolist() == once.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("sice", None, "1"), "no column 'sice'. Did you mean 'size'?"),
        (("size", None, "tall"), "column 'size': the value must be a number, got 'tall'"),
        (("size", None, "nan"), "column 'size': the value must be a number"),
        (("colour", None, "pink"), "column 'colour': no level 'pink'"),
        (("colour", "gren", "1"), "column 'colour' has no level 'gren'. Did you mean 'green'?"),
    ],
)
def test_a_wrong_line_is_reported(change, message):
    with pytest.raises(UserError) as error:
        apply(ENCODING, FACTUAL, [change])
    assert message in str(error.value)
