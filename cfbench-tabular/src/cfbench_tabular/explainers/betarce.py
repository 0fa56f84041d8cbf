"""BetaRCE: moves another explainer's counterfactual until it is probably valid after training the model again.

Stepka, Stefanowski & Lango 2025, "Counterfactual Explanations with Probabilistic Guarantees on their Robustness to Model
Change" (KDD). A counterfactual x' is (delta, alpha)-robust if P(p > delta) >= alpha, where p is the probability that a model
from the space of admissible changes puts it into the wanted class. With k such models, of which m do, and the prior
Beta(1/2, 1/2), p has the posterior Beta(1/2 + m, 1/2 + k - m), so that x' is robust if the quantile 1 - alpha of that
distribution is above delta. It is kept if it is robust; otherwise Growing Spheres around it search the nearest point that
is in the wanted class of the explained model and robust. Without one, no counterfactual is found.

The k models are trained once for all rows and are not those of the metric ``retraining``. ``changes`` is the space of
admissible changes; the paper has these two, each alone, and other architectures. The guarantee is about models of this
space only. It needs a model that is trained here: given weights cannot be trained again.

Departures from the authors' code (istepka/betarce; k = 32, alpha = .9, delta = .8 or .9, 100 points in each of up to 100
shells): the shells are .02 standard deviations times the root of the number of encoded columns thick, not .1 of the range of
a column, and points are uniform in their volume, not in their radius; points are moved to rows (``one_hot: project``,
``ranges: clip``) and respect immutable and one-way columns, where the code draws each one-hot position by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

import numpy as np

from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range, create
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import Wrapped, predicted_classes
from cfbench_tabular.explainers import growing_spheres
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SPEC = ComponentSpec(
    id="tabular/explainer/betarce",
    summary="Another explainer's counterfactual, moved until it is robust to retraining",
    target=f"{__name__}:BetaRCE",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores"}}},
    papers=("stepka2025betarce",),
    details={"models": "retrained", "default": False},
)

PRIOR = 0.5
"""Both parameters of the prior Beta distribution (Jeffreys)."""


@dataclass(frozen=True, kw_only=True)
class Config:
    base: Annotated[
        ConfiguredComponent | None,
        OfKind("explainer"),
        Help("whose counterfactuals are made robust; none: growing-spheres"),
    ] = None
    delta: Annotated[float, Range(above=0, below=1), Help("smallest probability to be valid")] = 0.9
    alpha: Annotated[float, Range(above=0, below=1), Help("confidence that it is at least delta")] = 0.9
    models: Annotated[int, Range(minimum=1), Help("number of retrained models, k")] = 32
    changes: Annotated[
        tuple[Literal["bootstrap", "seed"], ...],
        Help("what differs when the model is retrained: a bootstrap sample of the training rows, the seed"),
    ] = ("bootstrap", "seed")
    samples: Annotated[int, Range(minimum=1), Help("points drawn in a shell")] = 100
    radius: Annotated[
        float, Range(above=0), Help("thickness of a shell, in standard deviations per column")
    ] = 0.02
    layers: Annotated[int, Range(minimum=1), Help("maximum number of shells")] = 100
    one_hot: Annotated[Literal["project", "ignore"], Help("rows only, or any points")] = "project"
    ranges: Annotated[Literal["clip", "ignore"], Help("observed ranges only, or any numbers")] = "clip"

    def __post_init__(self) -> None:
        if not self.changes:
            raise ValueError("changes must name at least one of bootstrap, seed")
        best = robustness_bound(self.models, self.models, self.alpha)
        if best <= self.delta:
            raise ValueError(
                f"{self.models} models cannot show delta {self.delta:g} with confidence {self.alpha:g}: if all of them "
                f"agree, the bound is {best:.3f}; use more models"
            )

    @property
    def needs(self) -> Mapping[str, Any]:
        """What the base explainer needs."""
        return self.base.needs if self.base is not None else {}

    @property
    def variant(self) -> str | None:
        """The name of the base explainer in tables."""
        return self.base.label if self.base is not None else None


def robustness_bound(agreeing: int | IntArray, models: int, alpha: float) -> Any:
    """What p exceeds with probability ``alpha``, if ``agreeing`` of ``models`` put a point into the wanted class."""
    from scipy.special import betaincinv

    return betaincinv(PRIOR + agreeing, PRIOR + models - agreeing, 1 - alpha)


class BetaRCE:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        if len(context.retrained) != self.config.models:
            raise UserError(
                f"betarce needs {self.config.models} retrained models, got {len(context.retrained)}"
            )
        starts = self._of_base(model, factuals, context)
        found = np.full_like(starts, np.nan)
        for label in (0, 1):
            members = np.flatnonzero((factuals.classes == label) & complete(starts))
            if len(members):
                own = _part(factuals, members)
                region = _RobustRegion(self.config, model, context.retrained, label)
                found[members] = self._moved(region, own, starts[members], context)
        bounds = [self._bounds(rows, factuals.classes, context.retrained) for rows in (starts, found)]
        moved = np.linalg.norm(found - starts, axis=1)
        return Explanation(
            found, {"robustness of base": bounds[0], "robustness": bounds[1], "distance to base": moved}
        )

    def _of_base(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, d) one counterfactual of the base explainer for each factual."""
        if self.config.base is None:
            explainer: Any = growing_spheres.GrowingSpheres(growing_spheres.Config())
        else:
            explainer = create(self.config.base)
        alone = replace(context, counterfactuals_per_instance=1)
        explanation = Explanation.of(explainer.counterfactuals(model, factuals, alone))
        return explanation.checked(factuals, alone, type(explainer).__name__)[:, 0]

    def _moved(
        self, region: _RobustRegion, factuals: Factuals, starts: FloatArray, context: Context
    ) -> FloatArray:
        """(B, d) the starts (B, d) that are robust, and the nearest robust points found around the others."""
        found = np.where(region.contains(starts)[:, None], starts, np.nan)
        options = growing_spheres.Config(
            samples=self.config.samples, one_hot=self.config.one_hot, ranges=self.config.ranges
        )
        streams = replace(context, generator=lambda unit: context.generator(f"{unit}, robust"))
        search = growing_spheres.ShellSearch(options, cast(Classifier, region), factuals, streams, starts)
        if search.free == 0:
            return found
        thickness = self.config.radius * np.sqrt(search.free)
        for layer in range(self.config.layers):
            active = np.flatnonzero(~complete(found))
            if len(active) == 0:
                break
            inner = np.full(len(active), layer * thickness)
            found[active] = search.nearest_enemies(active, inner, inner + thickness)
        return found

    def _bounds(self, rows: FloatArray, classes: IntArray, models: Sequence[Classifier]) -> FloatArray:
        """(B,) the bound of each row (B, d) that is no factual's; NaN for rows of NaN."""
        bounds, known = np.full(len(rows), np.nan), complete(rows)
        agreeing = _agreeing(models, rows[known], classes[known])
        bounds[known] = robustness_bound(agreeing, len(models), self.config.alpha)
        return bounds


class _RobustRegion(Wrapped):
    """A classifier of points: the class other than ``label`` where the model predicts it and it is robust."""

    def __init__(self, config: Config, model: Classifier, models: Sequence[Classifier], label: int) -> None:
        self._model, self._models, self._label = model, models, label
        bounds = robustness_bound(np.arange(len(models) + 1), len(models), config.alpha)
        self._needed = int(np.argmax(bounds > config.delta))

    def contains(self, vectors: FloatArray) -> BoolArray:
        """(n,) for points (n, d)."""
        found: BoolArray = predicted_classes(self._model, vectors) != self._label
        votes = _agreeing(self._models, vectors[found], np.full(int(found.sum()), self._label))
        found[found] = votes >= self._needed
        return found

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        one_hot: FloatArray = np.eye(2)[np.where(self.contains(vectors), 1 - self._label, self._label)]
        return one_hot


def _agreeing(models: Sequence[Classifier], vectors: FloatArray, classes: IntArray) -> IntArray:
    """(n,) how many models put the points (n, d) into another class than ``classes`` (n,)."""
    votes = np.zeros(len(vectors), dtype=np.int64)
    for model in models:
        votes += predicted_classes(model, vectors) != classes
    return votes


def _part(factuals: Factuals, members: IntArray) -> Factuals:
    units = tuple(factuals.units[member] for member in members)
    return Factuals(factuals.vectors[members], factuals.classes[members], units)
