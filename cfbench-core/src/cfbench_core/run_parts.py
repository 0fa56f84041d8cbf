"""A run as if it had one cell only, for what is shown of each cell on its own."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cfbench_core.run_directory import Run, RunCell

if TYPE_CHECKING:
    import pandas as pd

SCORES, EXPLANATIONS = "scores.parquet", "explanations.parquet"


class OneCell(Run):
    """A run as if it had nothing but one cell, and some of its units. Both tables are in memory; the rest is that of the
    run, which reads it once."""

    def __init__(self, run: Run, cell: RunCell, scores: pd.DataFrame, explanations: pd.DataFrame) -> None:
        super().__init__(run.directory)
        self._whole = run
        self._cells = (cell,)
        self.scores, self.explanations = scores, explanations

    @functools.cached_property
    def plan(self) -> dict[str, Any]:
        return self._whole.plan

    @functools.cached_property
    def quality(self) -> pd.DataFrame:
        return self._whole.quality

    def explanations_of(self, cell: str) -> pd.DataFrame:
        return self.explanations[self.explanations["cell"] == cell]

    def rows(self, name: str, **wanted: Sequence[str]) -> pd.DataFrame:
        found = self._table(name)
        for column, values in wanted.items():
            found = found[found[column].isin(list(values))]
        return found

    def batches(
        self,
        name: str,
        columns: Sequence[str],
        cells: Sequence[str] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Iterator[pd.DataFrame]:
        wanted = {"cell": cells, "metric": metrics}
        given = {column: values for column, values in wanted.items() if values is not None}
        found = self.rows(name, **given)
        if len(found):
            yield found[[column for column in columns if column in found]]

    def _table(self, name: str) -> pd.DataFrame:
        if name in (SCORES, EXPLANATIONS):
            return self.scores if name == SCORES else self.explanations
        return self._whole.rows(name, cell=[self._cells[0].id])


def parts(run: Run, units: Collection[str]) -> Iterator[OneCell]:
    """The cells that have results, each with these units alone. Reads each table once."""
    scores, explanations = (run.rows(name, unit=sorted(units)) for name in (SCORES, EXPLANATIONS))
    scores_of = {str(cell): rows for cell, rows in scores.groupby("cell", observed=True)}
    explanations_of = {str(cell): rows for cell, rows in explanations.groupby("cell", observed=True)}
    for cell in run.cells():
        if cell.done or cell.status == "partial":
            yield OneCell(
                run,
                cell,
                scores_of.get(cell.id, scores.iloc[:0]),
                explanations_of.get(cell.id, explanations.iloc[:0]),
            )
