import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.constraints import Constraint, constraints_hold
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import Column, Table

AREA = Constraint(column="area", relation="product", of=("height", "width"))


def columns(**values):
    return {name: np.array(numbers, dtype=float) for name, numbers in values.items()}


def rectangles(constraints=(AREA,), area=(6.0, 20.0, 3.0, 8.0), copies=1):
    values = columns(height=[2, 4, 3, 2] * copies, width=[3, 5, 1, 4] * copies, area=[*area] * copies)
    target = np.array(["a", "b", "a", "b"] * copies, dtype=object)
    return Table(
        "rectangles", tuple(Column(name) for name in values), values, target, constraints=constraints
    )


def test_an_area_is_height_times_width_and_neither_more_nor_less():
    values = columns(height=[2, 2, 2], width=[3, 3, 3], area=[5, 6, 7])
    assert constraints_hold([AREA], values).tolist() == [False, True, False]


def test_a_tolerance_counts_on_both_sides():
    rule = Constraint(column="area", relation="product", of=("height", "width"), absolute=1, relative=0.5)
    values = columns(height=[2] * 4, width=[3] * 4, area=[1.9, 2, 10, 10.1])
    assert constraints_hold([rule], values).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("relation", "wanted"), [("product", 24.0), ("ratio", 6.0), ("sum", 20.0), ("difference", 16.0)]
)
def test_each_relation_by_hand(relation, wanted):
    rule = Constraint(column="x", relation=relation, of=("a", "b"), factor=2.0 if relation == "sum" else 1.0)
    a, b = (12.0, 2.0) if relation != "sum" else (8.0, 2.0)
    a, b = (20.0, 4.0) if relation == "difference" else (a, b)
    values = columns(a=[a] * 2, b=[b] * 2, x=[wanted, wanted + 0.01])
    assert constraints_hold([rule], values).tolist() == [True, False]


def test_a_comparison_has_one_side():
    values = columns(age=[30, 30, 30], worked=[29, 30, 31])
    assert constraints_hold(
        [Constraint(column="age", relation="at_least", of=("worked",))], values
    ).tolist() == [
        True,
        True,
        False,
    ]
    assert constraints_hold(
        [Constraint(column="age", relation="at_most", of=("worked",))], values
    ).tolist() == [
        False,
        True,
        True,
    ]


def test_a_product_of_three_and_a_circle():
    circle = Constraint(column="area", relation="product", of=("r", "r"), factor=np.pi)
    box = Constraint(column="volume", relation="product", of=("a", "b", "c"))
    assert constraints_hold([circle], columns(r=[2.0, 2.0], area=[4 * np.pi, 12.5])).tolist() == [True, False]
    assert constraints_hold([box], columns(a=[2], b=[3], c=[4], volume=[24])).tolist() == [True]


def test_where_nothing_can_be_computed_the_constraint_does_not_hold():
    rule = Constraint(column="x", relation="ratio", of=("a", "b"))
    values = columns(a=[1, 0, 1, np.nan], b=[0, 0, 2, 1], x=[np.inf, np.nan, 0.5, 1])
    assert constraints_hold([rule], values).tolist() == [False, False, True, False]


def test_without_constraints_every_row_is_good():
    assert constraints_hold([], columns(a=[1, np.nan])).tolist() == [True, True]


@given(st.lists(st.tuples(st.floats(0.01, 1e5), st.floats(0.01, 1e5)), min_size=1, max_size=20))
def test_rounding_of_arithmetic_is_no_breach(pairs):
    height, width = np.array(pairs).T
    values = columns(height=height, width=width, area=width * height)
    back = {**values, "height": values["area"] / width}
    assert constraints_hold([AREA], back).all()


def test_a_constraint_is_printed_as_a_formula():
    circle = Constraint(column="area", relation="product", of=("r", "r"), factor=3.14159, relative=0.1)
    assert str(circle) == "area = 3.14159 * r * r ± 10%"
    assert str(Constraint(column="s", relation="ratio", of=("a", "b"), absolute=0.5)) == "s = a / b ± 0.5"
    assert str(Constraint(column="age", relation="at_least", of=("years",))) == "age >= years"


def test_a_ratio_of_three_is_refused():
    with pytest.raises(ValueError, match="ratio needs two columns in 'of', got 3"):
        Constraint(column="x", relation="ratio", of=("a", "b", "c"))


def test_a_constraint_of_an_unknown_column_is_refused_with_the_nearest():
    with pytest.raises(UserError, match=r"no column 'hight'\. Did you mean 'height'\?"):
        rectangles((Constraint(column="area", relation="product", of=("hight", "width")),))


def test_a_constraint_that_the_table_itself_breaks_is_refused():
    with pytest.raises(
        UserError,
        match=r"'area = height \* width' is violated in 1 rows \(first: row 2: area is 4, not 3\)",
    ):
        rectangles(area=(6.0, 20.0, 4.0, 8.0))


def test_a_constraint_of_a_category_is_refused():
    with pytest.raises(UserError, match="column 'c' is not numeric"):
        Table(
            "t",
            (Column("c", "categorical", ("1", "2")), Column("x")),
            {"c": np.array(["1", "2"], dtype=object), "x": np.arange(2.0)},
            np.array(["a", "b"], dtype=object),
            constraints=(Constraint(column="x", relation="sum", of=("c",)),),
        )


def test_constraints_survive_saving_and_judge_vectors(tmp_path):
    data = PreparedDataset.make(rectangles(copies=3), 0.0, 0.0, generator(0))
    data.save(tmp_path)
    loaded = PreparedDataset.load(tmp_path)
    assert loaded.table.constraints == (AREA,)
    assert loaded.encoding.constraints == (AREA,)
    assert Encoding.from_json(json.loads(json.dumps(data.encoding.to_json()))).constraints == (AREA,)
    vectors = loaded.vectors.copy()
    vectors[1, 2] += 0.1
    vectors[3] = np.nan
    assert loaded.encoding.constraints_hold(vectors).tolist() == [True, False, True, False, *[True] * 8]


CENTS = st.integers(-(10**12), 10**12)


@given(
    st.lists(CENTS, min_size=2, max_size=5),
    st.sampled_from(["sum", "at_least", "at_most"]),
    st.integers(0, 100),
)
def test_a_sum_that_nearly_cancels_is_judged_as_that_of_whole_cents(cents, relation, rest):
    """0.1 + 0.2 - 0.3 is 0, and 12345678.90 - 12345678.80 is 0.10, whatever floating-point numbers say."""
    cents = [*cents, rest - sum(cents)]
    names = [f"x{place}" for place in range(len(cents))]
    constraint = Constraint(column="total", relation=relation, of=tuple(names))
    for off in (-1, 0, 1):
        row = {name: np.array([cent / 100]) for name, cent in zip(names, cents, strict=True)}
        row["total"] = np.array([(rest + off) / 100])
        expected = {"sum": off == 0, "at_least": off >= 0, "at_most": off <= 0}[relation]
        assert constraint.holds(row).tolist() == [expected]


@given(CENTS, st.integers(0, 100))
def test_a_small_difference_of_large_amounts_is_exact_to_a_cent(cents, apart):
    row = columns(
        a=[(cents + apart) / 100] * 3, b=[cents / 100] * 3, c=np.array([-1, 0, 1]) / 100 + apart / 100
    )
    constraint = Constraint(column="c", relation="difference", of=("a", "b"))
    assert constraint.holds(row).tolist() == [False, True, False]
