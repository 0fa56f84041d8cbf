"""Deletion and insertion curves against what-if queries, one for each step; and what is edited most often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("cfbench_core", reason="cfbench is not installed: nox -s view")

from cfbench_core.run_directory import Run
from cfbench_core.view.live import LiveModels, live_unit
from cfbench_core.view.queries import RunView


@pytest.fixture(scope="module")
def live() -> Iterator[LiveModels]:
    models = LiveModels()
    yield models
    models.close()


def test_a_step_of_a_curve_is_the_rank_of_the_what_if_query(runs: list[Path]) -> None:
    from cfbench_recsys.unit_curves import mean_ranks
    from cfbench_recsys.view import RecsysViewer

    view = RunView(Run(runs[0]))
    number = next(n for n, t in enumerate(view.plain_tables) if t.labels["format"] == "implicit" and t.lines)
    cell = next(cell for cell in view.groups[number] if cell.done and cell.labels["level"] == "item")
    compared = 0
    for row in view.units(view.places[cell.id], size=4)["rows"]:
        one = live_unit(view.run, cell.id, str(row[0]))
        interactions = one.data.interactions
        own = one.data.split.profiles[int(one.units["user_index"].iloc[0])].indices.tolist()
        found = mean_ranks(one, own, inserting=False)
        item = int(one.units["items_index"].iloc[0][0])
        for step in range(len(found)):
            edit = {str(interactions.item_ids[place]): False for place in own[:step]}
            (grid,) = RecsysViewer().respond(one, edit)
            ranks = {line[1].text: int(line[0].text) for line in grid.rows}
            name = str(interactions.item_names[item])
            if name in ranks:
                assert ranks[name] == found[step]
                compared += 1
        backwards = mean_ranks(one, own[::-1], inserting=True)
        assert backwards[-1] == found[0] and len(backwards) == len(found)
        if len(own) == len(found) - 1:
            assert (
                backwards[::-1].tolist() == found.tolist()
            )  # inserting the last ones first undoes the removals
    assert compared > 4


def test_the_curves_of_all_explainers_are_drawn(runs: list[Path], live: LiveModels) -> None:
    view = RunView(Run(runs[0]))
    number = next(n for n, t in enumerate(view.plain_tables) if t.labels["format"] == "implicit" and t.lines)
    cell = next(cell for cell in view.groups[number] if cell.done)
    unit = str(view.units(view.places[cell.id], size=1)["rows"][0][0])
    blocks = live.curves(view.run.directory, number, cell.id, unit)
    assert [block["title"] for block in blocks] == ["Deletion curve", "Insertion curve"]
    assert all("random (baseline)" in block["svg"] for block in blocks)


def test_what_is_edited_most_often_is_counted_by_unit(runs: list[Path]) -> None:
    view = RunView(Run(runs[1]))
    cell = next(cell for cell in view.run.cells() if cell.done and not cell.role)
    rows = view.run.rows("explanations.parquet", cell=[cell.id])
    expected = Counter(rows[["unit", "column"]].drop_duplicates()["column"].astype(str))
    edited = view.units(view.places[cell.id])["edited"]
    assert dict(map(tuple, edited["rows"])) == dict(expected.most_common(15))
    assert edited["of"] == rows["unit"].nunique()
