"""ALIBIC: counterfactuals guided by prototypes, with the gradients of the model.

Van Looveren & Klaise 2021; the objective, FISTA and the search of the weight of the class are in
:mod:`prototypes <.prototypes>`, the distances of levels (MVDM, ABDM) in :mod:`levels <.levels>`.

Departures: the hinge is on the log-odds, whose slope does not vanish where the network is sure, and is
measured in standard deviations (divided by the norm of its gradient at x), so that one weight suits all
models. A category is walked along its line: the gradient is that of the mixture of the two levels at either
side, the answer and its class are those of the nearer one. Prototypes are rows (k-d tree); the autoencoder,
which the paper has as an alternative, is left out.

The study's adapter gave the prototype the weight 0; here it is ``theta``, which is not 0 unless told so.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfbench_tabular.classifiers.base import Classifier
from cfbench_tabular.explainers.base import Answer, Context, Factuals
from cfbench_tabular.explainers.descent import gradient_model, margin_gradients
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.prototypes import Options, guided
from cfbench_tabular.table import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Config(Options):
    """Those of the objective and of the optimiser."""


class ALIBIC:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Answer:
        differentiable = gradient_model(model)

        def slopes(space: Space, points: FloatArray, classes: IntArray) -> FloatArray:
            return space.pulled(points, margin_gradients(differentiable, space.mixtures(points), classes))

        return guided(self.config, model, factuals, context, slopes)
