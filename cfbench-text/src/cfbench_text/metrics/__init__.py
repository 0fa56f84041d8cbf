"""The metrics of the text suite. Each is a file with its spec."""

from __future__ import annotations

MAIN_METRICS = (
    "hallucination",
    "st2exp",
    "stent",
    "stent-bin",
    "stcoh",
    "one-to-one",
    "fmr",
    "bleu",
    "rouge",
)
"""The first columns of a table."""
