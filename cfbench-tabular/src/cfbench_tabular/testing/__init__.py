"""The conformance kit of the tabular suite, used by ``cfbench check`` and :mod:`cfbench_core.testing`.

The checks run on a small synthetic table with numeric columns, a category, a two-valued column and a constant
column, and on its numeric columns alone for explainers that do not support categories.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfbench_core.testing import Check
from cfbench_tabular.testing.classifiers import CLASSIFIER_CHECKS
from cfbench_tabular.testing.data_and_metrics import DATASET_CHECKS, METRIC_CHECKS
from cfbench_tabular.testing.example import Constant, context_of, example_data, factuals_of, fitted
from cfbench_tabular.testing.explainers import EXPLAINER_CHECKS

__all__ = ["Constant", "checks", "context_of", "example_data", "factuals_of", "fitted"]

checks: Mapping[str, tuple[Check, ...]] = {
    "explainer": EXPLAINER_CHECKS,
    "classifier": CLASSIFIER_CHECKS,
    "dataset": DATASET_CHECKS,
    "metric": METRIC_CHECKS,
}
"""By kind of component."""
