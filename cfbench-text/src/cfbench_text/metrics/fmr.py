"""FMR, feature matching ratio (Li et al. 2020): does the text contain the keywords of the user's topics?

The features of a row are the keywords of the domain in the user's statements; the value is the share of them that the
text contains, regardless of sentiment. The original has one feature per row, for which both definitions are equal. FCR,
DIV and USR are properties of all texts together; see the analysis ``corpus``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/fmr",
    summary="Are the user's keywords in the text?",
    target=f"{__name__}:FMR",
    papers=("li2020nete",),
)


class FMR:
    def __init__(self, config: None = None) -> None: ...

    def columns(self, point: Point) -> Sequence[Column]:
        return (Column("FMR", "higher", (0.0, 1.0), "How many of the user's keywords does the text name?"),)

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        values = np.full(len(observed), np.nan)
        for row, (text, evidence) in enumerate(zip(observed.texts, observed.evidence, strict=True)):
            wanted = {word for t in evidence for word in observed.domain.keywords_in(t.statement)}
            if wanted:
                values[row] = len(wanted & set(observed.domain.keywords_in(text))) / len(wanted)
        return {"FMR": values}
