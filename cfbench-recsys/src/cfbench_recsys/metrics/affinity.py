"""Affinity scores: f(x)_y is the sigmoid of the logit, in float64, without loss where it saturates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfbench_recsys.edits import FloatArray


def affinity(logits: FloatArray) -> FloatArray:
    """f(x)_y, in (0, 1); same shape."""
    from scipy.special import expit

    scores: FloatArray = expit(logits)
    return scores


def relative_affinity(logits: FloatArray, logits_before: FloatArray) -> FloatArray:
    """f(x')_y / f(x)_y, through logarithms: right even where f(x)_y itself is too small for float64."""
    import numpy as np
    from scipy.special import log_expit

    ratio: FloatArray = np.exp(log_expit(logits) - log_expit(logits_before))
    return ratio


def affinity_of(logits: FloatArray, logits_before: FloatArray | None) -> FloatArray:
    """f(x')_y, divided by f(x)_y where the logits of the untouched profile are given."""
    return affinity(logits) if logits_before is None else relative_affinity(logits, logits_before)
