"""Amazon Reviews 2014 (McAuley et al. 2015), 5-core JSON lines: the five domains of Statement factuality and one more.

``toys``, ``clothes``, ``beauty``, ``sports``, ``cellphones`` (table II of the paper; topics of tables X to XIV) and
``musical-instruments``, which is small enough for a laptop (10,261 reviews of 1,429 users and 900 items; topics defined
by cfbench). Fields: reviewerID, asin, overall, reviewText, unixReviewTime. The provider publishes no checksums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFile, DataFiles, Form, Source
from cfbench_core.specs import ComponentSpec
from cfbench_text.domains import TOPICS, with_topics

if TYPE_CHECKING:
    from cfbench_text.reviews import Reviews

SPECS = (
    ComponentSpec(
        id="text/dataset/toys",
        summary="Amazon 2014, toys and games: 167,597 reviews",
        target=f"{__name__}:Toys",
        config=f"{__name__}:Config",
        papers=("mcauley2015amazon",),
        details={
            "files": f"{__name__}:TOYS",
            "licence": "for research, no redistribution",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="text/dataset/clothes",
        summary="Amazon 2014, clothing, shoes, jewellery: 278,677 reviews",
        target=f"{__name__}:Clothes",
        config=f"{__name__}:Config",
        papers=("mcauley2015amazon",),
        details={
            "files": f"{__name__}:CLOTHES",
            "licence": "for research, no redistribution",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="text/dataset/beauty",
        summary="Amazon 2014, beauty: 198,502 reviews",
        target=f"{__name__}:Beauty",
        config=f"{__name__}:Config",
        papers=("mcauley2015amazon",),
        details={
            "files": f"{__name__}:BEAUTY",
            "licence": "for research, no redistribution",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="text/dataset/sports",
        summary="Amazon 2014, sports and outdoors: 296,337 reviews",
        target=f"{__name__}:Sports",
        config=f"{__name__}:Config",
        papers=("mcauley2015amazon",),
        details={
            "files": f"{__name__}:SPORTS",
            "licence": "for research, no redistribution",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="text/dataset/cellphones",
        summary="Amazon 2014, cell phones: 194,439 reviews",
        target=f"{__name__}:Cellphones",
        config=f"{__name__}:Config",
        papers=("mcauley2015amazon",),
        details={
            "files": f"{__name__}:CELLPHONES",
            "licence": "for research, no redistribution",
            "embedded": False,
        },
    ),
    ComponentSpec(
        id="text/dataset/musical-instruments",
        summary="Amazon 2014, musical instruments: 10,261 reviews; topics defined by cfbench",
        target=f"{__name__}:MusicalInstruments",
        config=f"{__name__}:Config",
        papers=("mcauley2015amazon",),
        details={
            "files": f"{__name__}:MUSICAL_INSTRUMENTS",
            "licence": "for research, no redistribution",
            "embedded": False,
        },
    ),
)


LICENCE = "for research, no redistribution"
PAGE = "https://jmcauley.ucsd.edu/data/amazon/links.html"
ROOT = "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles"


def _files(id: str, category: str) -> DataFiles:
    name = f"reviews_{category}_5.json.gz"
    folder = id.replace("-", "_")
    return DataFiles(
        id=id,
        suite="text",
        forms=(
            Form(files=(name,)),
            Form(files=(f"reviews_{category}_5.json",)),
            Form(files=(f"{folder}/{name}",)),
        ),
        downloads=(DataFile(name=name, url=f"{ROOT}/{name}", licence=LICENCE, page=PAGE),),
        licence=LICENCE,
        page=PAGE,
    )


TOYS = _files("toys", "Toys_and_Games")
CLOTHES = _files("clothes", "Clothing_Shoes_and_Jewelry")
BEAUTY = _files("beauty", "Beauty")
SPORTS = _files("sports", "Sports_and_Outdoors")
CELLPHONES = _files("cellphones", "Cell_Phones_and_Accessories")
MUSICAL_INSTRUMENTS = _files("musical-instruments", "Musical_Instruments")


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str | None, InputFile(), Help("the owner's 5-core .json.gz or .json")] = None
    domain: Annotated[str | None, Help("its topics: a domain, or a YAML file; none: those of the set")] = None


class Amazon:
    """One category, given by ``files``. Its topics have the same name."""

    files: DataFiles

    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        found = access.find(self.files, self.config.path)
        return with_topics(found, self.config.domain) if self.config.domain else found

    def load(self, source: Source | Mapping[str, Any]) -> Reviews:
        from cfbench_text.reading import read_reviews

        paths = dict(Source.of(source).paths)
        domain = paths.pop(TOPICS, None) or self.config.domain or self.files.id
        return read_reviews(next(iter(paths.values())), self.files.id, str(domain), {})


class Toys(Amazon):
    files = TOYS


class Clothes(Amazon):
    files = CLOTHES


class Beauty(Amazon):
    files = BEAUTY


class Sports(Amazon):
    files = SPORTS


class Cellphones(Amazon):
    files = CELLPHONES


class MusicalInstruments(Amazon):
    files = MUSICAL_INSTRUMENTS
