"""``pinterest``: images pinned to boards, from the files of NCF (He et al. 2017, "pinterest-20").

Refined fidelity and Consistency beyond top-1 work on a random sample of 19,155 users, 9,362 items and 486,744
interactions that LXR (Barkan et al. 2024) drew and did not publish. Read from

- ``pinterest.csv``: user, item, a sample external, taken as it is;
- ``pinterest-20.train.rating`` and, in the same folder, ``pinterest-20.test.rating``: "user <tab> item <tab> ..." of
  all 55,187 users. ``users: 19155`` draws so many of them, by ``numpy.random.RandomState(42)``: a sample of
  the papers' size, not their sample. Users and items with fewer than two then leave, recursively.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile, Range
from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_recsys.interactions import Interactions

SPEC = ComponentSpec(
    id="recsys/dataset/pinterest",
    summary="Pinterest: pins of a sample of users; from NCF's files, or a local sample",
    target=f"{__name__}:Pinterest",
    config=f"{__name__}:Config",
    papers=("he2017ncf",),
    details={
        "files": f"{__name__}:FILES",
        "licence": "for research, as published with NCF",
        "embedded": False,
        "counts": (19_155, 9_362, 486_744),
    },
)

LICENCE = "for research, as published with NCF"
PAGE = "https://github.com/hexiangnan/neural_collaborative_filtering/tree/master/Data"
TRAIN, TEST = "pinterest-20.train.rating", "pinterest-20.test.rating"
FILES = DataFiles(
    id="pinterest",
    suite="recsys",
    forms=(Form(files=("pinterest.csv",)), Form(files=(TRAIN,), extras=(TEST,))),
    licence=LICENCE,
    page=PAGE,
    how=f"Take {TRAIN} and {TEST} from the page of NCF",
)
EXPECTED = (19_155, 9_362, 486_744)
SEED = 42


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[
        str | None, InputFile(), Help(f"{TRAIN}, the test file in the same folder; or user, item")
    ] = None
    users: Annotated[
        int | None, Range(minimum=1), Help("draw so many users of NCF's files; none: all of them")
    ] = 19_155


class Pinterest:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return access.find(FILES, self.config.path)

    def load(self, source: Source | Mapping[str, Any]) -> Interactions:
        from cfbench_recsys.interactions import from_pairs

        paths = Source.of(source).paths
        users, items = _pairs(list(paths.values()))
        sampled = TRAIN in paths and self.config.users is not None
        if sampled:
            users, items = _of_drawn_users(users, items, int(self.config.users or 0))
        drawn = f"{self.config.users:,} users drawn; " if sampled else ""
        return from_pairs(
            "pinterest",
            users,
            items,
            core=2,
            about={
                "title": "Pinterest",
                "nouns": {"user": "user", "users": "users", "item": "pin", "items": "pins"},
                "because": "they pinned",
                "licence": LICENCE,
                "page": PAGE,
                "release": "",
                "rule": f"{drawn}recursively, users and items with at least 2",
            },
            expected=EXPECTED,
        )


def _pairs(paths: Sequence[Path]) -> tuple[list[str], list[str]]:
    from cfbench_recsys.reading import rated_above, read_table

    users: list[str] = []
    items: list[str] = []
    for path in paths:
        table = read_table(path)
        found = rated_above(table[table.columns[:2]], path, above=0.0)  # its ratings are all 1
        users += found["users"]
        items += found["items"]
    return users, items


def _of_drawn_users(users: list[str], items: list[str], count: int) -> tuple[list[str], list[str]]:
    import numpy as np

    distinct = np.array(sorted(set(users)), dtype=object)
    drawn = set(distinct[np.random.RandomState(SEED).permutation(len(distinct))[:count]])
    retained = [place for place, user in enumerate(users) if user in drawn]
    return [users[place] for place in retained], [items[place] for place in retained]
