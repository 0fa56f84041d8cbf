"""What the MovieLens data sets have in common: the rule, and where titles stand.

The rule of papers 000 to 002: a rating above 3.5 is an interaction; then, recursively, users and items with
at least 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cfbench_core.data_files import DataFiles
from cfbench_core.user_files import need_column

NOUNS = {"user": "user", "users": "users", "item": "film", "items": "films"}
RULE = "ratings of 4 and 5; recursively, users and items with at least 2"
ABOVE = 3.5


def about(title: str, files: DataFiles) -> dict[str, Any]:
    return {
        "title": title,
        "nouns": NOUNS,
        "because": "they liked",
        "licence": files.licence,
        "page": files.page,
        "release": "",
        "rule": RULE,
    }


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
        table = read_table(path, separator=separator, header=False, encoding="latin-1", quoted=False)
        item, title = "1", need_column(table.columns, path, "2", (), "title")
    return dict(zip(identifiers(table, item, path), table[title].astype(str), strict=True))
