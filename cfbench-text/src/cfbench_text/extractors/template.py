"""``template``: the exact inverse of the suite's template for paragraphs.

Topics, which a paragraph does not contain, are found by the keywords of the domain; a statement without a keyword has an
empty topic. A text that does not follow the template is a failure, not an empty result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cfbench_core.specs import ComponentSpec
from cfbench_text.extractors.base import Extraction
from cfbench_text.triplets import parse

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

SPEC = ComponentSpec(
    id="text/extractor/template",
    summary="The exact inverse of the template that renders paragraphs",
    target=f"{__name__}:Template",
)


OTHER_FORM = "not in the template's form"


class Template:
    def __init__(self, config: None = None) -> None: ...

    def extract(self, texts: Sequence[str], domain: Domain) -> list[Extraction]:
        found = []
        for text in texts:
            triplets = parse(text, domain.topic_of)
            if triplets is None:
                found.append(Extraction((), "failed", {OTHER_FORM: 1}))
            else:
                found.append(Extraction(triplets, "ok" if triplets else "empty"))
        return found

    def signature(self) -> Mapping[str, str]:
        return {"extractor": "template"}
