import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import Column, Table

COLUMNS = (
    Column("size"),
    Column("colour", "categorical", ("red", "green", "blue")),
    Column("striped", "categorical", ("no", "yes")),
)


def make(sizes, colours, striped):
    values = {
        "size": np.array(sizes, dtype=float),
        "colour": np.array(colours, dtype=object),
        "striped": np.array(striped, dtype=object),
    }
    return Table("things", COLUMNS, values, np.array(["a", "b"] * len(sizes), dtype=object)[: len(sizes)])


def test_a_row_by_hand():
    table = make([1.0, 3.0], ["green", "red"], ["yes", "no"])
    encoding = Encoding.fit(table, np.array([0, 1]))
    assert encoding.encode(table.values).tolist() == [[-1, 0, 1, 0, 1], [1, 1, 0, 0, 0]]
    assert encoding.width == 5
    assert encoding.blocks == (slice(0, 1), slice(1, 4), slice(4, 5))
    assert encoding.groups == (slice(1, 4),)
    assert encoding.numeric.tolist() == [True, False, False, False, False]


def test_mean_and_deviation_are_those_of_the_training_rows_and_ranges_those_of_all():
    table = make([1.0, 3.0, 101.0], ["red"] * 3, ["no"] * 3)
    encoding = Encoding.fit(table, np.array([0, 1]))
    assert (encoding.mean[0], encoding.scale[0]) == (2.0, 1.0)
    assert (encoding.low[0], encoding.high[0]) == (-1.0, 99.0)


def test_a_column_without_spread_encodes_to_zero():
    table = make([0.1] * 7, ["red"] * 7, ["no"] * 7)
    encoding = Encoding.fit(table, np.arange(7))
    assert encoding.encode(table.values)[:, 0] == pytest.approx(0.0, abs=1e-12)
    assert encoding.scale[0] == 1.0


finite = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
rows = st.tuples(finite, st.sampled_from(COLUMNS[1].levels), st.sampled_from(COLUMNS[2].levels))


@given(st.lists(rows, min_size=2, max_size=12))
def test_what_is_encoded_comes_back(given_rows):
    table = make(*zip(*given_rows, strict=True))
    encoding = Encoding.fit(table, np.arange(len(given_rows)))
    back = encoding.decode(encoding.encode(table.values))
    resolution = max(encoding.scale[0] * 1e-11, 1e-9)
    assert back["size"] == pytest.approx(table.values["size"], abs=resolution)
    assert back["colour"].tolist() == table.values["colour"].tolist()
    assert back["striped"].tolist() == table.values["striped"].tolist()


def test_a_number_comes_back_as_it_was_written():
    table = make([5.1, 4.9, 4.7, 4.6, 0.3], ["red"] * 5, ["no"] * 5)
    encoding = Encoding.fit(table, np.arange(5))
    assert encoding.decode(encoding.encode(table.values))["size"].tolist() == [5.1, 4.9, 4.7, 4.6, 0.3]


def test_an_encoding_survives_json():
    table = make([0.1, 0.7, 1 / 3], ["red", "blue", "red"], ["no", "yes", "no"])
    encoding = Encoding.fit(table, np.arange(3))
    again = Encoding.from_json(encoding.to_json())
    assert np.array_equal(again.encode(table.values), encoding.encode(table.values))
    assert again.columns == encoding.columns


def test_an_unknown_level_is_reported_with_those_that_are_known():
    table = make([1.0, 3.0], ["red", "green"], ["no", "yes"])
    encoding = Encoding.fit(table, np.array([0, 1]))
    with pytest.raises(UserError, match="column 'colour': no level 'pink'; there are red, green, blue"):
        encoding.encode({**table.values, "colour": np.array(["red", "pink"], dtype=object)})


def test_a_vector_that_is_no_row_cannot_be_decoded_but_projected():
    encoding = Encoding.fit(make([1.0, 3.0], ["red", "green"], ["no", "yes"]), np.array([0, 1]))
    broken = np.array([[0.0, 0.2, 0.7, 0.1, 0.6]])
    with pytest.raises(ValueError, match="'colour' is not exactly one level"):
        encoding.decode(broken)
    assert encoding.project(broken).tolist() == [[0, 0, 1, 0, 1]]


def test_what_is_typical_is_the_mean_of_numbers_and_the_most_frequent_level():
    table = make([1.0, 2.0, 6.0], ["blue", "green", "blue"], ["no", "yes", "yes"])
    encoding = Encoding.fit(table, np.arange(3))
    typical = encoding.decode(encoding.typical(encoding.encode(table.values))[None])
    assert (typical["size"][0], typical["colour"][0], typical["striped"][0]) == (3.0, "blue", "yes")
