"""An explainer that is queried anew: without constraints it repeats the stored answer, with them it respects them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cfbench_core", reason="cfbench is not installed: nox -s view")

from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run
from cfbench_core.view.live import LiveModels
from cfbench_core.view.queries import RunView
from cfbench_core.view.viewers import Constraints

UNITS = 12


@pytest.fixture(scope="module")
def live() -> Iterator[LiveModels]:
    models = LiveModels()
    yield models
    models.close()


def answers(view: RunView, explainer: str, **labels: str) -> Iterator[tuple[str, str, Any]]:
    """Cell, unit and stored answer of the first units of an explainer."""
    cell = next(
        cell
        for cell in view.run.cells()
        if cell.done
        and cell.labels["explainer"] in (explainer, f"{explainer}-cfbench")
        and all(cell.labels[name] == value for name, value in labels.items())
    )
    number = next(n for n, cells in enumerate(view.groups) if cell in cells)
    for row in view.units(view.places[cell.id], size=UNITS)["rows"]:
        yield cell.id, str(row[0]), view.unit_data(number, str(row[0])).explanations[cell.id]


def grid(blocks: list[Any]) -> dict[str, str]:
    """The changed columns of an answer, by column."""
    (found,) = [block for block in blocks if block["type"] == "grid"]
    return {row[0]: row[2]["text"] for row in found["rows"] if row[2]["text"] != "·"}


@pytest.mark.parametrize("explainer", ["nice", "dice-random", "growing-spheres"])
def test_a_row_explained_again_is_explained_alike_and_locked_columns_stay(
    runs: list[Path], live: LiveModels, explainer: str
) -> None:
    view, locked_somewhere = RunView(Run(runs[1])), 0
    for cell, unit, stored in answers(view, explainer):
        again = grid(live.explain(runs[1], cell, unit, Constraints()))
        assert set(again) == set(stored["column"].astype(str))
        first = str(stored["column"].iloc[0])
        blocks = live.explain(runs[1], cell, unit, Constraints(frozenset({first})))
        if any(block["type"] == "grid" for block in blocks):
            assert first not in grid(blocks)
            locked_somewhere += 1
        assert not any("does not respect" in block.get("text", "") for block in blocks)
    assert locked_somewhere


def test_a_range_is_respected(runs: list[Path], live: LiveModels) -> None:
    view = RunView(Run(runs[1]))
    cell, unit, stored = next(answers(view, "growing-spheres"))
    column, before = str(stored["column"].iloc[0]), float(stored["original"].iloc[0])
    blocks = live.explain(runs[1], cell, unit, Constraints(ranges={column: (before - 0.1, before + 0.1)}))
    changed = grid(blocks).get(column)
    assert changed is None or abs(float(changed.split()[1]) - before) <= 0.1 + 1e-6


def test_impossible_constraints_are_one_clear_line(runs: list[Path], live: LiveModels) -> None:
    cell, unit, _ = next(answers(RunView(Run(runs[1])), "nice"))
    with pytest.raises(UserError, match="there is no column 'petal'"):
        live.explain(runs[1], cell, unit, Constraints(frozenset({"petal"})))


@pytest.mark.parametrize("explainer", ["lime-rs", "cosine", "greedy", "smallest"])
def test_an_interaction_that_is_locked_is_not_edited(
    runs: list[Path], live: LiveModels, explainer: str
) -> None:
    view, other = RunView(Run(runs[0])), 0
    for cell, unit, stored in answers(view, explainer, format="explicit"):
        if stored.empty:
            continue
        edited = set(stored["edge_item"].astype(str))

        def edits(constraints: Constraints, where: tuple[str, str] = (cell, unit)) -> str:
            blocks = live.explain(runs[0], *where, constraints)
            facts = [block for block in blocks if block["type"] == "facts"]
            return dict(map(tuple, facts[0]["items"]))["edits"] if facts else ""

        as_stored = edits(Constraints())
        assert as_stored.count("−") == len(edited)
        locked = sorted(edited)[0]
        constrained = edits(Constraints(frozenset({locked})))
        assert f"− {locked}" not in constrained.split(", ")
        other += bool(constrained)
    assert other


def test_the_smallest_answer_is_the_same_when_other_interactions_are_locked(
    runs: list[Path], live: LiveModels
) -> None:
    view, compared = RunView(Run(runs[0])), 0
    profiles = {
        unit: set(importances["edge_item"].astype(str))
        for _, unit, importances in answers(view, "cosine", format="implicit", level="item")
    }
    for cell, unit, stored in answers(view, "smallest", format="explicit"):
        edited, profile = set(stored["edge_item"].astype(str)), profiles[unit]
        if stored.empty or not profile - edited:
            continue
        blocks = live.explain(runs[0], cell, unit, Constraints(frozenset(profile - edited)))
        (facts,) = [block for block in blocks if block["type"] == "facts"]
        assert dict(map(tuple, facts["items"]))["number"] == str(len(edited))
        compared += 1
    assert compared
