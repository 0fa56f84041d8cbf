"""ALIBIC: counterfactuals guided by prototypes, with the gradients of the model (Van Looveren & Klaise 2021).

The objective, FISTA and the search for the weight of the class are in :mod:`prototypes <.prototypes>`, the distances
between levels (MVDM, ABDM) in :mod:`levels <.levels>`.

Departures: the hinge is on the log-odds, whose slope does not vanish where the network is confident, and is measured
in standard deviations (divided by the norm of its gradient at x), so that one weight suits all models. A category
moves along a line: the gradient is that of the mixture of the two adjacent levels, the counterfactual and its class
are those of the nearer one. Prototypes are rows (k-d tree); the autoencoder, an alternative in the paper, is left
out. The adapter of CF-tabular sets the weight of the prototype to 0; here its default ``theta`` is not 0. Preset
``as-published``: :mod:`alibic_published <.alibic_published>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cfbench_core.config import Help
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.explainers.alibic_published import PublishedSearch
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.descent import gradient_model, margin_gradients
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.prototypes import Derivatives, Options, guided
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/alibic",
    summary="Gradient search guided by the nearest prototype of the other class",
    target=f"{__name__}:ALIBIC",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"gradients", "scores"}}},
    papers=("vanlooveren2021prototypes",),
    presets="cfbench_tabular:presets/alibic.yaml",
    version="6",
)


@dataclass(frozen=True, kw_only=True)
class Config(Options):
    """The options of the objective and of the optimiser."""

    loop: Annotated[
        Literal["cfbench", "published"],
        Help("published: probabilities in the hinge, as in the authors' code"),
    ] = "cfbench"


class ALIBIC:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        differentiable = gradient_model(model)

        def slopes(space: Space, points: FloatArray, classes: IntArray) -> FloatArray:
            return space.pulled(points, margin_gradients(differentiable, space.mixtures(points), classes))

        def switches(space: Space, points: FloatArray, classes: IntArray) -> tuple[FloatArray, FloatArray]:
            return space.switches(points, margin_gradients(differentiable, space.mixtures(points), classes))

        kind = PublishedSearch if self.config.loop == "published" else None
        return guided(self.config, model, factuals, context, Derivatives(slopes, switches), kind)
