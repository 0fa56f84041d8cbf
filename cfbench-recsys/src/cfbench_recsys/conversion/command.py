"""``cfbench convert``: a model that other software trained becomes weights of a recommender of cfbench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.cli import completions, options
from cfbench_core.cli.downloads import data_access
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_recsys.interactions import Interactions

_FILE = click.Path(path_type=Path, dir_okay=False)


@subcommand(
    "convert",
    examples=(
        "cfbench convert als.npz --data ml-1m --output als.safetensors",
        "cfbench convert exported.pt --data file --set path=ratings.csv --output lightgcn.safetensors",
        "cfbench convert E0.pth --data ml-1m --recommender lightgcn --items items.txt --output w.safetensors",
        "cfbench convert lxr-mf-ml-1m --data ml-1m --output mf.safetensors  downloads it from its authors",
    ),
)
@click.argument("source", metavar="FILE|NAME")
@click.option(
    "--data",
    "dataset",
    required=True,
    metavar="DATASET",
    shell_complete=completions.datasets,
    help="Whose users and items the weights are for.",
)
@click.option("--set", "changes", metavar="KEY=VALUE", multiple=True, help="Options of the data set.")
@options.output_file("The weights, a .safetensors file.", required=True)
@click.option(
    "--recommender", metavar="NAME", help="Recommender that the file belongs to, if several are possible."
)
@click.option(
    "--users",
    "user_file",
    metavar="FILE",
    type=_FILE,
    help="Users in the order of FILE's arrays, one per line.",
)
@click.option("--items", "item_file", metavar="FILE", type=_FILE, help="Items in that order, one per line.")
@options.data_dir
def command(
    source: str,
    dataset: str,
    changes: tuple[str, ...],
    file: Path,
    recommender: str | None,
    user_file: Path | None,
    item_file: Path | None,
    data_dir: Path | None,
) -> None:
    """Convert an externally trained model into weights of a recommender.

    FILE is a model of RecBole, implicit or LensKit, exported as the how-to "Explain a model of another library" shows, or a
    state dict of LXR's or CFExpRec's code. NAME is a model that was published, see the last example. Nothing in a file is
    executed.
    """
    from cfbench_recsys.conversion.convert import convert
    from cfbench_recsys.conversion.published import PUBLISHED, UNVERIFIED, check_dataset, check_file, fetch
    from cfbench_recsys.conversion.trained_models import read_identifiers

    if source not in PUBLISHED and not Path(source).exists():
        raise UserError(
            f"{source}: no such file, and no published model of this name.{did_you_mean(source, PUBLISHED)}"
        )
    if source in PUBLISHED:
        check_dataset(source, dataset)
    with data_access(data_dir, offline=False) as access:
        interactions = _interactions(dataset, changes, access)
        source_file = fetch(source, access) if source in PUBLISHED else Path(source)
    if source in PUBLISHED:
        check_file(source, source_file)
    users, items = (read_identifiers(path) if path else None for path in (user_file, item_file))
    conversion = convert(source_file, interactions, file, recommender=recommender, users=users, items=items)
    counts = interactions.counts()
    click.echo(f"{conversion.path}: {conversion.title}, {counts['users']:,} users, {counts['items']:,} items")
    for remark in conversion.remarks:
        click.echo(f"remark: {remark}")
    if source in PUBLISHED and PUBLISHED[source].weights_sha256 is None:
        click.echo(f"remark: {UNVERIFIED}")
    click.echo(f"use it: recommenders: [{conversion.entry()}]")


def _interactions(name: str, changes: tuple[str, ...], access: DataAccess) -> Interactions:
    """The data set called ``name``, with its options."""
    from cfbench_core.config import Document, decode_options
    from cfbench_core.registry import installed

    registry = installed()
    component = registry.find("recsys", "dataset", name)
    document = Document.of({}, name)
    document.set(changes)
    dataset = decode_options(component, document, registry).create()
    found: Interactions = dataset.load(dataset.find(access)) if hasattr(dataset, "find") else dataset.load()
    return found
