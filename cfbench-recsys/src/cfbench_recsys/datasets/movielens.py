"""What the MovieLens data sets have in common: the rule, the files and the titles.

The rule of CFExpRec, Refined fidelity and Consistency beyond top-1: a rating above 3.5 is an interaction; then,
recursively, users and items with at least 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cfbench_core.data_files import DataFile, DataFiles, Form
from cfbench_core.user_files import need_column

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_recsys.interactions import Interactions

LICENCE = "GroupLens licence"
NOUNS = {"user": "user", "users": "users", "item": "film", "items": "films"}
RULE = "ratings of 4 and 5; recursively, users and items with at least 2"
ABOVE = 3.5


def movielens_files(
    id: str,
    page: str,
    forms: tuple[Form, ...],
    members: tuple[str, ...],
    bytes: int,
    archive_sha256: str,
    sha256: Mapping[str, str] | None = None,
) -> DataFiles:
    """The files of one release: its forms, and the archive ``<id>.zip`` of GroupLens with the ``members`` to unpack.

    Sizes and checksums are those published by catalogues, TensorFlow Datasets among them.
    """
    address = f"https://grouplens.org/datasets/movielens/{page}/"
    archive = DataFile(
        name=f"{id}.zip",
        url=f"https://files.grouplens.org/datasets/movielens/{id}.zip",
        bytes=bytes,
        sha256=archive_sha256,
        licence=LICENCE,
        page=address,
        members=members,
    )
    return DataFiles(
        id=id,
        suite="recsys",
        forms=forms,
        downloads=(archive,),
        licence=LICENCE,
        page=address,
        sha256=dict(sha256 or {}),
    )


def load_movielens(
    files: DataFiles,
    title: str,
    ratings: pd.DataFrame,
    path: Path,
    names: Mapping[str, str],
    expected: tuple[int, int, int] | None = None,
) -> Interactions:
    """The interactions of one release, by the rule above.

    Args:
        ratings: the table that was read from ``path``.
        names: title by item.
        expected: users, items and interactions as published.
    """
    from cfbench_recsys.interactions import from_pairs
    from cfbench_recsys.reading import rated_above

    about = {
        "title": title,
        "nouns": NOUNS,
        "because": "they liked",
        "licence": files.licence,
        "page": files.page,
        "release": "",
        "rule": RULE,
    }
    pairs = rated_above(ratings, path, ABOVE)
    return from_pairs(files.id, **pairs, core=2, names=dict(names), about=about, expected=expected)


def owners_table(path: Path, separator: str) -> pd.DataFrame:
    """A table of GroupLens without a header, in Latin-1, where quotation marks have no meaning."""
    from cfbench_recsys.reading import read_table

    return read_table(path, separator=separator, header=False, encoding="latin-1", quoted=False)


def titles(path: Path | None, separator: str | None) -> dict[str, str]:
    """Title by item; empty without a file. ``separator`` None: an atomic file with a header."""
    from cfbench_recsys.reading import ITEMS, identifiers, read_table

    if path is None:
        return {}
    if separator is None:
        table = read_table(path)
        item = need_column(table.columns, path, None, ITEMS, "item")
        title = need_column(table.columns, path, None, ("movie_title", "title", "name"), "title")
    else:
        table = owners_table(path, separator)
        item, title = "1", need_column(table.columns, path, "2", (), "title")
    return dict(zip(identifiers(table, item, path), table[title].astype(str), strict=True))
