"""The metric that decides a table: which column a name means, and what a configuration may name."""

from __future__ import annotations

import pytest

from cfbench_core.errors import UserError
from cfbench_core.plan import Cell, Column, TableLayout
from cfbench_core.primary_metric import primary_place, with_primary

COLUMNS = (
    Column("size"),
    Column("NEG-P@5", "higher"),
    Column("POS-P@5", "lower"),
    Column("St2Exp-F1 (nli)", "higher"),
)


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ((), 1),  # the first with a better direction
        (("pos-p",), 2),
        (("POS-P@5",), 2),
        (("pos-p@3",), 1),
        (("st2exp-f1",), 3),
        (("absent", "st2exp-f1 (nli)", "pos-p"), 3),  # the first name that the table has
        (("size",), 1),  # no better direction, so it decides nothing
    ],
)
def test_the_place_of_the_primary_metric(names: tuple[str, ...], place: int) -> None:
    assert primary_place(COLUMNS, names) == place


def test_a_table_without_a_better_direction_has_none() -> None:
    assert primary_place(COLUMNS[:1], ("size",)) is None


def test_a_configuration_replaces_the_metrics_of_the_suite() -> None:
    layout = TableLayout(by=("dataset",), row="explainer", primary=("neg-p",))
    cells = [Cell({"explainer": "a"}, COLUMNS)]
    assert with_primary(layout, (), cells) is layout
    assert with_primary(layout, ("POS-P",), cells).primary == ("POS-P",)
    with pytest.raises(UserError, match=r"no metric 'pos-q'.*Did you mean 'pos-p'\?"):
        with_primary(layout, ("pos-q",), cells)
    with pytest.raises(UserError, match="'size' with a better direction"):
        with_primary(layout, ("size",), cells)
