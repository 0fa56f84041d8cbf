"""Which units of a run have explanations, and by how many explainers: to choose one to read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from cfbench_core.run_directory import Run


@dataclass(frozen=True)
class ExplainedUnit:
    """A unit with the number of cells that have an explanation of it, and of rows in the table of explanations."""

    unit: str
    cells: int
    rows: int


def explained_units(run: Run) -> list[ExplainedUnit]:
    """The units that have explanations, those of most cells first, then those with the fewest rows, which are the
    easiest to read. Reads two columns, in batches.

    Raises:
        UserError: if the table of explanations is missing or damaged.
    """
    cells: dict[str, set[str]] = {}
    rows: Counter[str] = Counter()
    for batch in run.batches("explanations.parquet", ["cell", "unit"]):
        counts = batch.groupby(["cell", "unit"], observed=True, sort=False).size()
        for cell, unit, count in counts.reset_index(name="count").itertuples(index=False):
            cells.setdefault(str(unit), set()).add(str(cell))
            rows[str(unit)] += int(count)
    found = [ExplainedUnit(unit, len(of), rows[unit]) for unit, of in cells.items()]
    return sorted(found, key=lambda one: (-one.cells, one.rows, one.unit))
