"""The metrics of the recommender suite. Each is a file with its spec."""

from __future__ import annotations

DEFAULT_METRICS = (
    "pos-p",
    "neg-p",
    "gini",
    "empty-profile-pos-p",
    "pn-s",
    "pn-r",
    "num-edits-given-success",
    "minimality",
    "coverage",
    "success-rate",
    "num-edits",
    "rank-after",
)
"""The metrics of a configuration that names none: those of CFExpRec, and what is needed to interpret them."""
