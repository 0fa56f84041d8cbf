"""Rules that are found in a table, against tables that were made from them."""

import numpy as np
import pytest

from cfbench_tabular.constraint_mining import mine_constraints


def reported(**columns):
    return [str(rule) for rule in mine_constraints(columns)]


def text(numbers, decimals=0):
    return [f"{number:.{decimals}f}" for number in numbers]


@pytest.fixture
def sides():
    draw = np.random.default_rng(0)
    return draw.integers(2, 90, 60).astype(float), draw.integers(2, 90, 60).astype(float)


def test_a_product_of_whole_numbers(sides):
    height, width = sides
    assert reported(height=text(height), width=text(width), area=text(height * width)) == [
        "area = height * width ± 0.5"
    ]


def test_what_was_rounded_is_what_was_computed(sides):
    """Not width = share * height, which holds as well."""
    height, width = sides
    assert reported(height=text(height), width=text(width), share=text(width / height, 3)) == [
        "share = width / height ± 0.0005"
    ]


def test_sums_and_differences_and_squares(sides):
    a, b = sides
    assert reported(a=text(a), b=text(b), total=text(a + b)) == ["total = a + b ± 0.5"]
    assert reported(a=text(a), square=text(a * a), b=text(b)) == ["square = a * a ± 0.5"]
    assert reported(a=text(a), b=text(b), rest=text(a - b / 7, 2), seventh=text(b / 7, 2)) == [
        "seventh = a - rest ± 0.005"
    ]


@pytest.mark.parametrize("rows", [20, 60, 400])
def test_sums_of_small_numbers(rows):
    """Persons in a household; numbers that are only nearly the sum, or hardly vary, are no evidence."""
    draw = np.random.default_rng(5)
    adults, children = 1.0 + draw.integers(0, 3, rows), draw.integers(0, 4, rows).astype(float)
    found = reported(adults=text(adults), children=text(children), persons=text(adults + children))
    assert found == ["persons = adults + children ± 0.5"]
    near = adults + children
    near[7] += 1
    assert reported(adults=text(adults), children=text(children), persons=text(near)) == []
    rooms = np.clip(np.round((adults + children) / 2), 1, 3)
    assert reported(adults=text(adults), children=text(children), rooms=text(rooms)) == []


def test_independent_small_numbers_are_not_taken_for_sums():
    for seed in range(30):
        draw = np.random.default_rng(seed)
        columns = {f"x{place}": text(draw.integers(0, 3, 25)) for place in range(12)}
        assert reported(**columns) == []


def test_one_violating_row_excludes_a_constraint(sides):
    height, width = sides
    area = height * width
    area[-1] *= 2
    assert reported(height=text(height), width=text(width), area=text(area)) == []


def test_no_constraint_is_found_without_evidence(sides):
    a, b = sides
    noise = np.random.default_rng(1).normal(size=60)
    assert reported(a=text(a), b=text(b), noise=text(noise, 4)) == []
    assert reported(a=text(a[:10]), b=text(b[:10]), area=text((a * b)[:10])) == []
    assert reported(a=text(a), b=text(b)) == []
    coarse = np.round(a / b)  # too small a spread to say that it is not chance
    assert "coarse" not in " ".join(
        reported(a=text(a), b=text(np.full(60, 40.0) + b % 3), coarse=text(np.minimum(coarse, 3)))
    )


def test_the_constraints_of_page_blocks_are_found_in_its_file(study):
    """All five but eccen, whose rounding differs between rows; it is reported by the length that it gives."""
    names = [
        "height",
        "length",
        "area",
        "eccen",
        "p_black",
        "p_and",
        "mean_tr",
        "blackpix",
        "blackand",
        "wb_trans",
    ]
    columns = dict(zip(names, list(zip(*study.rows("PBC"), strict=True))[:-1], strict=True))
    assert reported(**columns) == [
        "length = height * eccen ± 0.5",
        "area = height * length ± 0.5",
        "p_black = blackpix / area ± 0.0005",
        "p_and = blackand / area ± 0.0005",
        "mean_tr = blackpix / wb_trans ± 0.005",
    ]
