"""The configuration of a tabular study. Imports neither pandas nor scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range
from cfbench_core.suites import Experiment


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a data set is divided and which rows are explained. Defaults: those of the study (paper 003).

    ``protocol: paper`` is short for ``protocol: {study: paper}``.
    """

    shorthand: ClassVar[str] = "study"

    study: Annotated[
        Literal["paper"] | None,
        Help("paper: the study's own splits, scales and factuals in place of all that is drawn here"),
    ] = None
    folder: Annotated[str | None, Help("with the study's files; none: tabular/ in a data directory")] = None
    validation: Annotated[
        float, Range(minimum=0, below=1), Help("share of each class, to choose models with")
    ] = 0.2
    test: Annotated[float, Range(above=0, below=1), Help("share of each class, to judge models with")] = 0.2
    factuals: Annotated[
        int, Range(minimum=1), Help("explained rows per predicted class at most, test rows first")
    ] = 100
    answers: Annotated[
        int, Range(minimum=1), Help("counterfactuals of each row, where an explainer gives several")
    ] = 1
    seconds: Annotated[
        float | None,
        Range(above=0),
        Help("for each row, of explainers that search; then nothing repeats exactly"),
    ] = None
    again: Annotated[
        bool,
        Help("train and ask once more with another seed, for stability and retraining; takes twice as long"),
    ] = False

    def __post_init__(self) -> None:
        if self.validation + self.test >= 1:
            raise ValueError("validation and test must leave rows to train on: their sum must be below 1")


@dataclass(frozen=True, kw_only=True)
class TabularConfig(Experiment):
    """The configuration of a tabular study."""

    data: Annotated[tuple[ConfiguredComponent, ...], OfKind("dataset"), Help("data sets")]
    classifiers: Annotated[tuple[ConfiguredComponent, ...], OfKind("classifier"), Help("what is explained")]
    explainers: Annotated[tuple[ConfiguredComponent, ...], OfKind("explainer"), Help("what explains")]
    protocol: Protocol = field(default_factory=Protocol)
    metrics: Annotated[
        tuple[ConfiguredComponent, ...] | None, OfKind("metric"), Help("none: all that are installed")
    ] = None
