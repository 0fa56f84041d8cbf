"""``amazon-fashion``: Amazon Reviews 2023 (Hou et al. 2024), category Amazon_Fashion, as CFExpRec uses it.

A rating above 3 is an interaction; then users and items with at least three: 1,275 users, 1,374 items, 6,973
interactions (in the table of these counts every user and item has three, so the rule is recursive). Read from

- the owner's ratings ``Amazon_Fashion.csv.gz`` (user_id, parent_asin, rating, timestamp) or reviews
  ``Amazon_Fashion.jsonl.gz``, to which the rule is applied; titles from ``meta_Amazon_Fashion.jsonl.gz`` if
  it is in the same folder;
- ``amazon-fashion.csv`` (user_id, item_id), to which it was applied before, its identifiers numbered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFile, DataFiles, Form, Source
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/amazon-fashion",
    summary="Amazon Reviews 2023, fashion: ratings above 3, users and items with at least 3",
    target=f"{__name__}:AmazonFashion",
    config=f"{__name__}:Config",
    papers=("hou2024amazon",),
    details={
        "files": f"{__name__}:FILES",
        "licence": "Amazon Reviews 2023, for research, no redistribution",
        "embedded": False,
        "counts": (1_275, 1_374, 6_973),
    },
)

LICENCE = "for research, no redistribution"
PAGE = "https://amazon-reviews-2023.github.io/"
META = ("meta_Amazon_Fashion.jsonl.gz", "meta_Amazon_Fashion.jsonl")
FILES = DataFiles(
    id="amazon-fashion",
    suite="recsys",
    forms=(
        Form(files=("amazon-fashion.csv",)),
        Form(files=("Amazon_Fashion.csv.gz",), extras=META),
        Form(files=("Amazon_Fashion.csv",), extras=META),
        Form(files=("Amazon_Fashion.jsonl.gz",), extras=META),
        Form(files=("Amazon_Fashion.jsonl",), extras=META),
    ),
    downloads=(
        DataFile(
            name="Amazon_Fashion.csv.gz",
            url="https://mcauleylab.ucsd.edu/public_datasets/data/amazon_2023/benchmark/0core/rating_only/"
            "Amazon_Fashion.csv.gz",
            licence=LICENCE,  # its owner publishes neither size nor checksum
            page=PAGE,
        ),
    ),
    licence=LICENCE,
    page=PAGE,
)
EXPECTED = (1_275, 1_374, 6_973)
ABOVE = 3.0
RULE = "ratings above 3; recursively, users and items with at least 3"


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[
        str | None, InputFile(), Help("the owner's .csv or .jsonl, gzipped or not; or a prepared .csv")
    ] = None


class AmazonFashion:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.interactions import from_pairs
        from cfbench_recsys.reading import rated_above, read_table

        paths = Source.of(source).paths
        path = next(path for name, path in paths.items() if name not in META)
        about = {
            "title": "Amazon Reviews 2023, fashion",
            "nouns": {"user": "customer", "users": "customers", "item": "product", "items": "products"},
            "because": "they liked",
            "licence": LICENCE,
            "page": PAGE,
            "release": "",
            "rule": RULE,
        }
        fields = ("user_id", "parent_asin", "rating", "timestamp")  # of a review; not its text
        pairs = rated_above(read_table(path, fields=fields), path, ABOVE)
        meta = next((paths[name] for name in META if name in paths), None)
        names = {} if meta is None else _titles(meta, set(pairs["items"]))
        return from_pairs("amazon-fashion", **pairs, core=3, names=names, about=about, expected=EXPECTED)


def _titles(path: Path, wanted: set[str]) -> dict[str, str]:
    from cfbench_recsys.reading import json_lines

    found = json_lines(path, ("parent_asin", "title"))
    return {str(row["parent_asin"]): str(row["title"] or "") for row in found if row["parent_asin"] in wanted}
