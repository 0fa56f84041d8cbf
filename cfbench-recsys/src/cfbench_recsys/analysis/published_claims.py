"""Decides claims of a paper by a statistic of means: those that it prints, and those of runs.

A claim has terms (explainers, models, data sets, ...; separated by spaces, empty for any), a ``contrast``, which is the
label in which its two sides differ, and the values of both sides (``subject``, ``against``). What the sides have in
common is a setting. ``claim_statistics.py`` has the statistics. The interval of a statistic is the middle 95% of its
values over draws of users; the statistics of printed means have none.

A claim about explainers, data sets, lengths of lists or levels of which some were not run, or not together, is decided in
part only if their means could change it, however ties are counted, and one about the means of a single user not at all.
What an explainer cannot explain, such as lists, is not missing. A difference of which so few users have any that one limit
of its interval is zero is undecided, too: no draw of the users can give the other sign. So is a statistic with an interval
of length zero if means of few users that all have the same value could change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfbench_core.plan import TIME
from cfbench_core.statistics import percentile_interval
from cfbench_core.verdicts import (
    CONFIRMED,
    ENOUGH_EQUAL,
    NOT_COMPARABLE,
    REFUTED,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    in_part,
    too_few_equal,
)
from cfbench_recsys.analysis.claim_gaps import COMBINED, absent
from cfbench_recsys.analysis.claim_statistics import (
    MONOTONIC,
    OF_DIFFERENCES,
    OF_ORDERS,
    SAME,
    STATISTICS,
    WITH_TIES,
    BoolArray,
    FloatArray,
    at_a_bound,
    only_ties,
    with_missing_options,
    with_missing_settings,
)
from cfbench_recsys.analysis.measured_means import LABELS, VARIANTS, MeasuredMeans
from cfbench_recsys.edits import IntArray

if TYPE_CHECKING:
    import pandas as pd

TERMS = ("explainer", "model", "dataset", "level", "format", "k", "scope", "metric")
LOWER = ("POS-P", "#Perturb", TIME.name)
"""Metrics of which the lower is the better one; their sign is changed where a claim is about the best of several."""
BEST = "most-often-best"
FIRST_AND_LAST = ("1", "5")
"""The places of an item that ``place-gap-difference`` compares: the first, and the last of a list of five."""
UNPRINTED = Verdict(NOT_COMPARABLE, "the paper prints no numbers on it")
ONE_USER = "one user or one batch, whose means have no interval"
UNBOUNDED = ("#Perturb", TIME.name)
"""Metrics whose values are not between 0 and 1."""
PAIR = "pair"
"""The label of a setting for the two values that orders are of."""
OF_SETTINGS = (*COMBINED, "model", "explainer", PAIR)
"""Labels whose values a paper combines: each data set with each length of a list, for items and for lists, ..."""
Unsupported = frozenset[tuple[str, str, str]]


class Decided(NamedTuple):
    """The statistic of a claim, in how many settings both sides have means, and the terms without any.

    ``readings`` are the statistic with ties counted against and for the subject, ``tied`` says why the means decide
    nothing. ``bounds`` are what the statistic could be with the explainers and data sets that are missing; empty if none is.
    """

    statistic: Interval
    settings: int
    absent: tuple[str, ...]
    readings: tuple[Interval, ...] = ()
    tied: str = ""
    bounds: tuple[Interval, ...] = ()


def claim_rows(
    claims: pd.DataFrame, printed: MeasuredMeans, ours: MeasuredMeans, of_scopes: MeasuredMeans | None = None
) -> Iterator[dict[str, Any]]:
    """A row for each claim and each variant of the explainers that was run.

    Claims that compare scopes are decided by ``of_scopes`` where it is given: means of the same users in all scopes.

    Keys: claim, section, sentence, rule, variant, printed, verdict_printed, ours, ci_low, ci_high, n (settings),
    verdict, reason.
    """
    names = [name for name in VARIANTS if name in set(ours.frame["variant"])] or [""]
    of_variants = {name: ours.of_variant(name) for name in names}
    scopes_of_variants = {name: (of_scopes or ours).of_variant(name) for name in names}
    for claim in claims.to_dict("records"):
        theirs = decide(claim, printed)
        known = not np.isnan(theirs.statistic.value)
        as_printed = _verdict(claim, theirs._replace(bounds=())) if known else UNPRINTED
        of_claim = scopes_of_variants if claim["contrast"] == "scope" else of_variants
        for variant, means in of_claim.items():
            here = decide(claim, means)
            verdict = _verdict(claim, here)
            without = f"; without {', '.join(here.absent)}" if here.absent else ""
            yield {
                **{name: claim[name] for name in ("claim", "section", "sentence")},
                "rule": rule(claim),
                "variant": variant,
                "printed": theirs.statistic.value,
                "verdict_printed": as_printed.word,
                "ours": here.statistic.value,
                "ci_low": here.statistic.low,
                "ci_high": here.statistic.high,
                "n": here.settings,
                "verdict": verdict.word,
                "reason": verdict.reason + without,
            }


def rule(claim: Mapping[Any, Any]) -> str:
    """ "share-lowest of POS-P, lxr against lime-rs shap accent > 0.5"."""
    of = f" of {claim['metric']}" if claim["metric"] else ""
    sides = " against ".join(filter(None, (claim["subject"], claim["against"])))
    sides = f", {sides}" if sides else ""
    return f"{claim['statistic']}{of}{sides} {claim['relation']} {float(claim['threshold']):g}"


def decide(claim: Mapping[Any, Any], means: MeasuredMeans) -> Decided:
    """The statistic of a claim; its value is NaN where no setting has means of both sides, or a model has none."""
    frame = _selected(claim, means.frame)
    missing = absent(_wanted(claim), frame, means.frame)
    nothing = Decided(Interval(np.nan), 0, missing)
    if frame.empty or set(missing) & set(_listed(claim["model"])):
        return nothing
    values = means.values
    if claim["statistic"] == BEST:
        values = values * np.where(means.frame["metric"].isin(LOWER), -1.0, 1.0)
    grid = _orders(claim, frame) if claim["statistic"] in OF_ORDERS else _options(claim, frame)
    sides = subject, against = (_taken(values, grid.subject), _taken(values, grid.against))
    name = str(claim["statistic"]).replace(BEST, "most-often-highest")
    known = [~np.isnan(side[0]).all(axis=-1) for side in sides if side.shape[-1]]
    of_both = np.logical_and.reduce(known)
    counted = int(of_both.sum())
    found = STATISTICS[name](subject, against)
    if np.isnan(found[0]):
        if name in OF_ORDERS and only_ties(subject[0], against[0]):
            return Decided(Interval(np.nan), counted, missing, tied="all explainers tie")
        return nothing
    readings = tuple(_interval(STATISTICS[name](subject, against, ties)) for ties in _ties_of(name))
    end = at_a_bound(subject[0], against[0]) if name in OF_DIFFERENCES else np.nan
    tied = "" if np.isnan(end) else f"tied: all means are {end:g}"
    if "users" in frame and frame["users"].min() < 2:
        tied = ONE_USER
    elif found[1:].size and np.ptp(found[1:]) <= SAME:
        tied = tied or _few_equal(claim, means.rows(means.frame.index.isin(frame.index)), _interval(found))
    bounds = _with_missing_options(claim, name, sides, of_both, grid, means.unsupported)
    measured = grid.settings if claim["contrast"] == "explainer" else grid.settings[of_both]
    known_or_possible = bounds or (_interval(found), *readings)
    bounds = _with_missing_settings(claim, name, known_or_possible, measured, means.unsupported) or bounds
    return Decided(_interval(found), counted, missing, readings, tied, bounds)


def _few_equal(claim: Mapping[Any, Any], means: MeasuredMeans, found: Interval) -> str:
    """Why a statistic (``found``) without any variation decides nothing; empty if it does.

    Means of few users that all have the same value count as not measured. Of a statistic of differences those of few users
    do, since it is the differences that are the same for all of them.
    """
    if "users" not in means.frame:
        return ""
    users = means.frame["users"].to_numpy()
    few = users < ENOUGH_EQUAL
    if claim["statistic"] not in OF_DIFFERENCES:
        few &= np.ptp(means.values[1:], axis=0) <= SAME
    if not few.any():
        return ""
    others = decide(claim, means.rows(~few))
    relation, threshold = str(claim["relation"]), float(claim["threshold"])
    possible = [found, others.statistic, *others.bounds]
    words = {claim_verdict(one, relation, threshold).word for one in possible}
    return too_few_equal(users[few].min(), "users") if len(words) > 1 else ""


def _with_missing_options(
    claim: Mapping[Any, Any],
    name: str,
    sides: tuple[FloatArray, FloatArray],
    of_both: BoolArray,
    grid: _Grid,
    unsupported: Unsupported,
) -> tuple[Interval, ...]:
    """What a statistic could be with the options that settings lack, such as explainers; empty if they lack none.

    ``of_both``: the settings in which both sides have means.
    """
    gaps = [np.isnan(side[0]) for side in sides]
    if grid.label == "explainer":
        for gap, options in zip(gaps, (grid.options, grid.others), strict=True):
            for row, setting in enumerate(grid.settings.to_dict("records")):
                able = [_supported(claim, setting, option, unsupported) for option in options]
                gap[row] &= np.array(able, dtype=bool)
    if claim["contrast"] == "explainer" and name in MONOTONIC:
        if not any(gap.any() for gap in gaps):
            return ()
        ways: list[Callable[..., FloatArray]] = [STATISTICS[name]]
        ways += [partial(STATISTICS[name], ties=ties) for ties in _ties_of(name)]
        missing = (gaps[0], gaps[1])
        return tuple(_interval(end) for way in ways for end in with_missing_options(way, *sides, missing))
    return (Interval(-np.inf), Interval(np.inf)) if any(gap[of_both].any() for gap in gaps) else ()


def _with_missing_settings(
    claim: Mapping[Any, Any],
    name: str,
    found: tuple[Interval, ...],
    settings: pd.DataFrame,
    unsupported: Unsupported,
) -> tuple[Interval, ...]:
    """What a statistic could be with the data sets, list lengths, levels, models and explainers that are missing.

    Empty if every combination of those that the claim names is there, or not supported. ``settings`` are what there is.
    """
    wanted = {**_wanted(claim), PAIR: [_pair(*pair) for pair in _pairs(claim)]}
    labels = [label for label in OF_SETTINGS if label in settings and wanted.get(label)]
    whole = [
        dict(zip(labels, values, strict=True)) for values in product(*(wanted[label] for label in labels))
    ]
    there = {tuple(row[label] for label in labels) for row in settings.to_dict("records")}
    needed = [
        (*setting.values(),)
        for setting in whole
        if "explainer" not in setting or _supported(claim, setting, setting["explainer"], unsupported)
    ]
    lacking = sum(setting not in there for setting in needed)
    if not lacking:
        return ()
    low, high = _limits(found)
    if name == "largest":
        return Interval(low), Interval(np.inf)
    ends = with_missing_settings(low, high, len(needed) - lacking, lacking, _range(claim, name))
    return tuple(Interval(end) for end in ends)


def _supported(
    claim: Mapping[Any, Any], setting: Mapping[Any, Any], explainer: str, unsupported: Unsupported
) -> bool:
    """Whether an explainer can explain what a setting has; where a claim compares levels, both of them."""
    levels = [setting["level"]] if "level" in setting else _wanted(claim).get("level", [])
    form = setting.get("format", claim["format"])
    return not any((explainer, level, form) in unsupported for level in levels)


def _range(claim: Mapping[Any, Any], name: str) -> tuple[float, float]:
    """Between which values a statistic lies in one setting."""
    if name.startswith("share-") or name == "most-often-highest":
        return 0.0, 1.0
    if name == "rank-correlation":
        return -1.0, 1.0
    if name == "place-from-top":
        return 1.0, float(len(_listed(claim["explainer"])))
    if name in OF_DIFFERENCES and not set(_listed(claim["metric"])) & {*UNBOUNDED}:
        return (0.0 if name == "mean-gap" else -1.0), 1.0
    return -np.inf, np.inf


def _ties_of(name: str) -> tuple[float, ...]:
    """The two ways to count ties, against and for the subject; none where ties do not count."""
    return (0.0, 1.0) if name in WITH_TIES else ()


def _limits(found: Iterable[Interval]) -> tuple[float, float]:
    """The least and the greatest limit of some intervals."""
    limits = [limit for one in found for limit in one.limits]
    return min(limits), max(limits)


def _interval(found: FloatArray) -> Interval:
    """The first value, with the middle 95% of the others; 0.1 + 0.4 is not below 0.5 by how it is computed."""
    found = found.round(12)
    return Interval(float(found[0]), *percentile_interval(found[1:]))


def _verdict(claim: Mapping[Any, Any], decided: Decided) -> Verdict:
    relation, threshold = str(claim["relation"]), float(claim["threshold"])
    found = claim_verdict(
        decided.statistic, relation, threshold, readings=decided.readings, tied=decided.tied
    )
    if found.word in (CONFIRMED, REFUTED) and _of_signs(claim) and (few := _few_differ(decided.statistic)):
        return Verdict(UNDECIDED, few)
    return in_part(found, decided.bounds, relation, threshold, "what was not run")


def _of_signs(claim: Mapping[Any, Any]) -> bool:
    """Whether a claim is about the sign of a difference."""
    return claim["statistic"] in OF_DIFFERENCES and float(claim["threshold"]) == 0


def _few_differ(difference: Interval) -> str:
    """Why the sign of a difference is not known, although its interval has values of one sign only; or empty."""
    low, high = difference.limits
    if high - low > SAME and min(abs(low), abs(high)) <= SAME:
        return f"{low:.3g} to {high:.3g}: too few users differ"
    return ""


def _listed(text: Any) -> list[str]:
    return str(text).split()


def _wanted(claim: Mapping[Any, Any]) -> dict[str, list[str]]:
    """The values of each label that a claim is about; a label without a term is not there."""
    terms = {name: _listed(claim[name]) for name in TERMS if name != claim["contrast"] and claim[name]}
    both = [*_listed(claim["subject"]), *_listed(claim["against"])]
    if both:
        terms[str(claim["contrast"])] = both
    elif claim["explainer"]:
        terms["explainer"] = _listed(claim["explainer"])
    return terms


def _selected(claim: Mapping[Any, Any], frame: pd.DataFrame) -> pd.DataFrame:
    """The means that a claim is about; of all places together unless it compares places."""
    places = list(FIRST_AND_LAST) if OF_ORDERS.get(claim["statistic"]) == "rank" else [""]
    wanted = {"rank": places, **_wanted(claim)}
    chosen = np.ones(len(frame), dtype=bool)
    for label, values in wanted.items():
        chosen &= frame[label].isin(values).to_numpy()
    return frame[chosen]


class _Grid(NamedTuple):
    """Positions of means, -1 where there is none: (settings, options) of each side.

    ``settings`` has the labels that both sides share, ``label`` is that in which ``options`` of the subject and ``others``
    differ.
    """

    subject: IntArray
    against: IntArray
    settings: pd.DataFrame
    label: str
    options: list[str]
    others: list[str]


def _options(claim: Mapping[Any, Any], frame: pd.DataFrame) -> _Grid:
    """A setting for each combination of the labels in which the sides do not differ."""
    contrast = str(claim["contrast"])
    subject = _listed(claim["subject"]) or _named(claim, frame, contrast)
    against = _listed(claim["against"])
    settings = frame[[name for name in LABELS if name != contrast]].drop_duplicates()
    of_subject, of_others = (_grid(frame, settings, contrast, names) for names in (subject, against))
    return _Grid(of_subject, of_others, settings, contrast, subject, against)


def _orders(claim: Mapping[Any, Any], frame: pd.DataFrame) -> _Grid:
    """A setting for each pair of a value of both sides."""
    import pandas as pd

    contrast, options = str(claim["contrast"]), OF_ORDERS[claim["statistic"]]
    names = _named(claim, frame, options)
    common = [name for name in LABELS if name not in (contrast, options)]
    sides: tuple[list[IntArray], list[IntArray]] = ([], [])
    of_pairs = []
    for one, other in _pairs(claim):
        keyed = frame[frame[contrast].isin([one, other])]
        of_one, of_other = keyed[keyed[contrast] == one], keyed[keyed[contrast] == other]
        settings = keyed[common].drop_duplicates()
        of_pairs.append(settings.assign(**{PAIR: _pair(one, other)}))
        for side, rows in zip(sides, (of_one, of_other), strict=True):
            side.append(_grid(rows, settings, options, names))
    whole = pd.concat(of_pairs, ignore_index=True)
    return _Grid(np.concatenate(sides[0]), np.concatenate(sides[1]), whole, options, names, names)


def _named(claim: Mapping[Any, Any], frame: pd.DataFrame, label: str) -> list[str]:
    """The values of a label that a claim names; those that were run if it names none."""
    return _wanted(claim).get(label) or list(dict.fromkeys(frame[label]))


def _pairs(claim: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """Each value of the subject with each of the others, for statistics of two orders; none for other statistics."""
    if claim["statistic"] not in OF_ORDERS:
        return []
    return [(one, other) for one in _listed(claim["subject"]) for other in _listed(claim["against"])]


def _pair(one: str, other: str) -> str:
    return f"{one} {other}"


def _grid(frame: pd.DataFrame, settings: pd.DataFrame, columns: str, names: Iterable[str]) -> IntArray:
    """(settings, names) the positions of the means of these settings, -1 where there is none."""
    names, common = list(names), list(settings.columns)
    place = {key: row for row, key in enumerate(settings.itertuples(index=False, name=None))}
    grid = np.full((len(place), len(names)), -1, dtype=np.int64)
    chosen = frame[frame[columns].isin(names)]
    keys = chosen[common].itertuples(index=False, name=None)
    for position, key, name in zip(chosen.index, keys, chosen[columns], strict=True):
        grid[place[key], names.index(name)] = position
    return grid


def _taken(values: FloatArray, positions: IntArray) -> FloatArray:
    """(resamples, settings, options), NaN where there is no mean."""
    return np.where(positions < 0, np.nan, values[:, positions])
