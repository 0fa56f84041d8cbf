"""The conformance kit of the recommender suite: see ``cfbench_core.testing`` for how to run it.

``world.py`` is a small data set with planted tastes, ``models.py`` two recommenders small enough to see
through; ``explainers.py`` and ``recommenders.py`` hold the checks, a function each, and
``on_gpu.py`` those that need a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfbench_core.testing import Check
from cfbench_recsys.testing.explainers import EXPLAINER_CHECKS
from cfbench_recsys.testing.metrics import METRIC_CHECKS
from cfbench_recsys.testing.on_gpu import EXPLAINER_CHECKS_ON_GPU, RECOMMENDER_CHECKS_ON_GPU
from cfbench_recsys.testing.recommenders import RECOMMENDER_CHECKS

checks: Mapping[str, tuple[Check, ...]] = {
    "explainer": (*EXPLAINER_CHECKS, *EXPLAINER_CHECKS_ON_GPU),
    "metric": METRIC_CHECKS,
    "recommender": (*RECOMMENDER_CHECKS, *RECOMMENDER_CHECKS_ON_GPU),
}
"""By kind of component."""
