"""``nli``: entailment between statements by a natural-language-inference model, by name or local path.

This is f_NLI of Statement factuality (section IV-B): (E, C, N) for a premise and a hypothesis, each written as a
sentence that expresses the statement with its sentiment ("The user may dislike that ..."). The default is the model of
the paper's experiments, DeBERTa-large-mnli (section V-A, footnote 18; only footnote 6 links the base model). A model
with two labels detects no contradictions (see ``models/pairs.py``), which affects StCoh and ``contradicted``. A
document supports a statement as much as its best statement entails it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cfbench_core.specs import ComponentSpec
from cfbench_text.documents import Document
from cfbench_text.judges.base import support_of_the_best
from cfbench_text.models.pairs import Pairs, PairSource
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet, sentence

SPEC = ComponentSpec(
    id="text/judge/nli",
    summary="A natural-language-inference model: entailed, contradicted or neutral",
    target=f"{__name__}:NLI",
    config=f"{__name__}:Config",
    provides={"verdict": {"entailment", "support"}},
    papers=("statementfactuality",),
    details={"default": False, "pretrained": True},
)


@dataclass(frozen=True, kw_only=True)
class Config(PairSource): ...


class NLI:
    def __init__(self, config: Config) -> None:
        self._pairs = Pairs(config)

    def prepare(self, statements: Collection[str]) -> None: ...

    def entailment(self, pairs: Sequence[tuple[Triplet, Triplet]]) -> FloatArray:
        return self._pairs.probabilities([(sentence(one), sentence(other)) for one, other in pairs])

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        return support_of_the_best(self, pairs)

    def signature(self) -> Mapping[str, str]:
        return {"judge": "nli", **self._pairs.signature()}
