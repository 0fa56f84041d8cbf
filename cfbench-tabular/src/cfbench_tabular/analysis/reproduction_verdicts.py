"""Verdicts on the numbers of CF-tabular and on its table 6 (``cfbench_core.verdicts``); see ``reproduction.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfbench_core.verdicts import (
    NOT_COMPARABLE,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    number_verdict,
)
from cfbench_tabular.analysis.headline_claims import OTHER_SEED
from cfbench_tabular.analysis.printed_numbers import ALGORITHMS, RANKED, REPRODUCED, SECONDS, SHARES
from cfbench_tabular.analysis.published_claims import (
    BEST,
    BOUNDS,
    DECISIVE,
    ITEM,
    NEAR,
    NEAR_FACTUALS,
    STABILITY,
    TIES,
    with_missing,
)
from cfbench_tabular.analysis.published_claims import SECONDS as CLAIMED_TIME

NOT_PRINTED = "the paper prints no number, it is that of the authors' tables"
"""Of what was compared with the authors' own tables."""


def verdict_of(row: Mapping[Any, Any], same_networks: bool, margin: float) -> Verdict:
    """The verdict on a number of the paper or of the authors' tables, or on a claim of table 6."""
    found = _verdict(row, same_networks, margin)
    unprinted = row["item"] != ITEM and np.isnan(row["printed"]) and not np.isnan(row["ours"])
    return Verdict(found.word, f"{found.reason}; {NOT_PRINTED}") if unprinted else found


def _verdict(row: Mapping[Any, Any], same_networks: bool, margin: float) -> Verdict:
    if np.isnan(row["ours"]):
        found = number_verdict(0.0, Interval(np.nan))
        return Verdict(found.word, row["unranked"]) if row["item"] in RANKED and row["unranked"] else found
    if row["item"] == ITEM:
        return _verdict_of_claim(row)
    if row["item"] == SECONDS:
        return Verdict(NOT_COMPARABLE, "time of another machine")
    if not same_networks:
        return Verdict(NOT_COMPARABLE, "other networks, splits and readings of the columns")
    if row["item"] == REPRODUCED:
        return Verdict(NOT_COMPARABLE, OTHER_SEED)
    if row["item"] in (*RANKED, *SHARES) and row["factuals"] < row["printed_factuals"]:
        return _verdict_of_some(row, margin)
    return number_verdict(row["compared"], Interval(row["ours"]), margin=margin, rounded_by=row["rounded_by"])


def by_printed(row: Mapping[Any, Any]) -> str:
    """The verdict on a claim of table 6 by the printed ranks; nothing where there are none."""
    claimed = row["item"] == ITEM and not np.isnan(row["printed"])
    return claim_verdict(Interval(row["printed"]), "<=", BEST).word if claimed else ""


def _verdict_of_some(row: Mapping[Any, Any], margin: float) -> Verdict:
    """Of a rank or a share of some of the paper's factuals: decided if no value of the others could change it."""
    ends = (1, len(ALGORITHMS)) if row["item"] in RANKED else (0, 1)
    low, high = (with_missing(row["ours"], row["factuals"], row["printed_factuals"], end) for end in ends)
    ours = Interval(row["ours"], low, high)
    found = number_verdict(row["compared"], ours, margin=margin, rounded_by=row["rounded_by"])
    if found.word == UNDECIDED:
        return Verdict(NOT_COMPARABLE, f"measured on {_part(row)}")
    return Verdict(found.word, f"{found.reason}, whatever the rest of {_part(row)}")


def _verdict_of_claim(row: Mapping[Any, Any]) -> Verdict:
    """Of a place among the ten, of all data sets or of those at hand."""
    ours = Interval(row["ours"])
    if row["measure"] == STABILITY:
        return Verdict(NOT_COMPARABLE, OTHER_SEED)
    if row["measure"] == CLAIMED_TIME and not row["whole"]:
        return Verdict(NOT_COMPARABLE, "a mean time over some of the 22 data sets")
    bounds = [Interval(row[name]) for name in BOUNDS if not np.isnan(row[name])]
    if len({claim_verdict(bound, "<=", BEST).word for bound in bounds}) > 1:
        return Verdict(NOT_COMPARABLE, f"place on {_part(row)}")
    readings = [Interval(row[name]) for name in TIES if not np.isnan(row[name])]
    found = claim_verdict(ours, "<=", BEST, readings=readings)
    near = [row[name] for name in NEAR if not np.isnan(row[name])]
    if found.word != UNDECIDED and len({one <= BEST for one in near}) > 1:
        best, worst = near
        return Verdict(
            UNDECIDED,
            f"near tie: {best:g} to {worst:g} against <= {BEST}, by algorithms whose ranks differ on {row[NEAR_FACTUALS]:g} "
            f"of {row['factuals']:,.0f} factuals or fewer ({DECISIVE} decide)",
        )
    return found


def _part(row: Mapping[Any, Any]) -> str:
    return f"{row['factuals']:,.0f} of {row['printed_factuals']:,.0f} factuals"
