"""``reference``: the reference paragraph itself, that is, the scores of a perfect explanation.

Its statements are extracted from the text like those of any generator. ``round-trip`` is the same text read by the
extractor instead of the template's parser, which measures what the extraction loses.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfbench_core.specs import ComponentSpec
from cfbench_text.corpus import ExplanationRequests
from cfbench_text.generators.base import Context, Explanation, LookupGenerator, Training

SPECS = (
    ComponentSpec(
        id="text/generator/reference",
        summary="The reference explanation itself",
        target=f"{__name__}:Reference",
        provides={"sees": {"references"}},
        role="reference",
    ),
    ComponentSpec(
        id="text/generator/round-trip",
        summary="The reference explanation, read by the extractor alone: measures the extraction loss",
        target=f"{__name__}:Reference",
        provides={"sees": {"references"}},
        role="reference",
        details={"read": "extractor"},
    ),
)


class Reference(LookupGenerator):
    def __init__(self, config: None = None) -> None: ...

    def fit(self, training: Training) -> None:
        """There is nothing to learn."""

    def explain(self, requests: ExplanationRequests, context: Context) -> Sequence[Explanation]:
        assert context.references is not None
        return [Explanation(context.references[place]) for place in requests.places]
