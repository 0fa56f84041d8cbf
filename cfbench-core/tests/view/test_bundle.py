"""The static bundle: the answers of the server, in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_up_run import write_run

from cfbench_core import view
from cfbench_core.cli.root import main
from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run
from cfbench_core.view.queries import RunView


def shard(folder: Path, name: str) -> Any:
    text = (folder / "data" / f"{name}.js").read_text()
    assert text.startswith(f'cfbench.shard("{name}",') and text.endswith(");\n")
    return json.loads(text[len(f'cfbench.shard("{name}",') : -3])


def test_shards_hold_what_the_server_answers(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", users=12)
    page = view.export(directory, tmp_path / "out", units=25)
    shown = RunView(Run(directory))
    folder = page.parent
    assert shard(folder, "overview-0") == shown.overview()
    assert shard(folder, "units-0-0") == shown.all_units(0)
    places = shard(folder, "index-0-0")
    assert len(places) == 25 and set(places.values()) == {0, 1}
    unit = list(places)[21]
    assert shard(folder, "unit-0-0-1")[unit] == shown.unit(0, unit)
    assert 'name="cfbench-bundle"' in page.read_text()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", users=4)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="is not an empty folder"):
        view.export(directory, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_a_bundle_that_fails_leaves_nothing_in_the_way_of_the_next(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", users=4)
    scores = (directory / "scores.parquet").read_bytes()
    (directory / "scores.parquet").write_bytes(scores[:100])
    with pytest.raises(UserError, match="scores"):
        view.export(directory, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    (directory / "scores.parquet").write_bytes(scores)
    assert view.export(directory, tmp_path / "out", units=2).is_file()


def test_the_command_writes_a_bundle_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_run(tmp_path / "run", users=4)
    assert main(["view", str(directory), "--export", str(tmp_path / "out"), "--units", "2"]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'out' / 'index.html'}\n"


def test_a_mistyped_run_is_pointed_at_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "study", users=4)
    assert main(["view", str(tmp_path / "stduy"), "--no-browser"]) == 2
    assert f"Did you mean '{tmp_path / 'study'}'?" in capsys.readouterr().err
