"""What is missing for a claim of a paper, and claims that other data than the paper's decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cfbench_core.verdicts import Verdict, elsewhere

if TYPE_CHECKING:
    import pandas as pd

COMBINED = ("dataset", "k", "level")
"""Labels whose values a paper combines."""
SHOWN = {"k": "K = {}", "level": "level {}"}
"""How a missing value of a label is named; others by their name alone."""
Terms = Mapping[str, Sequence[str]]
"""The values of each label that a claim is about."""


def absent(wanted: Terms, frame: pd.DataFrame, everything: pd.DataFrame) -> tuple[str, ...]:
    """Explainers, models, data sets, lengths of lists and levels of a claim without any mean, in words.

    Args:
        wanted: the terms of the claim.
        frame: the means that it is about.
        everything: all means that were measured; they say what is missing where ``frame`` is empty.
    """
    if frame.empty:
        return _first_gap(wanted, everything)
    return tuple(
        name
        for label in ("explainer", "model", *COMBINED)
        for name in _without(wanted.get(label, ()), label, frame)
    )


def _first_gap(wanted: Terms, frame: pd.DataFrame) -> tuple[str, ...]:
    """Where the means end that satisfy one term of a claim after the other: ("yahoo-music", "lightgcn on ml-1m")."""
    first = ("metric", "dataset", "model", *COMBINED[1:])
    found: list[str] = []
    for label in (*first, *(name for name in wanted if name not in first)):
        values = wanted.get(label)
        if not values:
            continue
        chosen = frame[frame[label].astype(str).isin(values)]
        missing = _without(values, label, chosen)
        if chosen.empty:
            data = ", ".join(dict.fromkeys(frame["dataset"])) if label not in ("metric", "dataset") else ""
            return (*found, f"{', '.join(missing)} on {data}" if data else ", ".join(missing))
        found += missing
        frame = chosen
    return tuple(found)


def _without(values: Sequence[str], label: str, frame: pd.DataFrame) -> list[str]:
    """Those of the values of a label that no mean has, in words."""
    present = set(frame[label].astype(str))
    return [SHOWN.get(label, "{}").format(name) for name in values if name not in present]


def on_other_data(
    rows: Iterable[dict[str, Any]], claims: Collection[str], here: Collection[str], paper: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Rows of claims; those of ``claims`` are decided in part where data ``here`` are not all of the paper's."""
    other = bool(set(here) - set(paper))
    for row in rows:
        if other and row["claim"] in claims:
            found = elsewhere(Verdict(row["verdict"], row["reason"]), ", ".join(here), ", ".join(paper))
            yield {**row, "verdict": found.word, "reason": found.reason}
        else:
            yield row
