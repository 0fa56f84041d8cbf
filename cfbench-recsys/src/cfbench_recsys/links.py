"""The link of a recommender: the value f(x)_y that it gives to an item, from the scores s(x) of all items.

    sigmoid:   f(x)_y = 1 / (1 + exp(-s(x)_y))
    softmax:   f(x)_y = exp(s(x)_y) / sum_j exp(s(x)_j)       over all items j, those of the profile included
    identity:  f(x)_y = s(x)_y

See :class:`cfbench_recsys.contracts.LinkedRecommender`. Values are computed from *linked scores*, which are comparable
between profiles and do not saturate: the score itself for ``sigmoid`` and ``identity``, and the logarithm of the
probability, s(x)_y - log sum_j exp(s(x)_j), for ``softmax``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from cfbench_core.errors import UserError
from cfbench_recsys.contracts import Link

if TYPE_CHECKING:
    from cfbench_recsys.edits import FloatArray, IntArray

LINKS: tuple[Link, ...] = get_args(Link)
DEFAULT_LINK: Link = "identity"


def link_of(model: object) -> Link:
    """The link that a recommender declares as its attribute ``link``, else ``identity``.

    Raises:
        UserError: if it declares something else.
    """
    link: Link = getattr(model, "link", DEFAULT_LINK)
    if link not in LINKS:
        raise UserError(f"{type(model).__name__}: link must be one of {', '.join(LINKS)}, not {link!r}")
    return link


def log_normalizers(scores: FloatArray) -> FloatArray:
    """(B,) log sum_j exp(s_j) of each row of (B, items), without overflow; a row's value does not depend on others."""
    import numpy as np

    # NumPy adds the entries of a row in the same order only if the array is contiguous.
    rows = np.ascontiguousarray(scores)
    largest = rows.max(axis=1, keepdims=True)
    shifted = rows - largest
    sums: FloatArray = np.exp(shifted, out=shifted).sum(axis=1)
    normalizers: FloatArray = largest[:, 0] + np.log(sums)
    return normalizers


def linked_scores(scores: FloatArray, rows: IntArray, items: IntArray, link: Link) -> FloatArray:
    """(P, T) linked scores of ``items`` (P, T) in the ``rows`` (P,) of ``scores`` (B, items)."""
    own: FloatArray = scores[rows[:, None], items]
    if link == "softmax":
        own = own - log_normalizers(scores)[rows][:, None]
    return own


def values(linked: FloatArray, link: Link) -> FloatArray:
    """f(x)_y from linked scores; same shape."""
    import numpy as np
    from scipy.special import expit

    if link == "identity":
        return linked
    found: FloatArray = expit(linked) if link == "sigmoid" else np.exp(linked)
    return found


def log_values(linked: FloatArray, link: Link) -> FloatArray:
    """log f(x)_y from linked scores, where f is a probability; same shape."""
    from scipy.special import log_expit

    if link == "identity":
        raise ValueError("scores with the link identity have no logarithm")
    logs: FloatArray = log_expit(linked) if link == "sigmoid" else linked
    return logs


def relative_values(linked: FloatArray, before: FloatArray, link: Link) -> FloatArray:
    """f(x')_y / f(x)_y from the linked scores of x' and of x (``before``), which broadcast.

    Probabilities are divided through their logarithms: the ratio is right even where float64 cannot represent f(x)_y.
    With the link identity the ratio is NaN where f(x)_y is not positive: then it says nothing about what is left.
    """
    import numpy as np

    if link == "identity":
        positive = before > 0
        shares: FloatArray = np.where(positive, linked / np.where(positive, before, 1.0), np.nan)
        return shares
    ratio: FloatArray = np.exp(log_values(linked, link) - log_values(before, link))
    return ratio
