"""What the MovieLens data sets have in common: the rule, and where titles stand.

The rule of papers 000 to 002: a rating above 3.5 is an interaction; then, recursively, users and items with at least 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.data_files import DataFiles

if TYPE_CHECKING:
    import pandas as pd

NOUNS = {"user": "user", "users": "users", "item": "film", "items": "films"}
RULE = "ratings of 4 and 5; recursively, users and items with at least 2"
ABOVE = 3.5


def about(title: str, files: DataFiles) -> dict[str, Any]:
    return {"title": title, "nouns": NOUNS, "licence": files.licence, "page": files.page, "release": "", "rule": RULE}


def positive(table: pd.DataFrame, path: Path) -> dict[str, Any]:
    """Users, items and times of the ratings above 3.5 (of all rows, where a prepared table has no ratings).

    The owner's files have no header: user, item, rating, time.
    """
    from cfbench_recsys.reading import ITEMS, RATINGS, TIMES, USERS, find_column, identifiers, need_column, numbers

    user = need_column(table, path, None, (*USERS, "1"), "user")
    item = need_column(table, path, None, (*ITEMS, "2"), "item")
    rating = find_column(table, path, None, (*RATINGS, "3"), "rating")
    time = find_column(table, path, None, (*TIMES, "4"), "time")
    if rating is not None:
        table = table[numbers(table, rating, path) > ABOVE]
    return {
        "users": identifiers(table, user, path),
        "items": identifiers(table, item, path),
        "times": None if time is None else numbers(table, time, path),
    }


def titles(path: Path | None, separator: str | None) -> dict[str, str]:
    """Title by item; empty without a file. ``separator`` None: an atomic file with a header."""
    from cfbench_recsys.reading import ITEMS, identifiers, need_column, read_table

    if path is None:
        return {}
    if separator is None:
        table = read_table(path)
        item = need_column(table, path, None, ITEMS, "item")
        title = need_column(table, path, None, ("movie_title", "title", "name"), "title")
    else:
        table = read_table(path, separator=separator, header=False, encoding="latin-1", quoted=False)
        item, title = "1", need_column(table, path, "2", (), "title")
    return dict(zip(identifiers(table, item, path), table[title].astype(str), strict=True))
