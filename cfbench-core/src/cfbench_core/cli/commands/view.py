"""``cfbench view``: look at runs in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from cfbench_core.cli.group import subcommand
from cfbench_core.cli.options import NamedPath
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.run_directory import Run

MOST_RUNS = 20


@subcommand(
    "view",
    examples=(
        "cfbench view                                the latest runs in runs/",
        "cfbench view runs/study                     one run, in the browser",
        "cfbench view runs/a runs/b --no-browser     two runs to compare; only print the address",
        "cfbench view runs/study --export study-html files for a static host, without a server",
    ),
)
@click.argument("runs", metavar="[RUN]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port on 127.0.0.1; a free port by default.",
)
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@click.option(
    "--export", "bundle", metavar="DIR", type=NamedPath(path_type=Path), help="Write static files and exit."
)
@click.option(
    "--units",
    metavar="N",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="With --export: number of units per table that get a page.",
)
def command(
    runs: tuple[Path, ...], port: int, no_browser: bool, bundle: Path | None, units: int
) -> int | None:
    """Look at runs in a browser: tables, the units behind a cell, one unit, what if.

    RUN is a run directory; without one, the latest runs in runs/. The server is reachable from this machine only, with the
    address that it prints, and changes nothing. Needs 'pip install cfbench-core[view]', except for --export.
    """
    from cfbench_core import view

    found = [_run(path) for path in runs or _latest()]
    if bundle is not None:
        click.echo(f"wrote {view.export(found, bundle, units=units)}")
        return None
    view.serve(found, port=port, browser=not no_browser)
    click.echo("viewer ended")
    return None


def _run(path: Path) -> Run:
    if not path.exists():
        folder = path.parent
        near = [str(one) for one in _runs_in(folder)] if folder.is_dir() else []
        raise UserError(f"{path}: no such run directory.{did_you_mean(str(path), near)}")
    return Run(path)


def _runs_in(folder: Path) -> Iterator[Path]:
    return (path.parent for path in folder.glob("*/plan.json"))


def _latest() -> list[Path]:
    found = sorted(
        _runs_in(Path("runs")), key=lambda path: (path / "plan.json").stat().st_mtime, reverse=True
    )
    if not found:
        raise UserError("no run in runs/: name a run directory, or make one with 'cfbench run'")
    return found[:MOST_RUNS]
