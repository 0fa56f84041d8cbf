"""The image suite: what it declares of itself. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range
from cfbench_core.contracts import Contract, Dataset, Metric
from cfbench_core.lifecycle.steps import steps_in
from cfbench_core.lifecycle.study import Setting
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import TableLayout
from cfbench_core.specs import ComponentSpec
from cfbench_core.suites import Experiment
from cfbench_images.contracts import Classifier, Explainer

SPEC = ComponentSpec(
    id="images/suite/images",
    summary="Why this class? Pixels that would have to differ",
    target=f"{__name__}:ImageSuite",
)


@dataclass(frozen=True, kw_only=True)
class Protocol:
    images: Annotated[int, Range(minimum=1), Help("explained test images, drawn at random")] = 30


@dataclass(frozen=True, kw_only=True)
class ImageConfig(Experiment):
    data: Annotated[tuple[ConfiguredComponent, ...], OfKind("dataset")]
    classifiers: Annotated[tuple[ConfiguredComponent, ...], OfKind("classifier")]
    explainers: Annotated[tuple[ConfiguredComponent, ...], OfKind("explainer")]
    protocol: Protocol = field(default_factory=Protocol)
    metrics: Annotated[tuple[ConfiguredComponent, ...] | None, OfKind("metric"), Help("none: all")] = None


class ImageSuite(LifecycleSuite):
    name = "images"
    config = ImageConfig
    layout = TableLayout(by=("dataset", "model"), row="explainer", unit_columns=("image",))
    steps = steps_in("cfbench_images.steps")
    model_kind = "classifier"
    models_key = "classifiers"
    external_columns = ("pixel", "value")
    contracts: ClassVar[Mapping[str, Contract]] = {
        "dataset": Contract(protocol=Dataset),
        "classifier": Contract(protocol=Classifier),
        "explainer": Contract(protocol=Explainer),
        "metric": Contract(protocol=Metric),
    }

    def unit_parameters(self, setting: Setting) -> Mapping[str, Any]:
        return {"images": setting.config.protocol.images}
