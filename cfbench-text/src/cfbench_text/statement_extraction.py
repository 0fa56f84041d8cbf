"""Extracts the statements of texts: each distinct text once, and exactly where a text follows the template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cfbench_core.errors import UserError
from cfbench_text.contracts import Extractor
from cfbench_text.domains import Domain
from cfbench_text.extractors.base import Extraction
from cfbench_text.extractors.template import Template

NOT_USABLE = "rejected by the extractor"
"""Why a statement of a paragraph is excluded."""


def extract_distinct(
    extractor: Extractor, texts: Sequence[str], domain: Domain, label: str
) -> list[Extraction]:
    """The extraction of each text; each distinct text is extracted once.

    Raises:
        UserError: when the extractor returns another number of extractions, beginning with ``label``.
    """
    distinct = list(dict.fromkeys(texts))
    found = extractor.extract(distinct, domain) if distinct else []
    if len(found) != len(distinct):
        count = len(distinct)
        raise UserError(f"{label}: the extractor returned {len(found)} extractions for {count} texts")
    known = dict(zip(distinct, found, strict=True))
    return [known[text] for text in texts]


def extract_generated(
    extractor: Extractor, texts: Sequence[str], domain: Domain, label: str, template: bool
) -> tuple[list[Extraction], int]:
    """The extraction of each generated text, and how many were read by the template.

    Args:
        template: whether texts that follow the template are read exactly, without the statements that the extractor
            rejects.
        label: begins the messages of errors, as for :func:`extract_distinct`.
    """
    known: dict[str, Extraction] = {}
    if template:
        exact = zip(texts, Template().extract(texts, domain), strict=True)
        known = {text: _checked(one, extractor) for text, one in exact if one.status != "failed"}
    others = [text for text in texts if text not in known]
    known |= dict(zip(others, extract_distinct(extractor, others, domain, label), strict=True))
    return [known[text] for text in texts], len(texts) - len(others)


def _checked(found: Extraction, extractor: Extractor) -> Extraction:
    """Without the statements that the extractor would not have extracted from a review."""
    usable = getattr(extractor, "usable", None)
    included = found.triplets if usable is None else tuple(filter(usable, found.triplets))
    if len(included) == len(found.triplets):
        return found
    left_out = {**found.left_out, NOT_USABLE: len(found.triplets) - len(included)}
    return replace(found, triplets=included, status="ok" if included else "empty", left_out=left_out)


class Tally:
    """Counts statements, texts by status, and excluded statements by reason."""

    def __init__(self) -> None:
        self.texts = self._statements = 0
        self._ends: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._why: Counter[str] = Counter()

    def add(self, found: Sequence[Extraction]) -> None:
        self.texts += len(found)
        self._statements += sum(len(one.triplets) for one in found)
        self._ends.update(one.status for one in found)
        self._why.update(one.reason for one in found if one.status == "failed")
        for one in found:
            self._left_out.update(one.left_out)

    @property
    def failed(self) -> int:
        """Texts whose extraction failed."""
        return self._ends["failed"]

    @property
    def reasons(self) -> str:
        """The most frequent reasons of failures, and their numbers."""
        return ", ".join(f"{reason}: {count}" for reason, count in self._why.most_common(2))

    def summary(self) -> dict[str, Any]:
        counts = {"texts": dict(self._ends), "left out": dict(self._left_out)}
        return {"statements": self._statements, **counts}
