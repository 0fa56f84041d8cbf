"""The configurations that the suite offers: the default of ``cfbench run``, and what ``cfbench init`` writes."""

from __future__ import annotations

from typing import Any

DEFAULT_DOCUMENT: dict[str, Any] = {
    "suite": "tabular",
    "seed": 0,
    "data": ["iris", "wine", "breast-cancer", "balance-scale", "tic-tac-toe"],
    "classifiers": ["mlp"],
    "protocol": {"factuals": 20},
}
"""Without its explainers: all that are installed."""

EXAMPLE_DOCUMENT = """\
# A study of tabular counterfactuals. Check it with 'cfbench plan', run it with 'cfbench run'.
suite: tabular
seed: 0
data:                                  # 'cfbench list datasets'
  - iris
  - {name: wine, target: class_0}      # this class against the rest; without 'target' the majority
  - breast-cancer
classifiers:                           # 'cfbench list classifiers'; options: 'cfbench describe mlp'
  - {name: mlp, hidden: 16}            # hidden: grid is the search of CF-tabular; weights: FILE loads a network
  - random-forest
explainers: [<explainers>]
protocol:
  validation: 0.2
  test: 0.2
  factuals: 20                         # explained rows per predicted class, test rows first
# protocol: paper                      # the published splits, factuals and networks (study-network) of CF-tabular
metrics: [validity, sparsity, l2, realism]
limits: {seconds: 1800, memory_gb: 8}  # of each task
"""
