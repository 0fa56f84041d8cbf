"""``ml-20m``: MovieLens 20M (Harper & Konstan 2015), by the rule of CFExpRec, Refined fidelity and Consistency beyond top-1.

A rating above 3.5 is an interaction; then, recursively, users and items with fewer than two leave. Read from
the owner's ``ratings.csv`` (userId, movieId, rating, timestamp); titles from ``movies.csv``. No paper gives
counts after this rule, so nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, Form, Source
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.datasets.movielens import load_movielens, movielens_files, titles

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/ml-20m",
    summary="MovieLens 20M: ratings of 4 and more, users and items with at least 2",
    target=f"{__name__}:MovieLens20M",
    config=f"{__name__}:Config",
    papers=("harper2015movielens",),
    details={
        "files": f"{__name__}:FILES",
        "licence": "GroupLens licence, no redistribution",
        "embedded": False,
    },
)

FILES = movielens_files(
    "ml-20m",
    page="20m",
    forms=(Form(files=("ratings.csv",), extras=("movies.csv",)),),
    members=("ml-20m/ratings.csv", "ml-20m/movies.csv"),
    bytes=198_702_078,
    archive_sha256="96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str | None, InputFile(), Help("ratings.csv; movies.csv is in the same folder")] = None


class MovieLens20M:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.reading import read_table

        paths = Source.of(source).paths
        path = paths["ratings.csv"]
        names = titles(paths.get("movies.csv"), separator=None)
        return load_movielens(FILES, "MovieLens 20M", read_table(path, separator=","), path, names)
