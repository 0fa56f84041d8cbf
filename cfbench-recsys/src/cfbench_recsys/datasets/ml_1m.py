"""``ml-1m``: MovieLens 1M (Harper & Konstan 2015), as CFExpRec, Refined fidelity and Consistency beyond top-1 use it.

A rating of 4 or 5 is an interaction; then, recursively, users and items with fewer than two leave: 6,037
users, 3,381 items, 575,128 interactions. Read from the owner's ``ratings.dat``, or from ``ml-1m.parquet``
(columns user, item), to which the rule was applied before; the second has no times. Titles from
``movies.dat``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, Form, Source
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.datasets.movielens import load_movielens, movielens_files, owners_table, titles

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/ml-1m",
    summary="MovieLens 1M: ratings of 4 and 5, users and items with at least 2",
    target=f"{__name__}:MovieLens1M",
    config=f"{__name__}:Config",
    papers=("harper2015movielens",),
    details={
        "files": f"{__name__}:FILES",
        "licence": "GroupLens licence, no redistribution",
        "embedded": False,
        "counts": (6_037, 3_381, 575_128),
    },
)

FILES = movielens_files(
    "ml-1m",
    page="1m",
    forms=(
        Form(files=("ratings.dat",), extras=("movies.dat",)),
        Form(files=("ml-1m.parquet",), extras=("ml-1m.movies.dat", "movies.dat")),
    ),
    members=("ml-1m/ratings.dat", "ml-1m/movies.dat"),
    bytes=5_917_549,
    archive_sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    sha256={  # of the archive's members, as published by several projects that use them
        "ratings.dat": "506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f",
        "movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
        "ml-1m.movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
    },
)
EXPECTED = (6_037, 3_381, 575_128)


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[
        str | None,
        InputFile(),
        Help("ratings.dat, or a prepared .parquet (user, item); titles are in the same folder"),
    ] = None


class MovieLens1M:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.reading import read_table

        paths = Source.of(source).paths
        names = titles(paths.get("movies.dat") or paths.get("ml-1m.movies.dat"), separator="::")
        path = paths["ratings.dat"] if "ratings.dat" in paths else paths["ml-1m.parquet"]
        table = owners_table(path, "::") if "ratings.dat" in paths else read_table(path)
        return load_movielens(FILES, "MovieLens 1M", table, path, names, EXPECTED)
