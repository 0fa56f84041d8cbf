"""``reference``: the true paragraph itself. The ceiling: what the metrics give a perfect explanation.

Its statements come out of the text again like everybody else's, so the row also shows what the extraction
loses: ``round-trip`` is the same text read by the extractor alone, without the knowledge of its template.
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
