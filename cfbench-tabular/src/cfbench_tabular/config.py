"""The configuration of a tabular study. Imports neither pandas nor scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range
from cfbench_core.suites import Experiment


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a data set is split and which rows are explained. The defaults are those of CF-tabular.

    ``protocol: paper`` is short for ``protocol: {study: paper}``.
    """

    shorthand: ClassVar[str] = "study"

    study: Annotated[
        Literal["paper"] | None,
        Help("paper: the published splits, scales and factuals of CF-tabular instead of random ones"),
    ] = None
    folder: Annotated[
        str | None, Help("with the published files of CF-tabular; none: tabular/ in a data directory")
    ] = None
    validation: Annotated[
        float, Range(minimum=0, below=1), Help("share of each class that is held out to select models")
    ] = 0.2
    test: Annotated[
        float, Range(above=0, below=1), Help("share of each class that is held out to evaluate models")
    ] = 0.2
    factuals: Annotated[
        int, Range(minimum=1), Help("maximum number of explained rows per predicted class, test rows first")
    ] = 100
    counterfactuals_per_instance: Annotated[
        int, Range(minimum=1), Help("counterfactuals for each row, from explainers that generate several")
    ] = 1
    decision_threshold: Annotated[
        float,
        Range(above=0, below=1),
        Help("class 1, the target, is predicted where its probability is above this"),
    ] = 0.5
    constraints: Annotated[
        Literal["search", "check"] | None,
        Help(
            "constraints between columns: 'search' changes dependent columns with the others, so that counterfactuals "
            "satisfy them; 'check' leaves them to the metrics; none: search, but check with study: paper"
        ),
    ] = None
    seconds: Annotated[
        float | None,
        Range(above=0),
        Help("time limit per row for explainers that search; results then depend on the machine"),
    ] = None
    repeats: Annotated[
        bool,
        Help(
            "train and explain a second time with another seed, for the metrics stability and retraining; "
            "doubles the time"
        ),
    ] = False
    retrained_models: Annotated[
        int, Range(minimum=0), Help("number of retrained models, for the metric retraining")
    ] = 0
    model_changes: Annotated[
        tuple[Literal["bootstrap", "seed"], ...],
        Help("what differs between them: a bootstrap sample of the training rows, the seed"),
    ] = ("bootstrap", "seed")

    @property
    def retrainings(self) -> tuple[int, tuple[str, ...]] | None:
        """How many models are trained again, and what differs between them; None for none."""
        if self.retrained_models:
            return self.retrained_models, self.model_changes
        return (1, ("seed",)) if self.repeats else None

    @property
    def in_search(self) -> bool:
        """Whether explainers search among rows that satisfy the constraints between columns."""
        return self.constraints == "search" or (self.constraints is None and self.study is None)

    def __post_init__(self) -> None:
        if not self.model_changes:
            raise ValueError("model_changes must name at least one of bootstrap, seed")
        if self.validation + self.test >= 1:
            raise ValueError("validation and test must leave rows to train on: their sum must be below 1")


@dataclass(frozen=True, kw_only=True)
class TabularConfig(Experiment):
    """The configuration of a tabular study."""

    data: Annotated[tuple[ConfiguredComponent, ...], OfKind("dataset"), Help("data sets")]
    classifiers: Annotated[
        tuple[ConfiguredComponent, ...], OfKind("classifier"), Help("classifiers to explain")
    ]
    explainers: Annotated[tuple[ConfiguredComponent, ...], OfKind("explainer"), Help("explainers to compare")]
    protocol: Protocol = field(default_factory=Protocol)
    metrics: Annotated[
        tuple[ConfiguredComponent, ...] | None, OfKind("metric"), Help("none: all that are installed")
    ] = None
