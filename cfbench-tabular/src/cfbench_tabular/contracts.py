"""The contracts of the tabular suite: the methods that it calls on each kind of component.

They are protocols, not base classes: any object with these methods satisfies them. A component is made as
``Name(config)`` with an instance of its configuration class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cfbench_core.contracts import Contract
from cfbench_tabular.classifier_contracts import Classifier, PretrainedClassifier

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess, Source
    from cfbench_core.plan import Column
    from cfbench_tabular.explainers.base import Context, Explanation, Factuals
    from cfbench_tabular.metrics.base import Observed
    from cfbench_tabular.table import FloatArray, Table


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
    "classifier": Contract(
        protocol=PretrainedClassifier,
        together=("fit", "state", "load_state"),
        provides={"access": {"scores"}},
        implied={"log_odds_gradient": {"access": {"gradients"}}, "layers": {"access": {"layers"}}},
    ),
    "explainer": Contract(protocol=Explainer, provides={"columns": {"numeric", "categorical"}}),
    "metric": Contract(protocol=Metric),
}
"""By kind; verified for classes that a configuration names with ``import:`` and by the conformance kit."""
