"""The data sets that the distribution registers. Data only."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

_HERE = "cfbench_text.datasets"
_AMAZON = "McAuley et al. 2015"


def _amazon(name: str, implementation: str, files: str, summary: str) -> ComponentSpec:
    return ComponentSpec(
        id=f"text/dataset/{name}",
        summary=summary,
        target=f"{_HERE}.amazon_2014:{implementation}",
        config=f"{_HERE}.amazon_2014:Config",
        paper=_AMAZON,
        details={
            "files": f"{_HERE}.amazon_2014:{files}",
            "licence": "for research, no redistribution",
            "embedded": False,
        },
    )


DATASETS = (
    ComponentSpec(
        id="text/dataset/toy-reviews",
        summary="Synthetic reviews of headphones, made by a grammar from known statements",
        target=f"{_HERE}.toy_reviews:ToyReviews",
        config=f"{_HERE}.toy_reviews:Config",
        details={"licence": "Apache-2.0", "embedded": True},
    ),
    _amazon("toys", "Toys", "TOYS", "Amazon 2014, toys and games: 167,597 reviews"),
    _amazon("clothes", "Clothes", "CLOTHES", "Amazon 2014, clothing, shoes, jewellery: 278,677 reviews"),
    _amazon("beauty", "Beauty", "BEAUTY", "Amazon 2014, beauty: 198,502 reviews"),
    _amazon("sports", "Sports", "SPORTS", "Amazon 2014, sports and outdoors: 296,337 reviews"),
    _amazon("cellphones", "Cellphones", "CELLPHONES", "Amazon 2014, cell phones: 194,439 reviews"),
    _amazon(
        "musical-instruments",
        "MusicalInstruments",
        "MUSICAL_INSTRUMENTS",
        "Amazon 2014, musical instruments: 10,261 reviews; topics of our own",
    ),
    ComponentSpec(
        id="text/dataset/reviews",
        summary="Reviews of one's own: JSON lines or CSV, and topics as YAML",
        target=f"{_HERE}.reviews:ReviewsFile",
        config=f"{_HERE}.reviews:Config",
        details={"licence": "", "embedded": False},
    ),
)
