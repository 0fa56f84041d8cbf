"""The contracts of the text suite: one protocol for each kind of component.

They are protocols, not base classes: any object with these methods can be used. The annotations of the suite refer to
them; classes that a configuration names with ``import:`` and the conformance kit (``cfbench_text.testing``) are
verified against ``CONTRACTS``. A component is constructed with its configuration, ``Name(config)``.

This module imports neither NumPy nor pandas at run time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cfbench_core.contracts import Contract, Point

if TYPE_CHECKING:
    import numpy as np

    from cfbench_core.data_files import DataAccess, Source
    from cfbench_core.plan import Column
    from cfbench_text.corpus import ExplanationRequests
    from cfbench_text.documents import Document
    from cfbench_text.domains import Domain
    from cfbench_text.extractors.base import Extraction
    from cfbench_text.generators.base import Context, Explanation, Training
    from cfbench_text.meta_evaluation.labelled import LabelledTexts
    from cfbench_text.metrics.base import ObservedTexts
    from cfbench_text.reviews import FloatArray, Reviews
    from cfbench_text.triplets import Triplet

State = dict[str, "np.ndarray[Any, Any]"]
"""What a generator has learned, as named arrays of numbers. It is stored as safetensors."""


class Dataset(Protocol):
    """A data set without files, for example a synthetic one."""

    def load(self) -> Reviews:
        """The reviews. This order breaks ties between equal times."""


class FileDataset(Protocol):
    """A data set that is read from files."""

    def find(self, access: DataAccess) -> Source:
        """Locates the files, and downloads them if ``access`` permits it. Their digests are part of the cache key.

        Raises:
            UserError: if a file is missing.
        """

    def load(self, source: Source | Mapping[str, Any]) -> Reviews:
        """The reviews in the files that :meth:`find` located, or in those that its JSON parameters describe."""


class Extractor(Protocol):
    """Extracts statements from reviews and from generated texts.

    An extractor that rejects some statements (for example opinions without a topic) may also have
    ``usable(triplet) -> bool``. Paragraphs that are parsed by the template are then filtered with it, so that reviews
    and texts pass the same checks.

    An extractor that queries a model caches the responses (``models/response_cache.py``), so that an interrupted run
    resumes. The suite passes every distinct text of a batch once.
    """

    def extract(self, texts: Sequence[str], domain: Domain, /) -> Sequence[Extraction]:
        """One extraction for each text, in order, independent of the other texts. An empty text is "empty"."""

    def signature(self) -> Mapping[str, str]:
        """What determines the result in addition to the options: model and revision or digest, versions, ..."""


class Generator(Protocol):
    """Writes explanations: ``fit`` or ``load_state``, then ``explain``.

    A generator that predicts ratings also implements :class:`RatingGenerator`.
    """

    def fit(self, training: Training, /) -> Mapping[str, Any] | None:
        """Learns from the training rows; the validation rows serve to select the epoch.

        Returns:
            A summary of the training that can be written as JSON, or None.
        """

    def explain(self, requests: ExplanationRequests, context: Context, /) -> Sequence[Explanation]:
        """One explanation for each row, in order, independent of the other rows (greedy decoding)."""

    def state(self) -> State:
        """Everything that was learned, as named arrays."""

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], training: Training, /) -> None:
        """Restores ``state``. ``training`` is the one that was passed to :meth:`fit`."""


class RatingGenerator(Generator, Protocol):
    """A generator that also predicts ratings. RMSE and MAE on the test rows are reported as its quality."""

    def predict_ratings(self, requests: ExplanationRequests, /) -> FloatArray:
        """(B,) predicted ratings of the items by the users."""


class Judge(Protocol):
    """Decides whether a statement follows from other statements or from a text.

    A judge declares with ``provides={"verdict": {...}}`` which verdicts it gives: "entailment"
    (:class:`EntailmentJudge`), "support" (:class:`SupportJudge`) or both. Metrics declare which they need.
    """

    def prepare(self, statements: Collection[str], /) -> None:
        """Receives the statements of the training reviews before the first query.

        The collection is read from a file at each iteration. Aggregate it; do not copy it into a list.
        """

    def signature(self) -> Mapping[str, str]:
        """What determines the verdicts in addition to the options: model and revision or digest, label order, ..."""


class EntailmentJudge(Judge, Protocol):
    """A judge of pairs of statements, for example an NLI model.

    Each distinct pair is passed once. A statement is judged as the sentence that
    :func:`cfbench_text.triplets.sentence` makes of it, so that its sentiment is part of it.
    """

    def entailment(self, pairs: Sequence[tuple[Triplet, Triplet]], /) -> FloatArray:
        """(N, 3) probabilities of entailment, contradiction and neutral for (premise, hypothesis)."""


class SupportJudge(Judge, Protocol):
    """A judge of a statement against a whole document, for example a chat model."""

    def support(self, pairs: Sequence[tuple[Document, Triplet]], /) -> FloatArray:
        """(N,) in [0, 1]: how certain it is that the document supports the statement; NaN: undecided."""


class Metric(Protocol):
    """Scores generated texts.

    A metric that needs a judge declares ``needs={"judge": {"verdict": {"entailment"}}}`` (or "support"). It is
    evaluated once for every judge of the configuration that gives this verdict, and the name of the judge is appended
    to its columns. A property of all texts together is an analysis (``analysis/corpus.py``).

    A metric may have ``signature() -> Mapping[str, str]``, as judges have.
    """

    def columns(self, point: Point, /) -> Sequence[Column]:
        """The columns that it fills. The text suite has no protocol axes: ``point`` is empty."""

    def compute(self, observed: ObservedTexts, /) -> Mapping[str, FloatArray]:
        """(B,) values for each column; NaN where the metric is undefined."""


class LabelSet(Protocol):
    """Texts with human labels, for ``cfbench meta-evaluate``."""

    def find(self, access: DataAccess) -> Source:
        """Locates the files, as :meth:`FileDataset.find`."""

    def load(self, source: Source | Mapping[str, Any]) -> LabelledTexts:
        """The texts, what each is compared with, and the ratings."""


CONTRACTS: Mapping[str, Contract] = {
    "dataset": Contract(any_of=(Dataset, FileDataset)),
    "extractor": Contract(protocol=Extractor),
    "generator": Contract(protocol=Generator),
    "judge": Contract(
        any_of=(EntailmentJudge, SupportJudge),
        implied={
            "entailment": {"verdict": {"entailment"}},
            "support": {"verdict": {"support"}},
        },
    ),
    "metric": Contract(protocol=Metric),
    "labelset": Contract(protocol=LabelSet),
}
"""By kind of component."""
