"""``ml-100k``: MovieLens 100K (Harper & Konstan 2015).

A rating of 4 or 5 is an interaction; then, recursively, users and items with fewer than two leave. Read from
the owner's ``u.data`` with titles from ``u.item``, or from the atomic files ``ml-100k.inter`` and
``ml-100k.item``. No paper of ours gives its counts under this rule: the expected ones were counted with it on
the owner's 100,000 ratings.
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
    id="recsys/dataset/ml-100k",
    summary="MovieLens 100K: ratings of 4 and 5, users and items with at least 2",
    target=f"{__name__}:MovieLens100K",
    config=f"{__name__}:Config",
    papers=("harper2015movielens",),
    details={
        "files": f"{__name__}:FILES",
        "licence": "GroupLens licence, no redistribution",
        "embedded": False,
        "counts": (942, 1_283, 55_211),
    },
)

FILES = movielens_files(
    "ml-100k",
    page="100k",
    forms=(
        Form(files=("u.data",), extras=("u.item",)),
        Form(files=("ml-100k.inter",), extras=("ml-100k.item",)),
    ),
    members=("ml-100k/u.data", "ml-100k/u.item"),
    bytes=4_924_029,
    archive_sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    sha256={  # as published by several projects that use them
        "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
        "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
        "ml-100k.inter": "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
    },
)
EXPECTED = (942, 1_283, 55_211)


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[
        str | None, InputFile(), Help("u.data, or an .inter file; titles are in the same folder")
    ] = None


class MovieLens100K:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.reading import read_table

        paths = Source.of(source).paths
        if "u.data" in paths:
            path = paths["u.data"]
            table, names = owners_table(path, "\t"), titles(paths.get("u.item"), separator="|")
        else:
            path = paths["ml-100k.inter"]
            table, names = read_table(path), titles(paths.get("ml-100k.item"), separator=None)
        return load_movielens(FILES, "MovieLens 100K", table, path, names, EXPECTED)
