"""``most-frequent``: the most frequent statements of the item, of the user, or of all reviews. A baseline.

It ignores the pair of user and item, so a model that is not better has only learned a prior. Statements are counted as
equal if they are identical, including the sentiment; ties are broken by the order of the file. If an item (or user)
has fewer statements, the most frequent ones of all reviews follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_text.corpus import ExplanationRequests
from cfbench_text.generators.base import Context, Explanation, LookupGenerator, Training
from cfbench_text.triplets import Triplet, render

SPEC = ComponentSpec(
    id="text/generator/most-frequent",
    summary="The most frequent statements: overall, of the item, or of the user",
    target=f"{__name__}:MostFrequent",
    config=f"{__name__}:Config",
    role="baseline",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    of: Annotated[Literal["all", "item", "user"], Help("whose statements are counted")] = "all"
    statements: Annotated[int, Range(minimum=1), Help("in each explanation")] = 4


class MostFrequent(LookupGenerator):
    def __init__(self, config: Config) -> None:
        self.config = config
        self._of_all: list[Triplet] = []
        self._of_one: Mapping[str, list[Triplet]] = {}

    def fit(self, training: Training) -> None:
        rows = training.train
        self._of_all = self._most(t for of_row in rows.triplets for t in of_row)
        if self.config.of == "all":
            return
        names = rows.items if self.config.of == "item" else rows.users
        counted: dict[str, list[Triplet]] = {}
        for name, of_row in zip(names, rows.triplets, strict=True):
            counted.setdefault(name, []).extend(of_row)
        self._of_one = {name: self._most(triplets) for name, triplets in counted.items()}

    def explain(self, requests: ExplanationRequests, context: Context) -> Sequence[Explanation]:
        names = requests.users if self.config.of == "user" else requests.items
        return [Explanation(render(self._said_of(name))) for name in names]

    def _said_of(self, name: str) -> list[Triplet]:
        """Its own first, then those of all that it lacks."""
        together = dict.fromkeys([*self._of_one.get(name, ()), *self._of_all])
        return list(together)[: self.config.statements]

    def _most(self, triplets: Iterable[Triplet]) -> list[Triplet]:
        return [triplet for triplet, _ in Counter(triplets).most_common(self.config.statements)]
