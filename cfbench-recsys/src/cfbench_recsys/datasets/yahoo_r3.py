"""``yahoo-r3``: Yahoo! R3, ratings of songs from 1 to 5 by listeners' own choice.

A rating of 4 or 5 is an interaction; then, recursively, users and items with fewer than two leave. Yahoo
gives the file on request only and forbids passing it on: put
``ydata-ymusic-rating-study-v1_0-train.txt`` ("user <tab> song <tab> rating") into a data folder,
or name it with ``path``. Its other file, ratings of songs drawn at random, is not used: what was forced on a
listener is no interaction. No paper gives counts after this rule, so nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/yahoo-r3",
    summary="Yahoo! R3: ratings of 4 and 5, users and items with at least 2; from a local file",
    target=f"{__name__}:YahooR3",
    config=f"{__name__}:Config",
    details={
        "files": f"{__name__}:FILES",
        "licence": "Yahoo Webscope, on request, no redistribution",
        "embedded": False,
    },
)

LICENCE = "Yahoo Webscope, on request, no redistribution"
PAGE = "https://webscope.sandbox.yahoo.com/catalog.php?datatype=r"
FILES = DataFiles(
    id="yahoo-r3",
    suite="recsys",
    forms=(Form(files=("ydata-ymusic-rating-study-v1_0-train.txt",)), Form(files=("yahoo-r3.csv",))),
    licence=LICENCE,
    page=PAGE,
    how="Ask Yahoo for 'R3 - Yahoo! Music ratings for User Selected and Randomly Selected songs'",
)
ABOVE = 3.5
RULE = "ratings of 4 and 5; recursively, users and items with at least 2"


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str | None, InputFile(), Help("user, song, rating from 1 to 5")] = None


class YahooR3:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.interactions import from_pairs
        from cfbench_recsys.reading import rated_above, read_table

        path = next(iter(Source.of(source).paths.values()))
        return from_pairs(
            "yahoo-r3",
            **rated_above(read_table(path), path, ABOVE),
            core=2,
            about={
                "title": "Yahoo! R3",
                "nouns": {"user": "listener", "users": "listeners", "item": "song", "items": "songs"},
                "because": "they liked",
                "licence": LICENCE,
                "page": PAGE,
                "release": "",
                "rule": RULE,
            },
        )
