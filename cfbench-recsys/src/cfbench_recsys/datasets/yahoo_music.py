"""``yahoo-music``: Yahoo! Music user ratings of artists, as LXR (Barkan et al. 2024) uses them.

A rating above 70 of 100 is an interaction; 255 ("never play again") counts as 0; then, recursively, users and
items with fewer than two leave. CFExpRec, Refined fidelity and Consistency beyond top-1 work on a sample of 13,797
users, 4,604 items and 365,750 interactions, which its authors have not published: a file that holds it gives these
counts, another file its own, and the difference is reported.

Yahoo's licence forbids passing the data on, and it is given on request only: get it from the page below, and
put one of these files into a data folder, or name it with ``path``.

- ``yahoo-music.csv``: user, item, rating (a header or none), the sample;
- ``ydata-ymusic-user-artist-ratings-v1_0.txt``: Yahoo's R1, "user <tab> artist <tab> rating".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.specs import ComponentSpec
from cfbench_core.user_files import need_column

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/yahoo-music",
    summary="Yahoo! Music: ratings above 70 of 100, users and items with at least 2; from a local file",
    target=f"{__name__}:YahooMusic",
    config=f"{__name__}:Config",
    papers=("barkan2024lxr",),
    details={
        "files": f"{__name__}:FILES",
        "licence": "Yahoo Webscope, on request, no redistribution",
        "embedded": False,
        "counts": (13_797, 4_604, 365_750),
    },
)

LICENCE = "Yahoo Webscope, on request, no redistribution"
PAGE = "https://webscope.sandbox.yahoo.com/catalog.php?datatype=r"
FILES = DataFiles(
    id="yahoo-music",
    suite="recsys",
    forms=(
        Form(files=("yahoo-music.csv",)),
        Form(files=("ydata-ymusic-user-artist-ratings-v1_0.txt",)),
    ),
    licence=LICENCE,
    page=PAGE,
    how="Ask Yahoo for 'R1 - Yahoo! Music User Ratings of Musical Artists'",
)
EXPECTED = (13_797, 4_604, 365_750)
ABOVE, NEVER_AGAIN = 70.0, 255.0
RULE = "ratings above 70 of 100 (255 means 0); recursively, users and items with at least 2"


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str | None, InputFile(), Help("user, item, rating from 0 to 100 (255: never again)")] = (
        None
    )


class YahooMusic:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.interactions import from_pairs
        from cfbench_recsys.reading import RATINGS, rated_above, read_table

        path = next(iter(Source.of(source).paths.values()))
        table = read_table(path)
        need_column(table.columns, path, None, (*RATINGS, "3"), "rating")
        return from_pairs(
            "yahoo-music",
            **rated_above(table, path, ABOVE, NEVER_AGAIN),
            core=2,
            about={
                "title": "Yahoo! Music",
                "nouns": {"user": "listener", "users": "listeners", "item": "artist", "items": "artists"},
                "because": "they liked",
                "licence": LICENCE,
                "page": PAGE,
                "release": "",
                "rule": RULE,
            },
            expected=EXPECTED,
        )
