"""``item-review``: an extractive explanation, the statements of another user's review of the item.

It returns the paragraph of the latest training review of the item by another user that has statements, or an empty
text if there is none. With ``protocol.learn: written`` it returns the latest review itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_text.corpus import ExplanationRequests
from cfbench_text.generators.base import Context, Explanation, LookupGenerator, Training

SPEC = ComponentSpec(
    id="text/generator/item-review",
    summary="The latest training review of the item, word for word",
    target=f"{__name__}:ItemReview",
)


class ItemReview(LookupGenerator):
    def __init__(self, config: None = None) -> None:
        self._said: dict[str, list[tuple[str, str]]] = {}

    def fit(self, training: Training) -> None:
        rows = training.train
        latest_first = np.argsort(rows.times, kind="stable")[::-1].tolist()
        for row in latest_first:
            if rows.targets[row]:
                self._said.setdefault(rows.items[row], []).append((rows.users[row], rows.targets[row]))

    def explain(self, requests: ExplanationRequests, context: Context) -> Sequence[Explanation]:
        return [
            Explanation(next((text for other, text in self._said.get(item, ()) if other != user), ""))
            for user, item in zip(requests.users, requests.items, strict=True)
        ]
