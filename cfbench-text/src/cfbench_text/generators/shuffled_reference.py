"""``shuffled-reference``: the reference of another row. A baseline that is fluent and plausible but off-topic.

A random cyclic permutation assigns each row the reference of another one. Each reference is used once, so every
corpus-level property of the references is preserved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_text.corpus import ExplanationRequests
from cfbench_text.generators.base import Context, Explanation, LookupGenerator, Training

SPEC = ComponentSpec(
    id="text/generator/shuffled-reference",
    summary="The reference explanation of another row",
    target=f"{__name__}:ShuffledReference",
    provides={"sees": {"references"}},
    role="baseline",
)


class ShuffledReference(LookupGenerator):
    def __init__(self, config: None = None) -> None: ...

    def fit(self, training: Training) -> None:
        """There is nothing to learn."""

    def explain(self, requests: ExplanationRequests, context: Context) -> Sequence[Explanation]:
        assert context.references is not None
        circle = context.rng("all").permutation(len(context.references))
        following = np.empty_like(circle)
        following[circle] = np.roll(circle, -1)
        return [Explanation(context.references[following[place]]) for place in requests.places]
