"""The configurations that the suite offers: the default of ``cfbench run``, and what ``cfbench init`` writes."""

from __future__ import annotations

from typing import Any

DEFAULT_DOCUMENT: dict[str, Any] = {
    "suite": "recsys",
    "seed": 0,
    "data": "debian-python",
    "recommenders": ["mf", "ease", "lightgcn"],
    "protocol": {"k": 5, "level": "item", "format": ["implicit", "explicit"], "users": 100},
    "chunk": 50,
}
"""Without its explainers: all that are installed."""

EXAMPLE_DOCUMENT = """\
# A recommender study. Check it with 'cfbench plan', run it with 'cfbench run'.
suite: recsys
seed: 0
data:
  - debian-python                      # 'cfbench list datasets'; or a file of yours:
  # - {name: file, path: ratings.csv, min_rating: 4, k_core: 2}
split: {kind: per-interaction}         # per-interaction, per-user, leave-one-out, temporal
recommenders: [mf, ease, lightgcn]     # 'cfbench list recommenders'; options: 'cfbench describe mf'
explainers: [<explainers>]
protocol:
  k: [3, 5]                            # lengths of the lists
  level: [item, list]                  # an explanation for each item, or one for the list
  format: [implicit, explicit]         # importances, or interactions to remove
  users: 200                           # explained users, drawn at random
limits: {seconds: 1800, memory_gb: 8}  # of each task
"""
