"""External texts: the rows of a file that belong to a cell and its units, checked before any chunk is computed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external_rows import unknown_units
from cfbench_core.lifecycle.tables import EXPLANATIONS_FILE, read_units
from cfbench_core.stages import UNITS, TaskContext
from cfbench_text.external_texts import Places, rating_of, rows_of, text_of
from cfbench_text.row_store import GROUP, RowWriter

COLUMNS = ("unit", "text", "rating")


def select_texts(context: TaskContext) -> dict[str, Any]:
    """``explanations.parquet``: unit, text, rating, in the order of the file, which is never read as a whole."""
    path, units = Path(context.parameters["file"]), context.load(UNITS, read_units)
    unknown: dict[str, None] = {}
    texts = _texts(path, context.parameters["labels"], Places(*(units[n].tolist() for n in KEY)), unknown)
    count = 0
    with RowWriter(context.output / EXPLANATIONS_FILE, COLUMNS) as to:
        while some := list(itertools.islice(texts, GROUP)):
            to.write(dict(zip(COLUMNS, zip(*some, strict=True), strict=True)))
            count += len(some)
    note = unknown_units(list(unknown), count + len(unknown), units, path)
    return {"units": count, **({"note": note} if note else {})}


KEY = ("unit", "user", "item", "time")


def _texts(
    path: Path, labels: Mapping[str, str | int], places: Places, unknown: dict[str, None]
) -> Iterator[tuple[str, str, float]]:
    """The texts of a cell: unit, text, rating. What names no unit of the cell goes to ``unknown``.

    Raises:
        UserError: the row, and what is wrong: no text, nothing to join by, two texts for one unit.
    """
    seen = np.zeros(len(places.names), dtype=bool)
    for number, row in rows_of(path):
        if any(row.get(name) is not None and str(row[name]) != str(value) for name, value in labels.items()):
            continue
        where = f"{path}:{number}"
        place, name = places.of(where, row)
        text, rating = text_of(where, row), rating_of(where, row)
        if place is None:
            unknown[name] = None
            continue
        if seen[place]:
            raise UserError(f"{where}: a second text for {places.names[place]}")
        seen[place] = True
        yield places.names[place], text, rating
