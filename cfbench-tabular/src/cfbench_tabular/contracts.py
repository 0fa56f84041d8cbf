"""The contracts of the tabular suite: the methods that it calls on each kind of component.

They are protocols, not base classes: any object with these methods satisfies them. A component is made as
``Name(config)`` with an instance of its configuration class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from cfbench_core.contracts import Contract

if TYPE_CHECKING:
    import numpy as np

    from cfbench_core.data_files import DataAccess, Source
    from cfbench_core.plan import Column
    from cfbench_tabular.explainers.base import Context, Explanation, Factuals
    from cfbench_tabular.metrics.base import Observed
    from cfbench_tabular.prepared_dataset import PreparedDataset
    from cfbench_tabular.table import FloatArray, Table

    State: TypeAlias = Mapping[str, np.ndarray[Any, Any]]

Report: TypeAlias = Callable[[int, int], None]
"""``report(done, total)`` updates a progress bar."""


class Dataset(Protocol):
    """A data set that needs no files."""

    def load(self) -> Table:
        """The rows of the data set; categorical values are text."""


class FileDataset(Protocol):
    """A data set whose rows are stored in files."""

    def find(self, access: DataAccess) -> Source:
        """Locates the files, and downloads them if necessary; their digests are part of the cache key."""

    def load(self, source: Source | Mapping[str, Any]) -> Table:
        """The rows of the data set, from the files that :meth:`find` returned."""


class Classifier(Protocol):
    """A binary classifier of encoded rows (access ``scores``)."""

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        """Learns from ``data.sample("train")``; may select hyperparameters on ``"validation"``, never on ``"test"``."""

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities of class 0 and class 1 for encoded rows (n, d)."""

    def state(self) -> State:
        """Everything that was learned, as named arrays (stored as safetensors)."""

    def load_state(self, state: State, data: PreparedDataset) -> None:
        """Restores a model from its state and the data set that it was fitted on."""


class PretrainedClassifier(Protocol):
    """A classifier of a user's own that is not trained by the suite."""

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities of class 0 and class 1 for encoded rows (n, d)."""


class DifferentiableClassifier(Classifier, Protocol):
    """A classifier with gradients (access ``gradients``)."""

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        """(n, d) derivative of log(p1 / p0) with respect to the encoded rows (n, d)."""


class LayeredClassifier(DifferentiableClassifier, Protocol):
    """A network of fully connected layers with ReLU between them (access ``layers``); a linear model has one layer."""

    def layers(self) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Weights (inputs, outputs) and biases (outputs,) of each layer, in order.

        The last layer has two outputs; class 1 is predicted if the second is larger.
        """


class Explainer(Protocol):
    """A method that generates counterfactuals for a batch of rows."""

    def counterfactuals(
        self, model: Classifier, factuals: Factuals, context: Context
    ) -> FloatArray | Explanation:
        """(B, d) encoded counterfactuals; a row of NaN where none was found.

        An explainer that declares ``provides={"counterfactuals": {"several"}}`` returns
        (B, context.counterfactuals_per_instance, d) instead.

        The counterfactual of a row must not depend on the other rows of the batch. The suite checks with the
        classifier whether the class really changes.
        """


class Metric(Protocol):
    """A measure of counterfactuals."""

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        """The columns that the metric contributes; ``point`` is empty, because the protocol has no axes."""

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        """(B,) values for each column, by its name; NaN where the value is missing."""


CONTRACTS: Mapping[str, Contract] = {
    "dataset": Contract(any_of=(Dataset, FileDataset)),
    "classifier": Contract(protocol=PretrainedClassifier, together=("fit", "state", "load_state")),
    "explainer": Contract(protocol=Explainer, provides={"columns": {"numeric", "categorical"}}),
    "metric": Contract(protocol=Metric),
}
"""By kind; verified for classes that a configuration names with ``import:`` and by the conformance kit."""
