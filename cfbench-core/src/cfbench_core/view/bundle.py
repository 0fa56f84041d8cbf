"""The viewer as static files: the same page, with the answers of the server in shards that script elements load.

Script elements work from ``file:`` addresses, where ``fetch`` does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cfbench_core import owners
from cfbench_core.errors import UserError
from cfbench_core.files import filled
from cfbench_core.run_directory import Run
from cfbench_core.view.pages import SCRIPTS, STYLES, static_file
from cfbench_core.view.queries import RunView, comparison

PER_SHARD = 20
"""Pages of units in one file."""
MOST_COMPARED = 4
"""Runs of which each pair is compared."""


def write_bundle(runs: Sequence[Run], directory: Path, units: int = 200) -> Path:
    """See :func:`cfbench_core.view.export`."""
    owners.remove_abandoned(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UserError(f"{directory}: is not an empty folder; a bundle needs one of its own")
    with filled(directory) as inside:
        _write(runs, inside, units)
    return directory / "index.html"


def _write(runs: Sequence[Run], directory: Path, units: int) -> None:
    (directory / "data").mkdir()
    views = [RunView(run) for run in runs]
    _shard(directory, "runs", {"live": False, "runs": [view.heading() for view in views]})
    for number, view in enumerate(views):
        for name, data in _shards_of(number, view, units):
            _shard(directory, name, data)
    for first, one in enumerate(runs[:MOST_COMPARED]):
        for second, other in enumerate(runs[:MOST_COMPARED]):
            if first != second:
                _shard(directory, f"compare-{first}-{second}", comparison(one, other))
    for name in (*SCRIPTS, *STYLES):
        (directory / name).write_bytes(static_file(name))
    page = (
        static_file("index.html")
        .decode()
        .replace("<!-- data -->", '<meta name="cfbench-bundle" content="1">')
    )
    (directory / "index.html").write_text(page, encoding="utf-8")


def _shards_of(number: int, view: RunView, most: int) -> Iterator[tuple[str, Any]]:
    """The shards of one run, with their names."""
    overview = view.overview()
    yield f"overview-{number}", overview
    charts = {
        f"{table['number']} {column['metric']}": view.chart(table["number"], column["metric"])
        for table in overview["tables"]
        for column in table["columns"]
        if table["rows"] and column["shown"]
    }
    yield f"charts-{number}", charts
    for table in overview["tables"]:
        listed: dict[str, None] = {}
        for row in table["rows"]:
            if row["outcome"]:
                continue
            found = view.all_units(row["cell"])
            listed.update(dict.fromkeys(str(values[0]) for values in found["rows"]))
            yield f"units-{number}-{row['cell']}", found
        chosen = list(listed)[:most]
        yield f"index-{number}-{table['number']}", {unit: n // PER_SHARD for n, unit in enumerate(chosen)}
        for start in range(0, len(chosen), PER_SHARD):
            part = chosen[start : start + PER_SHARD]
            pages = view.pages(table["number"], part)
            yield f"unit-{number}-{table['number']}-{start // PER_SHARD}", pages


def _shard(directory: Path, name: str, data: Any) -> None:
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    (directory / "data" / f"{name}.js").write_text(
        f"cfbench.shard({json.dumps(name)},{text});\n", encoding="utf-8"
    )
