"""The conformance kit: components with one fault each fail the check that asks about it, and no other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import check_component
from cfbench_tabular.classifiers.logistic_regression import Config, LogisticRegression
from cfbench_tabular.explainers.base import Explanation

ANY = {"columns": frozenset({"numeric", "categorical"})}
CONSTRAINED = {**ANY, "constraints": frozenset({"immutable", "ranges", "one-hot"})}
BETWEEN = {**ANY, "constraints": frozenset({"between-columns"})}
SEVERAL = {**ANY, "counterfactuals": frozenset({"several"})}


class Good:
    """The nearest training rows of the other class that are allowed."""

    def __init__(self, config):
        self.calls = 0

    def counterfactuals(self, model, factuals, context):
        results = self.nearest(model, factuals, context)
        return results if context.counterfactuals_per_instance > 1 else results[:, 0]

    def nearest(self, model, factuals, context, allowed=True):
        rows = context.background
        found = model.predict_proba(rows)
        classes = (found[:, 1] > found[:, 0]).astype(int)
        low, high = context.encoding.allowed(factuals.vectors)
        results = np.full(
            (len(factuals), context.counterfactuals_per_instance, context.encoding.width), np.nan
        )
        for place, own in enumerate(factuals.vectors):
            candidates = rows[classes != factuals.classes[place]]
            fixed = context.encoding.immutable
            if allowed:
                candidates = np.where(fixed, own, candidates)
                inside = ((candidates >= low[place]) & (candidates <= high[place])).all(axis=1)
                candidates = candidates[inside]
            candidates = np.unique(candidates, axis=0)
            order = np.argsort(((candidates - own) ** 2).sum(axis=1), kind="stable")[
                : context.counterfactuals_per_instance
            ]
            results[place, : len(order)] = candidates[order]
        return results


class SatisfiesConstraints(Good):
    def nearest(self, model, factuals, context, allowed=True):
        if context.respects_constraints:
            rows = context.background[context.encoding.constraints_hold(context.background)]
            context = replace(context, background=rows)
        return super().nearest(model, factuals, context)


class ChangesImmutable(Good):
    def nearest(self, model, factuals, context, allowed=True):
        results = super().nearest(model, factuals, context)
        results[:, :, context.encoding.immutable] += 0.5 * (results[:, :, context.encoding.immutable] == 0)
        return results


class LeavesRange(Good):
    def nearest(self, model, factuals, context, allowed=True):
        results = super().nearest(model, factuals, context)
        results[:, :, 0] = context.encoding.bounds[1][0] + np.where(factuals.classes == 1, -9, 9)[:, None]
        return results


class HalfLevels(Good):
    def nearest(self, model, factuals, context, allowed=True):
        results = super().nearest(model, factuals, context)
        results[:, :, context.encoding.groups[0]] *= 0.5
        return results


class OneDetail(Good):
    def counterfactuals(self, model, factuals, context):
        return Explanation(super().counterfactuals(model, factuals, context), {"steps": np.array([3.0])})


class ThreeTimesTheSame(Good):
    def nearest(self, model, factuals, context, allowed=True):
        return np.repeat(
            super().nearest(model, factuals, context)[:, :1], context.counterfactuals_per_instance, axis=1
        )


class OnlyOne(Good):
    def counterfactuals(self, model, factuals, context):
        return (
            super().counterfactuals(model, factuals, context)[:, 0]
            if context.counterfactuals_per_instance > 1
            else super().counterfactuals(model, factuals, context)
        )


class DependsOnTheOthers(Good):
    def nearest(self, model, factuals, context, allowed=True):
        results = super().nearest(model, factuals, context)
        results[:, :, 1] += 1e-3 * len(factuals)
        return results


def failures(name, provides, kind="explainer"):
    spec = ComponentSpec(
        id=f"tabular/{kind}/{name.lower()}", summary="a test", target=f"{__name__}:{name}", provides=provides
    )
    return {result.check for result in check_component(spec).failures}


@pytest.mark.parametrize("provides", [ANY, CONSTRAINED, SEVERAL])
def test_a_good_explainer_passes(provides):
    assert failures("Good", provides) == set()


@pytest.mark.parametrize(
    ("name", "provides", "expected"),
    [
        (
            "ChangesImmutable",
            CONSTRAINED,
            {"respects-immutable-columns", "stays-in-range", "returns-valid-one-hot-groups"},
        ),
        ("Good", BETWEEN, {"satisfies-constraints-between-columns"}),
        ("SatisfiesConstraints", BETWEEN, set()),
        ("LeavesRange", CONSTRAINED, {"stays-in-range"}),
        ("HalfLevels", CONSTRAINED, {"returns-valid-one-hot-groups"}),
        ("OneDetail", ANY, {"returns-one-detail-per-factual"}),
        ("ThreeTimesTheSame", SEVERAL, {"returns-several-counterfactuals"}),
        ("OnlyOne", SEVERAL, {"returns-several-counterfactuals"}),
        ("DependsOnTheOthers", SEVERAL, {"does-not-depend-on-the-batch", "returns-several-counterfactuals"}),
        ("ChangesImmutable", ANY, set()),
    ],
)
def test_a_faulty_explainer_fails_the_matching_check(name, provides, expected):
    assert failures(name, provides) == expected


class Fitted(LogisticRegression):
    def __init__(self, config):
        super().__init__(Config())


class OtherLayers(Fitted):
    def layers(self):
        return [(weights * 2, biases) for weights, biases in super().layers()]


class Averages(Fitted):
    def predict_proba(self, vectors):
        found = super().predict_proba(vectors)
        return found if len(vectors) == 1 else 0.9 * found + 0.1 * found.mean(axis=0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Fitted", set()),
        ("OtherLayers", {"layers-match-the-predictions"}),
        (
            "Averages",
            {
                "does-not-depend-on-the-batch",
                "gradient-matches-finite-differences",
                "layers-match-the-predictions",
            },
        ),
    ],
)
def test_a_faulty_classifier_fails_the_matching_check(name, expected):
    provides = {"access": frozenset({"scores", "gradients", "layers"})}
    assert failures(name, provides, "classifier") == expected
