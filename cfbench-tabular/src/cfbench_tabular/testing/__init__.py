"""The conformance kit of the suite: what a component of one's own must do to be run by it.

Used by ``cfbench check`` and by :mod:`cfbench_core.testing`. The checks work on a small made-up table with
numbers, a category, a two-valued column and a column without spread, and on the same without its categories
for explainers that do not handle any.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfbench_core.testing import Check
from cfbench_tabular.testing.classifiers import CLASSIFIER_CHECKS
from cfbench_tabular.testing.data_and_metrics import DATASET_CHECKS, METRIC_CHECKS
from cfbench_tabular.testing.example import Constant, context_of, example_problem, factuals_of, fitted
from cfbench_tabular.testing.explainers import EXPLAINER_CHECKS

__all__ = ["Constant", "checks", "context_of", "example_problem", "factuals_of", "fitted"]

checks: Mapping[str, tuple[Check, ...]] = {
    "explainer": EXPLAINER_CHECKS,
    "classifier": CLASSIFIER_CHECKS,
    "dataset": DATASET_CHECKS,
    "metric": METRIC_CHECKS,
}
"""By kind of component."""
