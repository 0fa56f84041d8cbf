"""The configurations that the suite offers: the default of ``cfbench run``, and what ``cfbench init`` writes."""

from __future__ import annotations

CONTROLS = (
    {"name": "most-frequent"},
    {"name": "most-frequent", "of": "item", "label": "most-frequent-item"},
    {"name": "most-frequent", "of": "user", "label": "most-frequent-user"},
)
"""Calibration rows of the default configuration."""

MEASURED_CONTROLS = ("reference", "round-trip", "shuffled-reference")
"""Calibration rows of texts that come with references: the ceiling, what the extraction loses, and a baseline."""

EXAMPLE_DOCUMENT = """\
# A study of generated explanations. Check it with 'cfbench plan', run it with 'cfbench run'.
suite: text
seed: 0
data:                                  # 'cfbench list datasets --suite text'
  - toy-reviews                        # synthetic
  # - musical-instruments              # Amazon 2014; 'cfbench data fetch musical-instruments'
  # - {name: reviews, path: mine.jsonl, domain: my_topics.yaml}
extractor: atomic                      # reviews and texts into statements; 'cfbench list extractors'
generators:                            # write the explanations
  - item-review
  - most-frequent
  - {name: most-frequent, of: item, label: most-frequent-item}
  - reference                          # the ceiling
  - round-trip                         # what the extraction loses
  - shuffled-reference                 # a baseline
judges: [overlap]                      # compares words; no judge of meaning
protocol:
  split: per-user                      # by time, 80/10/10
  empty: zero                          # a text without statements has recall 0
limits: {seconds: 1800, memory_gb: 8}  # of each task
"""
