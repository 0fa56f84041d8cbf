"""What is searched: options as their annotations say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from toy_searches import Everything

from cfbench_core.config import Range, Search
from cfbench_core.tuning.space import Dimension, search_space


def test_options_are_searched_as_their_annotations_say() -> None:
    assert search_space(Everything) == (
        Dimension("rate", 1e-4, 1, log=True),
        Dimension("size", 4, 64, whole=True),
        Dimension("kind", choices=("a", "b")),
        Dimension("quick", choices=(False, True)),
        Dimension("layers", choices=((8,), (16, 8))),
        Dimension("inner.rate", 0.1, 1),
    )


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Annotated[float, Search()], "needs low < high, or choices"),
        (Annotated[float, Search(2, 1)], "needs low < high, or choices"),
        (Annotated[float, Search(0, 1, log=True)], r"Search\(log=True\) needs low > 0"),
        (Annotated[float, Range(above=0), Search(0, 1)], r"goes beyond its Range \(> 0\)"),
        (Annotated[int, Search(0.5, 2)], "needs whole numbers"),
        (Annotated[str, Search(0, 1)], "needs choices, for it is not a number"),
        (Annotated[int | float, Search(0, 1)], "needs choices, for it is not a number"),
    ],
)
def test_a_meaningless_annotation_is_an_error(hint: Any, said: str) -> None:
    config = dataclass(type("Config", (), {"__annotations__": {"x": hint}, "x": 1}))
    with pytest.raises(ValueError, match=f"^option 'x': .*{said}"):
        search_space(config)


def test_a_dimension_knows_what_belongs_to_it() -> None:
    number = Dimension("x", 1, 8, whole=True)
    assert 1 in number and 8.0 in number
    assert not any(value in number for value in (0, 9, 2.5, None, "2", True))
    choice = Dimension("x", choices=((8,), (16, 8)))
    assert (8,) in choice and (4,) not in choice
    assert choice.restored([16, 8]) == (16, 8)


def test_numbers_are_short_and_stay_within_their_bounds() -> None:
    rate = Dimension("x", 0.12342, 0.67891)
    assert rate.rounded(0.345678) == 0.3457
    assert rate.rounded(0.678909) == 0.6789 and rate.rounded(0.67896) == 0.67891
    assert rate.rounded(0.123421) == 0.12342
