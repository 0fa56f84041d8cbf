"""``cfbench data``: lists, downloads, verifies and locates data sets."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core import data_files, data_status
from cfbench_core.cli import completions, options, output
from cfbench_core.cli.downloads import data_access
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import group, subcommand
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.registry import Component, installed
from cfbench_core.wording import size

command = group(
    "data",
    module=__name__,
    commands={"list": "list_datasets", "fetch": "fetch", "verify": "verify", "path": "path"},
    help="List, download and verify data sets.",
    examples=(
        "cfbench data list              what is available, and how to get the rest",
        "cfbench data fetch ml-1m       download it from its owner, and check it",
        "cfbench data verify            compare what is there with its checksums",
        "cfbench data path ml-1m        where it is stored",
    ),
)


@subcommand(
    "list", examples=("cfbench data list", "cfbench data list --data-dir /scratch/data --format json")
)
@options.data_dir
@options.output_format("table", "json")
def list_datasets(data_dir: Path | None, form: str) -> None:
    """List the data sets: those that are there, and how to get the others. Downloads nothing.

    A data set whose plugin is broken is listed with the reason.
    """
    found = data_status.statuses(installed(), data_dir)
    if form == "json":
        output.as_json([vars(line) for line in found])
    elif not found:
        click.echo("No data set is installed: 'cfbench list' says what to install.")
    else:
        rows = [
            [
                line.id,
                line.state,
                size(line.bytes) if line.bytes else "-",
                line.licence or "-",
                line.where,
            ]
            for line in found
        ]
        output.table(["dataset", "state", "size", "licence", "where"], rows, spare=["size", "licence"])


@subcommand(
    "fetch", examples=("cfbench data fetch ml-1m", "cfbench data fetch ml-100k ml-1m --data-dir data")
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=completions.datasets)
@options.data_dir
def fetch(ids: tuple[str, ...], data_dir: Path | None) -> None:
    """Download data sets from their owners. An interrupted download resumes."""
    for id in ids:
        spec = _dataset(id).spec
        before = data_status.status(spec, data_dir)
        if before.state in ("embedded", "found"):
            click.echo(f"{id}: exists already: {before.where}")
            continue
        files = data_status.files_of(spec)
        if files is None:
            raise UserError(f"{id}: nothing to download: {before.where}")
        with data_access(data_dir, offline=False) as access:
            folder = data_files.fetch(files, access)
        click.echo(f"{id}: in {folder}")


@subcommand("verify", examples=("cfbench data verify", "cfbench data verify ml-1m"))
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completions.datasets)
@options.data_dir
def verify(ids: tuple[str, ...], data_dir: Path | None) -> int:
    """Compare data files with their checksums: of the data sets named, or of all that are there.

    Exits with 1 if one differs, or is broken.
    """
    components, broken = [_dataset(id) for id in ids], []
    if not ids:
        everything = data_status.statuses(installed(), data_dir)
        there = {(line.suite, line.id) for line in everything if line.state in ("embedded", "found")}
        components = [
            component
            for component in installed().components("dataset")
            if (component.spec.suite, component.spec.name) in there
        ]
        broken = [line for line in everything if line.state == "broken"]
    checks = [
        (component, check)
        for component in components
        for check in data_status.verify(component.spec, data_dir)
    ]
    if not checks and not broken:
        click.echo("nothing to verify: no data set with files of its own is here (cfbench data list)")
        return OK
    marks = {True: "ok", False: "WRONG", None: "unknown"}
    rows = [[c.spec.name, marks[check.right], str(check.path), check.text] for c, check in checks]
    rows += [[line.id, "BROKEN", "-", line.where] for line in broken]
    output.table(["dataset", "", "file", ""], rows)
    return FAILED if broken or any(check.right is False for _, check in checks) else OK


@subcommand(
    "path", examples=("cfbench data path          the folders that are searched", "cfbench data path ml-1m")
)
@click.argument("id", required=False, shell_complete=completions.datasets)
@options.data_dir
def path(id: str | None, data_dir: Path | None) -> None:
    """Print the location of a data set; without ID, print the folders that are searched for data sets."""
    if id is None:
        rows = [[str(place.folder.absolute()), place.name] for place in data_files.search_path(data_dir)]
        output.table(["folder", "from"], rows)
        return
    status = data_status.status(_dataset(id).spec, data_dir)
    if status.state not in ("embedded", "found"):
        raise UserError(f"{id}: is not there. {status.where}")
    click.echo(status.where)


def _dataset(id: str) -> Component:
    """A data set by its name, or by suite/dataset/name."""
    registry = installed()
    found = [component for component in registry.by_id(id) if component.spec.kind == "dataset"]
    if not found:
        names = [component.spec.name for component in registry.components("dataset")]
        raise UserError(f"no dataset {id!r}.{did_you_mean(id, names)}  (cfbench data list)")
    if len(found) > 1:
        raise UserError(f"{id!r} is ambiguous; it may be {', '.join(c.spec.id for c in found)}")
    return found[0]
