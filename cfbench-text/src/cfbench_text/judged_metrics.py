"""Which judges serve a metric: each that gives the verdicts that the metric declares to need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.plan import Column
from cfbench_core.specs import lacking
from cfbench_text.meta_evaluation.reliability import reliability_of

Entry = tuple[Mapping[str, Any], Sequence[Column]]
"""A metric as parameters of the scoring, with the columns that it fills."""


def for_each_judge(
    metric: ConfiguredComponent,
    parameters: Mapping[str, Any],
    columns: Sequence[Column],
    judges: Sequence[ConfiguredComponent],
) -> list[Entry]:
    """A metric once for each judge that serves it; once if it needs none.

    Its columns bear the label of the judge, and a note with the reliability that was measured.
    """
    shared = {**parameters, "verdicts": _verdicts(metric)}
    if "judge" not in metric.spec.needs:
        return [({**shared, "judge": None, "label": None}, columns)]
    entries: list[Entry] = []
    for judge in _serving(metric, judges):
        names = {column.name: f"{column.name} ({judge.label})" for column in columns}
        own = {"columns": names, "judge": judge.parameters(), "label": judge.label}
        known = reliability_of(judge)
        named = [
            replace(column, name=names[column.name], note=known.sentence, doubtful=known.doubtful)
            for column in columns
        ]
        entries.append(({**shared, **own}, named))
    return entries


def lacking_judge(metric: ConfiguredComponent, judges: Sequence[ConfiguredComponent]) -> str:
    """The judge that a metric needs, if there is none; else ""."""
    if "judge" not in metric.spec.needs or _serving(metric, judges):
        return ""
    return f"a judge that gives {' and '.join(_verdicts(metric))}; name one in 'judges'"


def _serving(metric: ConfiguredComponent, judges: Sequence[ConfiguredComponent]) -> list[ConfiguredComponent]:
    return [judge for judge in judges if not lacking(metric.spec.needs["judge"], judge.spec.provides)]


def _verdicts(metric: ConfiguredComponent) -> list[str]:
    return sorted(metric.spec.needs.get("judge", {}).get("verdict", ()))
