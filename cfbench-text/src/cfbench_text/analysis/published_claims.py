"""The claims of Statement factuality, as statements that the numbers of its tables decide.

They were written down from the paper's text before any of our numbers were looked at. Each is decided for one data set by
the means of the generators: our own, and the printed ones of the five data sets, of which the table gives the share that
satisfies the claim (a claim that the paper makes about all data sets need not hold in each).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

CONFIRMED, REFUTED, NOT_RUN = "confirmed", "refuted", "not run"
RECURRENT, TRANSFORMERS = ("nrt", "att2seq"), ("cer", "peter", "pepler")
Means = Mapping[str, float]
"""The mean of a metric by generator, as the paper names them: nrt, att2seq, cer, peter, pepler, xrec."""
LEAST = 2
"""Generators that a claim about all of them needs."""


def claims() -> pd.DataFrame:
    """Columns: claim, test, items, metric, other, value."""
    import pandas as pd

    file = resources.files("cfbench_text.published") / "statement_factuality_claims.csv"
    with file.open(encoding="utf-8") as opened:
        return pd.read_csv(opened, keep_default_na=False, dtype=str)


def verdict(claim: Mapping[str, Any], means: Callable[[str], Means]) -> str:
    """Whether a claim holds for one data set.

    Args:
        claim: a row of :func:`claims`.
        means: the means of a metric by generator; empty if it was not measured.
    """
    own, other, value = means(claim["metric"]), means(claim["other"]), claim["value"]
    test = claim["test"]
    if test in ("lowest is", "highest is"):
        if value not in own or len(own) < LEAST:
            return NOT_RUN
        extreme = min(own.values()) if test == "lowest is" else max(own.values())
        holds = own[value] == extreme
    elif test == "transformers above recurrent":
        groups = [[own[name] for name in names if name in own] for names in (TRANSFORMERS, RECURRENT)]
        if not all(groups):
            return NOT_RUN
        holds = _mean(groups[0]) > _mean(groups[1])
    elif len(own) < LEAST or (test == "mean below other" and set(other) != set(own)):
        return NOT_RUN
    else:
        holds = {
            "max below": lambda: max(own.values()) < float(value),
            "min above": lambda: min(own.values()) >= float(value),
            "mean below": lambda: _mean(own.values()) < float(value),
            "mean below other": lambda: _mean(own.values()) < _mean(other.values()),
        }[test]()
    return CONFIRMED if holds else REFUTED


def _mean(values: Any) -> float:
    known = list(values)
    return float(sum(known) / len(known))
