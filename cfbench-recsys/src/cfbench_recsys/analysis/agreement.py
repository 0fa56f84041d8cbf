"""Shared answers: how often do two explainers name the same edits?

For each pair of explainers of a setting, over the units that both answer,

- identical answers: the share of units for which both make the same set of edits;
- overlap: the mean Jaccard index |A and B| / |A or B| of the two sets.

An edit is an edge with what is done to it (removed or added). Explainers whose answers are identical nearly everywhere
are one method under two names, whatever their descriptions say; a high agreement with a baseline means that what makes
a method different from the baseline has little effect. Units that one of the two leaves unanswered do not count, so a
pair has its own ``n``: agreement on few units, the easy ones, is weaker evidence than the same agreement on all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cfbench_core.specs import ComponentSpec
from cfbench_core.wording import count_of
from cfbench_recsys.analysis.shared import (
    FloatArray,
    Method,
    Setting,
    Statements,
    by_setting,
    differ_in,
    finished,
    longest,
    mean_ci,
    normalized,
    place,
    settings,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/agreement",
    summary="How often explainers give the same answers",
    target=f"{__name__}:Agreement",
)

IDENTICAL, OVERLAP = "identical answers", "overlap"
MOSTLY = 0.5
"""Pairs that agree on more than this share of their units are counted in the summary."""

_EDIT = ["unit", "edge_user", "edge_item", "op"]
"""The columns that say whether two edits are the same."""


def _wanted(cell: RunCell) -> bool:
    return cell.labels.get("format") == "explicit"


class Agreement:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if any(differ_in("explainer", (cell.labels for cell in finished([run], _wanted))) for run in runs):
            return ""
        return "needs explicit answers of two explainers"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """A row for each pair and number; the columns are the labels, metric (identical answers, overlap), explainer,
        role, other (the second of the pair), mean, ci_low, ci_high, n (units that both answer)."""
        statements = Statements()
        for setting in settings(runs, _wanted):
            _state(statements, setting)
        return statements.frame()

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import heat_map

        table = normalized(table)
        note = "Share of the units answered by both for which the two name the same edits."
        drawn: list[Figure] = []
        for labels, rows in by_setting(longest(table[table["metric"] == IDENTICAL])):
            names = list(dict.fromkeys([*rows["explainer"], *rows["other"]]))
            known = {(row["explainer"], row["other"]): row["mean"] for row in rows.to_dict("records")}
            values = [
                [known.get((one, other), known.get((other, one), np.nan)) for other in names] for one in names
            ]
            title = f"Identical answers: {place(labels, table)}"
            svg = heat_map(names, names, values, title=title, hint="stronger: more answers in common")
            drawn.append(Figure(title, svg, "" if drawn else note))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        pairs = table[(table["metric"] == IDENTICAL) & table["mean"].notna()]
        if pairs.empty:
            return ""
        most = max(pairs.to_dict("records"), key=lambda row: float(row["mean"]))
        often = int((pairs["mean"] > MOSTLY).sum())
        return (
            f"Of {count_of(len(pairs), 'pair')} of explainers, {often} give identical answers for more than half of "
            f"the units that both answer. The largest share is that of {most['explainer']} and {most['other']} "
            f"({place(most, table)}): {mean_ci(most)} of {count_of(int(most['n']), 'unit')}."
        )


def _state(statements: Statements, setting: Setting) -> None:
    edits = _Edits(setting.methods)
    for one, other in combinations(setting.methods, 2):
        overlap = edits.overlap(one, other)
        identical = np.where(np.isnan(overlap), np.nan, overlap == 1.0)
        for metric, numbers in ((IDENTICAL, identical), (OVERLAP, overlap)):
            labels = {**setting.labels, "metric": metric, **one.labels(), "other": other.name}
            statements.add(labels, numbers, one.values.clusters)


class _Edits:
    """The edits of the methods of a setting as sorted numbers: the same for the same unit, user, item and operation."""

    def __init__(self, methods: Sequence[Method]) -> None:
        import pandas as pd

        rows = _answers(methods)
        unit, units = pd.factorize(rows["unit"])
        codes = rows.groupby(_EDIT, sort=False).ngroup()
        self._unit_of = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int64)
        self._unit_of[codes] = unit
        self._edits = {str(name): np.unique(own) for name, own in codes.groupby(rows["cell"])}
        self._number = len(units)
        places = pd.Index(units)
        self._places = {
            method.name: places.get_indexer([str(unit) for unit in method.values.units]) for method in methods
        }

    def overlap(self, one: Method, other: Method) -> FloatArray:
        """(units of ``one``,) Jaccard index of the two methods' edits; NaN where one of them has no answer."""
        first, second = (
            self._edits.get(method.cell.id, np.empty(0, dtype=np.int64)) for method in (one, other)
        )
        sizes = self._count(first), self._count(second)
        common = self._count(np.intersect1d(first, second, assume_unique=True))
        answered = (sizes[0] > 0) & (sizes[1] > 0)
        shares = np.where(answered, common / np.maximum(sizes[0] + sizes[1] - common, 1), np.nan)
        places = self._places[one.name]
        return np.where(places < 0, np.nan, np.append(shares, np.nan)[places])

    def _count(self, edits: NDArray[np.int64]) -> NDArray[np.int64]:
        """(units that some method answers,) how many of these edits each has."""
        return np.bincount(self._unit_of[edits], minlength=self._number)


def _answers(methods: Sequence[Method]) -> pd.DataFrame:
    """The edits of all methods, as text; each run is read once."""
    import pandas as pd

    cells: dict[Run, list[str]] = {}
    for method in methods:
        cells.setdefault(method.run, []).append(method.cell.id)
    columns = ["cell", *_EDIT]
    parts = [part for run, own in cells.items() for part in run.batches("explanations.parquet", columns, own)]
    return (
        pd.concat(parts, ignore_index=True).astype(str) if parts else pd.DataFrame(columns=columns, dtype=str)
    )
