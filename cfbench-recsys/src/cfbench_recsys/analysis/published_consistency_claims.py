"""The claims of Consistency beyond top-1, decided by its table 1 and by the analysis ``consistency``.

The statistics are those of ``published_consistency_statistics.py``. One of several data sets is their mean, its interval
that of independent data sets. Rankings of fewer than the six explainers of the paper decide nothing, nor do those of one
user; a claim needs each model that it names.

Rankings by noisy means agree less than those by exact ones. Of few users rho is therefore too low on average, at
every threshold and for every metric, and the more so the closer the explainers are; draws of the users are around that
low value, so their interval does not cover the error. What the seeds' own rankings decide must therefore hold by the
rankings of means over all seeds, which have as many times more explanations behind them, and is else undecided. This
makes the error smaller and leaves some of it.

The claims are about the three data sets of the paper. Where some were not run, a claim is decided in part, unless they
could not change it; other data sets count in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfbench_core.verdicts import (
    CONFIRMED,
    NOT_COMPARABLE,
    REFUTED,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    in_part,
)
from cfbench_recsys.analysis.claim_statistics import SAME, with_missing_settings
from cfbench_recsys.analysis.published_claims import ONE_USER
from cfbench_recsys.analysis.published_consistency_statistics import (
    LXR_BEST,
    MATCHED_GAIN,
    Cells,
    Measured,
    cells_of,
    first_or_tied,
    printed_statistic,
    statistic_of,
    statistic_of_means,
)
from cfbench_recsys.analysis.published_tables import read_published

if TYPE_CHECKING:
    import pandas as pd

EXPLAINERS = ("cosine", "jaccard", "lime-rs", "shap", "accent", "lxr")
DATASETS = {"ml-1m": "ML-1M", "yahoo-music": "Yahoo! Music", "pinterest": "Pinterest"}
"""Of the paper, with the names that it gives them."""
OTHERS = {"ml-100k": "MovieLens 100K", "amazon-fashion": "Amazon Fashion"}
VARIANTS = ("paper", "cfbench")


def claims() -> pd.DataFrame:
    """Columns: claim, section, sentence, model, metric, statistic, relation, threshold."""
    return read_published("beyond_top_1_claims.csv")


def rule(claim: Mapping[Any, Any]) -> str:
    """ "agreement-3 of POS-P curve, mf, of means over seeds at 50%, 75%, 100% and T = 5, 10 >= 0.9"."""
    cells = cells_of(claim)
    of = f"{claim['statistic']} of {claim['metric'] or 'all metrics'}, {claim['model']}"
    if cells.of_means:
        of += f", of means over seeds at {', '.join(cells.levels)} and T = {', '.join(cells.lengths)}"
    return f"{of} {claim['relation']} {float(claim['threshold']):g}"


def claim_rows(found: Mapping[str, Sequence[Measured]]) -> Iterator[dict[str, Any]]:
    """A row for each claim and variant, as ``published_claims.claim_rows`` gives them."""
    for claim in claims().to_dict("records"):
        as_printed = printed_statistic(claim)
        relation, threshold = str(claim["relation"]), float(claim["threshold"])
        by_printed = claim_verdict(Interval(as_printed), relation, threshold).word
        for variant, parts in found.items():
            decided = _decide(claim, parts)
            yield {
                **{name: claim[name] for name in ("claim", "section", "sentence")},
                "rule": rule(claim),
                "variant": variant,
                "printed": as_printed,
                "verdict_printed": NOT_COMPARABLE if np.isnan(as_printed) else by_printed,
                "ours": decided.statistic.value,
                "ci_low": decided.statistic.low,
                "ci_high": decided.statistic.high,
                "n": decided.settings,
                "verdict": decided.verdict.word,
                "reason": decided.verdict.reason,
            }


class _Decided(NamedTuple):
    statistic: Interval
    settings: int
    verdict: Verdict


def _decide(claim: Mapping[Any, Any], every: Sequence[Measured]) -> _Decided:
    models, cells = str(claim["model"]).split(), cells_of(claim)
    own = [(one, statistic_of(claim, one, cells)) for one in every if one.model in models]
    own = [(one, part) for one, part in own if not np.isnan(part.value)]
    parts, found = [one for one, _ in own], [part for _, part in own]
    not_run = [model for model in models if model not in {one.model for one in parts}]
    if not_run:
        without = f"; without {', '.join(not_run)}" if parts else ""
        nothing = claim_verdict(Interval(np.nan), str(claim["relation"]), float(claim["threshold"]))
        return _Decided(Interval(np.nan), len(parts), Verdict(nothing.word, nothing.reason + without))
    here = _mean_of(found)
    verdict = _by_both_readings(claim, here, parts, cells, _undecidable(parts, found))
    missing = list(dict.fromkeys(name for one in parts for name in cells.missing(one)))
    bounds = _bounds(claim, own, bool(missing))
    relation, threshold = str(claim["relation"]), float(claim["threshold"])
    verdict = in_part(verdict, bounds, relation, threshold, "what was not run")
    where = "; ".join(["", *_data(parts, models), *([f"without {', '.join(missing)}"] if missing else [])])
    return _Decided(here, len(parts), Verdict(verdict.word, verdict.reason + where))


def _undecidable(parts: Sequence[Measured], found: Sequence[Interval]) -> str:
    """Why the rankings decide nothing; empty if they may."""
    if any(np.isnan(part.low) for part in found):
        return ONE_USER
    absent = dict.fromkeys(name for one in parts for name in EXPLAINERS if name not in one.explainers)
    return f"without {', '.join(absent)}" if absent else ""


def _by_both_readings(
    claim: Mapping[Any, Any], here: Interval, parts: Sequence[Measured], cells: Cells, tied: str
) -> Verdict:
    """The verdict by a statistic; undecided where another way to count ties, or means over the seeds, give another."""
    relation, threshold = str(claim["relation"]), float(claim["threshold"])
    readings: tuple[Interval, ...] = ()
    if claim["statistic"] == LXR_BEST:
        with_ties = float(np.mean([first_or_tied(one, cells) for one in parts]))
        readings = (here, Interval(with_ties)) if with_ties > here.value + SAME else ()
    found = claim_verdict(here, relation, threshold, readings=readings, tied=tied)
    if cells.of_means or claim["statistic"] == MATCHED_GAIN or found.word not in (CONFIRMED, REFUTED):
        return found
    of_means = _mean_of([statistic_of_means(claim, one, cells) for one in parts])
    other = claim_verdict(of_means, relation, threshold)
    if other.word in (CONFIRMED, REFUTED) and other.word == found.word:
        return found
    return Verdict(UNDECIDED, f"{found.reason}, by means over the seeds {other.reason}")


def _bounds(
    claim: Mapping[Any, Any], own: Sequence[tuple[Measured, Interval]], cells_missing: bool
) -> tuple[Interval, ...]:
    """What a statistic could be on all data sets of the paper; empty if all were run, at all levels and T."""
    needed = len(DATASETS) * len(str(claim["model"]).split())
    of_paper = [(one, part) for one, part in own if one.dataset in DATASETS]
    present = len({(one.dataset, one.model) for one, _ in of_paper})
    kind = str(claim["statistic"])
    ends = (0.0, 1.0) if kind == LXR_BEST else (-1.0, 1.0) if kind.startswith("agreement-") else (-2.0, 2.0)
    if present == needed and not cells_missing:
        return ()
    if present and not cells_missing:
        limits = _mean_of([part for _, part in of_paper]).limits
        ends = with_missing_settings(*limits, present, needed - present, ends)
    return tuple(Interval(end) for end in ends)


def _data(parts: Sequence[Measured], models: Sequence[str]) -> list[str]:
    """["MovieLens 100K in place of ML-1M, Yahoo! Music and Pinterest", "60 users"]; nothing if all data sets are there."""
    there = {(one.dataset, one.model) for one in parts}
    absent = [name for data, name in DATASETS.items() if any((data, model) not in there for model in models)]
    others = list(
        dict.fromkeys(OTHERS.get(one.dataset, one.dataset) for one in parts if one.dataset not in DATASETS)
    )
    if not absent:
        return []
    counts = sorted({one.users for one in parts})
    of_users = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    words = f"{_listed(others)} in place of" if others else "without"
    return [f"{words} {_listed(absent)}", f"{of_users} users"]


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _mean_of(parts: Sequence[Interval]) -> Interval:
    """The mean of independent statistics."""
    if not parts:
        return Interval(np.nan)
    values = [part.value for part in parts]
    mean = float(np.mean(values))
    sides: list[Callable[[Interval], float]] = [
        lambda part: part.value - part.limits[0],
        lambda part: part.limits[1] - part.value,
    ]
    low, high = (float(np.sqrt(sum(side(part) ** 2 for part in parts))) / len(parts) for side in sides)
    return Interval(mean, mean - low, mean + high)
