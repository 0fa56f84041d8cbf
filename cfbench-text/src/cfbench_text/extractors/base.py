"""The result of an extraction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfbench_text.response_parsing import Status
from cfbench_text.triplets import Triplet


@dataclass(frozen=True)
class Extraction:
    """The statements of one text.

    Attributes:
        triplets: with topics of the domain.
        status: "ok", "empty" (nothing to extract), "cut" (the response was truncated) or "failed": the statements of the
            text are unknown, and its scores are missing.
        left_out: number of unusable statements by reason.
    """

    triplets: tuple[Triplet, ...]
    status: Status = "ok"
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why the extraction failed; empty if it did not."""
        return (", ".join(self.left_out) or "truncated response") if self.status == "failed" else ""
