"""``ml-20m``: MovieLens 20M (Harper & Konstan 2015), by the rule of papers 000 to 002.

A rating above 3.5 is an interaction; then, recursively, users and items with fewer than two leave. Read from
the owner's ``ratings.csv`` (userId, movieId, rating, timestamp); titles from ``movies.csv``. No paper gives
counts after this rule, so nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFile, DataFiles, Form, Source
from cfbench_core.specs import ComponentSpec

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

LICENCE = "GroupLens licence"
PAGE = "https://grouplens.org/datasets/movielens/20m/"
FILES = DataFiles(
    id="ml-20m",
    suite="recsys",
    forms=(Form(files=("ratings.csv",), extras=("movies.csv",)),),
    downloads=(
        DataFile(
            name="ml-20m.zip",
            url="https://files.grouplens.org/datasets/movielens/ml-20m.zip",
            # As published by catalogues, TensorFlow Datasets among them.
            bytes=198_702_078,
            sha256="96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
            licence=LICENCE,
            page=PAGE,
            members=("ml-20m/ratings.csv", "ml-20m/movies.csv"),
        ),
    ),
    licence=LICENCE,
    page=PAGE,
)


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str | None, InputFile(), Help("ratings.csv; movies.csv lies beside it")] = None


class MovieLens20M:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.datasets.movielens import ABOVE, about, titles
        from cfbench_recsys.interactions import from_pairs
        from cfbench_recsys.reading import rated_above, read_table

        paths = Source.of(source).paths
        path = paths["ratings.csv"]
        return from_pairs(
            "ml-20m",
            **rated_above(read_table(path, separator=","), path, ABOVE),
            core=2,
            names=titles(paths.get("movies.csv"), separator=None),
            about=about("MovieLens 20M", FILES),
        )
