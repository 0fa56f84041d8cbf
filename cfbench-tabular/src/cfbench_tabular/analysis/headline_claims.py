"""The claims of CF-tabular's abstract, results and conclusion, with the statistic that decides each.

- ``largest share led``: of the printed rankings of tables 4 and 5 by type of data (30), the largest share that one
  algorithm leads, alone or together with others.
- ``lead``: by how much the average rank of the algorithm is lower than that of the next best, in units of Nemenyi's
  critical difference at 95% for the same factuals. Above 1 it is significantly better than all others.
- ``gap below``: the smallest share of reproduced counterfactuals (figure 5) of the other algorithms, minus the largest of
  these; each a mean over the types of data that are known.
- ``place``: among the ten, by the mean over the types of data of the standard deviation of the time (figure 4).

Where a run has fewer factuals than the paper, the interval of a statistic of ranks is that of all ranks that the missing
ones could have, as for the numbers; a claim that it leaves open is not comparable. Nor are stability (another seed) and
the variation of times (in the paper, that of processes which start Python).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.statistics import nemenyi_critical_difference
from cfbench_core.verdicts import NOT_COMPARABLE, UNDECIDED, Interval, Verdict, claim_verdict
from cfbench_tabular.analysis.printed_numbers import ALGORITHMS, MEASURES, RANKED, REPRODUCED, SECONDS
from cfbench_tabular.analysis.published_claims import SAME, with_missing
from cfbench_tabular.analysis.run_data import GROUPS, TOTAL, FloatArray

if TYPE_CHECKING:
    import pandas as pd

HEADLINES = "claims"
LED, LEAD, GAP, PLACE = "largest share led", "lead", "gap below", "place"
OTHER_SEED = "the second call has another seed here, the same settings in the paper"
OTHER_TIMES = "times of another machine, of calls in place of processes"


def headlines() -> pd.DataFrame:
    """Columns: claim, section, sentence, statistic, item, group, measure, explainers, relation, threshold."""
    import pandas as pd

    file = resources.files("cfbench_tabular.published") / "cf_tabular_headlines.csv"
    with file.open(encoding="utf-8") as opened:
        return pd.read_csv(opened, keep_default_na=False)


def headline_rows(numbers: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim: measure (its name), explainer, printed, ours, verdict, reason, sentence, rule, verdict_printed.

    Args:
        numbers: of one model, with item, group, measure, explainer, printed, ours, printed_factuals and factuals.
    """
    import pandas as pd

    whole = numbers.assign(ours=numbers["printed"], factuals=numbers["printed_factuals"])
    rows = []
    for claim in headlines().to_dict("records"):
        printed, ours = statistic(claim, whole), statistic(claim, numbers)
        verdict = _decided(claim, ours, numbers)
        rows.append(
            {
                "item": HEADLINES,
                "group": "",
                "dataset": "",
                "measure": claim["claim"],
                "explainer": ", ".join(claim["explainers"].split()),
                "printed": printed.value,
                "ours": ours.value,
                "sentence": f"{claim['sentence']} ({_where(claim['section'])})",
                "rule": _rule(claim),
                "verdict_printed": claim_verdict(printed, claim["relation"], claim["threshold"]).word,
                "verdict": verdict.word,
                "reason": verdict.reason,
            }
        )
    return pd.DataFrame(rows)


def statistic(claim: Mapping[Any, Any], numbers: pd.DataFrame) -> Interval:
    """The statistic of a claim with its limits for any ranks of missing factuals; NaN if something is missing."""
    names = claim["explainers"].split()
    if claim["statistic"] == LED:
        return _largest_share_led(numbers)
    if claim["statistic"] == LEAD:
        wanted = [(claim["item"], claim["group"], claim["measure"])]
        ranks, low, high, measured, whole = _ranks(numbers, wanted)
        return _lead(ranks[0], low[0], high[0], names[0], measured[0], whole[0])
    means = _means_of_groups(numbers, claim["item"])
    if len(means) < len(ALGORITHMS):
        return Interval(np.nan)
    if claim["statistic"] == GAP:
        others = [value for name, value in means.items() if name not in names]
        return Interval(min(others) - max(means[name] for name in names))
    return Interval(1.0 + sum(value < means[names[0]] - SAME for value in means.values()))


def _ranks(
    numbers: pd.DataFrame, wanted: Sequence[tuple[str, str, str]]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """(rankings, algorithms) average ranks, the least and the largest that they could be for all factuals, and
    (rankings,) factuals that were measured, and all of them."""
    ranked = numbers[numbers["item"].isin(RANKED)].set_index(["item", "group", "measure", "explainer"])
    cells = [[(*one, name) for name in ALGORITHMS] for one in wanted]
    own = ranked.reindex([cell for row in cells for cell in row])
    ours, measured, whole = (
        own[name].to_numpy(dtype=float).reshape(len(wanted), len(ALGORITHMS))
        for name in ("ours", "factuals", "printed_factuals")
    )
    ends = (
        np.vectorize(with_missing, otypes=[float])(ours, measured, whole, end) for end in (1, len(ALGORITHMS))
    )
    low, high = (np.where(whole > measured, end, ours) for end in ends)
    return ours, low, high, measured[:, 0], np.maximum(measured, whole)[:, 0]


def _largest_share_led(numbers: pd.DataFrame) -> Interval:
    wanted = [
        (item, group, measure)
        for item in RANKED
        for group in GROUPS
        if group != TOTAL
        for measure in MEASURES
    ]
    ranks, low, high, *_ = _ranks(numbers, wanted)
    if np.isnan(ranks).any():
        return Interval(np.nan)

    def share(own: FloatArray, others: FloatArray) -> float:
        """The largest share of rankings in which an algorithm's rank is no larger than those of the others."""
        return max(
            float((own[:, place] <= np.delete(others, place, axis=1).min(axis=1) + SAME).mean())
            for place in range(len(ALGORITHMS))
        )

    return Interval(share(ranks, ranks), share(high, low), share(low, high))


def _lead(
    ranks: FloatArray, low: FloatArray, high: FloatArray, name: str, measured: float, whole: float
) -> Interval:
    """The lead on the factuals that were measured, between those that are possible on the whole."""
    if np.isnan(ranks).any():
        return Interval(np.nan)
    place = ALGORITHMS.index(name)

    def lead(own: FloatArray, others: FloatArray, factuals: float) -> float:
        unit = nemenyi_critical_difference(len(ALGORITHMS), int(factuals))
        return float((np.delete(others, place).min() - own[place]) / unit)

    return Interval(lead(ranks, ranks, measured), lead(high, low, whole), lead(low, high, whole))


def _means_of_groups(numbers: pd.DataFrame, item: str) -> dict[str, float]:
    """The mean over the types of data that are known, by algorithm."""
    rows = numbers[(numbers["item"] == item) & (numbers["group"] != TOTAL)].dropna(subset=["ours"])
    return {str(name): float(own.mean()) for name, own in rows.groupby("explainer")["ours"]}


def _decided(claim: Mapping[Any, Any], ours: Interval, numbers: pd.DataFrame) -> Verdict:
    found = claim_verdict(ours, claim["relation"], float(claim["threshold"]))
    if np.isnan(ours.value):
        return found
    if claim["item"] == REPRODUCED:
        return Verdict(NOT_COMPARABLE, OTHER_SEED)
    if claim["item"] == SECONDS:
        return Verdict(NOT_COMPARABLE, OTHER_TIMES)
    ranked = numbers[numbers["item"].isin(RANKED) & (numbers["group"] == (claim["group"] or TOTAL))]
    part = f"{ranked['factuals'].max():,.0f} of {ranked['printed_factuals'].max():,.0f} factuals"
    if found.word == UNDECIDED:
        return Verdict(NOT_COMPARABLE, f"ranks on {part}: {found.reason} for any ranks of the rest")
    if ranked["factuals"].max() < ranked["printed_factuals"].max():
        return Verdict(found.word, f"{found.reason}, whatever the rest of {part}")
    return found


def _where(section: str) -> str:
    return f"section {section}" if section[0].isdigit() else section


def _rule(claim: Mapping[Any, Any]) -> str:
    """ "lead: cadex, table 4, total, coverage > 1"."""
    of = ", ".join(filter(None, (claim["explainers"], claim["item"], claim["group"], claim["measure"])))
    return f"{claim['statistic']}{': ' + of if of else ''} {claim['relation']} {claim['threshold']:g}"
