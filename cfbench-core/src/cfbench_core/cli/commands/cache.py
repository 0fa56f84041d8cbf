"""``cfbench cache``: lists, cleans and verifies cached results."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import group, subcommand
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.store import Entry, Store
from cfbench_core.wording import count_of, size

if TYPE_CHECKING:
    from cfbench_core.stores.published import PublishedEntry, PublishedStore

command = group(
    "cache",
    module=__name__,
    commands={"ls": "ls", "gc": "gc", "verify": "verify"},
    help="List, clean and verify cached results.",
    examples=(
        "cfbench cache ls                   number and size of artifacts by kind",
        "cfbench cache ls model             the models, one by one",
        "cfbench cache gc --older-than 30   remove what was not used for 30 days",
        "cfbench cache verify               compare every file with its checksum",
        "cfbench cache ls --store s3://bucket/folder   what machines published there",
    ),
)

where = click.option(
    "--store", metavar="URL", help="Use the store at this address (s3://...) instead of the cache folder."
)


def _opened(url: str | None) -> Any:
    """The cache folder, or the store at an address: either has entries, verify, remove and gc."""
    if url is None or url == "file":
        return Store()
    from cfbench_core.stores.fsspec import FsspecConfig
    from cfbench_core.stores.published import PublishedStore

    try:
        return PublishedStore(FsspecConfig(url=url).url, {})
    except ValueError as error:
        raise UserError(f"--store: {error}") from None


@subcommand("ls", examples=("cfbench cache ls", "cfbench cache ls explanations"))
@click.argument("kind", required=False)
@where
@options.output_format("table", "json")
def ls(kind: str | None, store: str | None, form: str) -> None:
    """List cached artifacts by kind, or each artifact of one KIND: data, model, scores, ..."""
    cache = _opened(store)
    every = list(cache.entries())
    entries = [entry for entry in every if kind in (None, entry.kind)]
    if kind and not entries and (hint := did_you_mean(kind, sorted({entry.kind for entry in every}))):
        raise UserError(f"{cache.root}: nothing is cached of kind {kind!r}.{hint}")
    if form == "json":
        output.as_json([_described(entry) for entry in entries])
    elif not entries:
        click.echo(f"{cache.root}: nothing is cached{f' of kind {kind}' if kind else ''}")
    elif kind is None:
        _show_kinds(cache, entries)
    else:
        columns = ["key", "size", "made", "what"]
        output.table(columns, [[e.key[:16], size(e.bytes), e.created[:16], e.label] for e in entries])


def _show_kinds(store: Store | PublishedStore, entries: Sequence[Entry | PublishedEntry]) -> None:
    kinds: dict[str, list[Entry | PublishedEntry]] = defaultdict(list)
    for entry in entries:
        kinds[entry.kind].append(entry)
    output.table(
        ["kind", "artifacts", "size"],
        [
            [kind, f"{len(found):,}", size(sum(e.bytes for e in found))]
            for kind, found in sorted(kinds.items())
        ],
    )
    click.echo(f"\n{size(sum(entry.bytes for entry in entries))} in {store.root}")


def _described(entry: Entry | PublishedEntry) -> dict[str, object]:
    return {
        "kind": entry.kind,
        "key": entry.key,
        "label": entry.label,
        "bytes": entry.bytes,
        "created": entry.created,
        "path": str(entry.path),
    }


@subcommand(
    "gc",
    examples=(
        "cfbench cache gc --older-than 30           not used for 30 days",
        "cfbench cache gc --older-than 0 --dry-run  everything; only show it",
    ),
)
@click.option(
    "--older-than",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    required=True,
    help="Remove artifacts that were not used for this many days; 0 removes all.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@where
def gc(older_than: float, dry_run: bool, store: str | None) -> None:
    """Remove artifacts that were not used for some days. They are recomputed when needed.

    With --store, remove artifacts that were published at least this many days ago, because such a store does
    not record when an artifact is read.
    """
    cache = _opened(store)
    limit = time.time() - older_than * 86400
    old = [entry for entry in cache.entries() if entry.used <= limit]
    freed = size(sum(entry.bytes for entry in old))
    if not dry_run:
        old = cache.gc(older_than)
    click.echo(f"{'would remove' if dry_run else 'removed'} {count_of(len(old), 'artifact')}, {freed}")


@subcommand("verify", examples=("cfbench cache verify", "cfbench cache verify --remove"))
@click.option("--remove", is_flag=True, help="Remove damaged artifacts; they are recomputed when needed.")
@where
def verify(remove: bool, store: str | None) -> int:
    """Compare every cached file with its SHA-256. Exits with 1 if one is damaged. With --store, each is downloaded."""
    cache = _opened(store)
    entries = cache.entries()
    damaged = 0
    for entry in entries:
        problems = cache.verify(entry)
        if problems:
            damaged += 1
            click.echo(f"{entry.kind} {entry.key[:16]} ({entry.label}): {'; '.join(problems)}")
            if remove:
                cache.remove(entry)
    then = " (removed)" if remove else " (--remove removes them)"
    click.echo(f"{count_of(len(entries), 'artifact')} verified, {damaged} damaged{then if damaged else ''}")
    return FAILED if damaged and not remove else OK
