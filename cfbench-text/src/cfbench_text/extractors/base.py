"""What the suite asks of an extractor: reviews, and what generators wrote, into statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cfbench_text.domains import Domain
from cfbench_text.response_parsing import Status
from cfbench_text.triplets import Triplet


@dataclass(frozen=True)
class Extraction:
    """The statements of one text.

    Attributes:
        triplets: with topics of the domain.
        status: "ok", "empty" (there is nothing to extract), "cut" (the back end stopped early), "failed".
        left_out: what was not usable, counted by reason.
    """

    triplets: tuple[Triplet, ...]
    status: Status = "ok"
    left_out: Mapping[str, int] = field(default_factory=dict)


class Extractor(Protocol):
    """A component of kind "extractor": ``Name(config)``, then ``extract`` for a batch of texts.

    One that leaves out what is no statement to it (opinions without a topic) says so of a single one, too:
    ``usable(triplet) -> bool``. Paragraphs in the suite's form are taken apart exactly, and evidence and texts must
    pass the same checks.

    One that asks a model keeps its answers by the hash of (model, prompt, text), so that a run that was
    stopped goes on; the suite asks for every distinct text of a batch once.
    """

    def extract(self, texts: Sequence[str], domain: Domain) -> Sequence[Extraction]:
        """One for each text, in order; the same whatever else is in the batch. An empty text is "empty"."""

    def signature(self) -> Mapping[str, str]:
        """What determines its answers beside the options: model and revision or hash, versions, ..."""
