"""What the suites' pages say, and what models answer live, equals what the run scored: ``nox -s view``."""

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

UNITS = 6


@pytest.fixture(scope="session")
def live() -> Iterator[LiveModels]:
    models = LiveModels()
    yield models
    models.close()


def views(run: Path) -> RunView:
    return RunView(Run(run))


def editor(found: dict[str, Any]) -> dict[str, Any]:
    return next(block for block in found["blocks"] if block["type"] == "editor")


def units(view: RunView, number: int) -> list[str]:
    rows = view.plain_tables[number].lines
    cell = next(n for n, cell in enumerate(view.run.cells()) if cell in view.groups[number] and cell.done)
    assert rows
    return [str(row[0]) for row in view.units(cell, size=UNITS)["rows"]]


def test_a_proposed_edit_leads_to_the_rank_that_the_run_scored(runs: list[Path], live: LiveModels) -> None:
    view = views(runs[0])
    number = next(
        n for n, table in enumerate(view.plain_tables) if table.labels["format"] == "explicit" and table.lines
    )
    checked = 0
    for unit in units(view, number):
        data = view.unit_data(number, unit)
        proposals = {one["label"]: one["edit"] for one in editor(view.unit(number, unit))["proposals"]}
        for cell in data.cells:
            expected = data.scores[cell.id].get("Rank after")
            if data.name(cell) not in proposals or expected is None:
                continue
            (grid,) = live.respond(view.run.directory, cell.id, unit, proposals[data.name(cell)])
            (row,) = [row for row in grid["rows"] if row[1]["tone"] == "mark"][:1] or [None]
            if row is not None:  # the item may have fallen below what is shown
                assert int(row[0]["text"]) == int(expected)
                checked += 1
    assert checked


def test_the_list_without_an_edit_is_the_one_that_was_explained(runs: list[Path], live: LiveModels) -> None:
    view = views(runs[0])
    number = next(n for n, table in enumerate(view.plain_tables) if table.lines)
    for unit in units(view, number):
        data = view.unit_data(number, unit)
        (grid,) = live.respond(view.run.directory, data.cells[0].id, unit, {})
        rows = data.explanations[data.cells[0].id]
        marked = [row for row in grid["rows"] if row[1]["tone"] == "mark"]
        assert [int(row[0]["text"]) for row in marked] == [int(rows["rank"].iloc[0])]


def test_an_unknown_item_is_one_line(runs: list[Path], live: LiveModels) -> None:
    view = views(runs[0])
    number = next(n for n, table in enumerate(view.plain_tables) if table.lines)
    unit = units(view, number)[0]
    with pytest.raises(UserError, match="no item 'nothing'"):
        live.respond(view.run.directory, view.unit_data(number, unit).cells[0].id, unit, {"nothing": False})


def test_a_counterfactual_changes_the_class_exactly_where_the_run_says_so(
    runs: list[Path], live: LiveModels
) -> None:
    view = views(runs[1])
    checked = 0
    for unit in units(view, 0):
        data = view.unit_data(0, unit)
        proposals = {one["label"]: one["edit"] for one in editor(view.unit(0, unit))["proposals"]}
        for cell in data.cells:
            if data.name(cell) in proposals:
                facts = live.respond(view.run.directory, cell.id, unit, proposals[data.name(cell)])[0]
                changed = facts["items"][1][1].endswith("(changed)")
                assert changed == (data.scores[cell.id]["validity"] == 1), (unit, cell.id)
                checked += 1
    assert checked > UNITS


def test_the_marked_statements_give_the_hallucinated_share(runs: list[Path]) -> None:
    view = views(runs[2])
    for unit in units(view, 0):
        found = view.unit(0, unit)
        grids = [block for block in found["blocks"] if block["type"] == "grid"]
        data = view.unit_data(0, unit)
        with_statements = [cell for cell in data.cells if "hallucinated (overlap)" in data.scores[cell.id]]
        assert grids
        for cell in with_statements:
            grid = next(g for g in grids if g["title"].split(" ")[2] == data.name(cell))
            verdicts = [row[3]["text"].split()[-1] for row in grid["rows"]]
            share = sum(verdict != "entailed" for verdict in verdicts) / len(verdicts)
            assert share == pytest.approx(data.scores[cell.id]["hallucinated (overlap)"])


def test_a_model_that_does_not_answer_in_time_is_ended(runs: list[Path]) -> None:
    view = views(runs[1])
    unit = units(view, 0)[0]
    models = LiveModels(seconds=0.01)
    with pytest.raises(UserError, match=r"was no answer within 0\.01 s"):
        models.respond(view.run.directory, view.unit_data(0, unit).cells[0].id, unit, {})
    assert models._worker is None
