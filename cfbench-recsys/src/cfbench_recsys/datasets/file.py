"""``file``: a file of the user's own, with a user and an item in each row.

    data: {name: file, path: ratings.csv, min_rating: 4, k_core: 2}

CSV or other delimited text (the separator is found), Parquet, JSON lines, or an atomic file (``.inter``);
gzipped or not. Columns are known by their usual names (user, user_id, userId, ...), or named here. A file
without a header has the columns "1", "2", ...: user, item, rating, time, as far as they go. Identifiers stay
as they are, 0- or 1-based.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile, Range
from cfbench_core.data_files import DataAccess, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_core.user_files import find_column, need_column, user_files

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/file",
    summary="A local file: CSV, TSV, Parquet, JSON lines or .inter; a user and an item in each row",
    target=f"{__name__}:File",
    config=f"{__name__}:Config",
    details={"licence": "yours", "embedded": False, "how": "named in the configuration: path: ratings.csv"},
)

PATH = "path"


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str, InputFile(), Help("CSV, TSV, Parquet, JSON lines or .inter; gzipped or not")]
    user: Annotated[str | None, Help("column of the user; none: by its usual names")] = None
    item: Annotated[str | None, Help("column of the item; none: by its usual names")] = None
    rating: Annotated[str | None, Help("column of the rating, for min_rating; none: by its usual names")] = (
        None
    )
    time: Annotated[str | None, Help("column of the time, a number or a date; none: by its usual names")] = (
        None
    )
    item_name: Annotated[str | None, Help("column of what people call the item; none: its identifier")] = None
    min_rating: Annotated[float | None, Help("lower ratings are no interactions; none: every row is one")] = (
        None
    )
    k_core: Annotated[int, Range(minimum=1), Help("users and items with fewer leave, recursively")] = 1
    separator: Annotated[str | None, Help("of delimited text; none: found in the first line")] = None
    header: Annotated[bool | None, Help("whether the first line names the columns; none: found out")] = None
    encoding: Annotated[str, Help("of text")] = "utf-8"


class File:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return user_files({PATH: self.config.path})

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.interactions import from_pairs
        from cfbench_recsys.reading import check_columns, identifiers, latest_of_each_pair, read_table

        path = Source.of(source).paths[PATH]
        config = self.config
        named = (config.user, config.item, config.rating, config.time, config.item_name)
        table = read_table(
            path,
            separator=config.separator,
            header=config.header,
            encoding=config.encoding,
            known_names=[name for name in named if name is not None],
        )
        columns = _columns(table, path, config)
        check_columns(path, str(columns["user"]), str(columns["item"]))
        rows = len(table)
        if config.min_rating is not None:  # of the latest opinions, so that a changed mind is no interaction
            table = latest_of_each_pair(
                table,
                str(columns["user"]),
                str(columns["item"]),
                lambda some: _times(some, path, columns["time"]),
            )
        replaced = rows - len(table)
        table = _positive(table, path, columns["rating"], config.min_rating)
        items = identifiers(table, str(columns["item"]), path)
        return from_pairs(
            path.name.partition(".")[0],
            identifiers(table, str(columns["user"]), path),
            items,
            times=_times(table, path, columns["time"]),
            core=config.k_core,
            replaced=replaced,
            names=_names(table, path, items, config.item_name),
            about={"title": path.name, "licence": "", "page": "", "release": "", "rule": _rule(config)},
        )


def _columns(table: pd.DataFrame, path: Path, config: Config) -> dict[str, str | None]:
    from cfbench_recsys.reading import ITEMS, RATINGS, TIMES, USERS

    unnamed = list(table.columns) == [str(place + 1) for place in range(table.shape[1])]
    first, second, third, fourth = (
        (("1",), ("2",), ("3",), ("4",)) if unnamed else (USERS, ITEMS, RATINGS, TIMES)
    )
    return {
        "user": need_column(table.columns, path, config.user, first, "user"),
        "item": need_column(table.columns, path, config.item, second, "item"),
        "rating": find_column(table.columns, path, config.rating, third, "rating"),
        "time": find_column(table.columns, path, config.time, fourth, "time"),
    }


def _positive(table: pd.DataFrame, path: Path, rating: str | None, min_rating: float | None) -> pd.DataFrame:
    from cfbench_recsys.reading import numbers

    if min_rating is None:
        return table
    if rating is None:
        raise UserError(
            f"{path}: min_rating needs a rating, and no column has a usual name for it; name it with 'rating: ...'. "
            f"Its columns: {', '.join(table.columns)}"
        )
    ratings = numbers(table, rating, path)
    if ratings.max() < min_rating:
        raise UserError(
            f"{path}: min_rating: {min_rating:g} is above all ratings: of {len(table):,} rows the highest has "
            f"{ratings.max():g} in the column {rating}"
        )
    return table[ratings >= min_rating]


def _times(table: pd.DataFrame, path: Path, column: str | None) -> Any:
    from cfbench_recsys.reading import moments

    return None if column is None else moments(table, column, path)


def _names(table: pd.DataFrame, path: Path, items: list[str], column: str | None) -> dict[str, str]:
    if column is None:
        return {}
    names = table[need_column(table.columns, path, column, (), "item_name")]
    return dict(zip(items, names.astype(str), strict=True))


def _rule(config: Config) -> str:
    rating = "every row" if config.min_rating is None else f"ratings of at least {config.min_rating:g}"
    return (
        rating
        if config.k_core == 1
        else f"{rating}; recursively, users and items with at least {config.k_core}"
    )
