"""External texts: the rows of a file that belong to a cell and its units, checked before any chunk is computed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from cfbench_core.lifecycle.external_rows import unknown_units
from cfbench_core.lifecycle.tables import EXPLANATIONS_FILE, read_units
from cfbench_core.stages import UNITS, TaskContext
from cfbench_text.external_texts import Places, texts_of
from cfbench_text.row_store import GROUP, RowWriter

COLUMNS = ("unit", "text", "rating")


def select_texts(context: TaskContext) -> dict[str, Any]:
    """``explanations.parquet``: unit, text, rating, in the order of the file, which is never read as a whole."""
    path, units = Path(context.parameters["file"]), context.load(UNITS, read_units)
    unknown: dict[str, None] = {}
    places = Places(*(units[name].tolist() for name in ("unit", "user", "item", "time")))
    texts = texts_of(path, context.parameters["labels"], places, unknown)
    count = 0
    with RowWriter(context.output / EXPLANATIONS_FILE, COLUMNS) as to:
        while some := list(itertools.islice(texts, GROUP)):
            to.write(dict(zip(COLUMNS, zip(*some, strict=True), strict=True)))
            count += len(some)
    note = unknown_units(list(unknown), count + len(unknown), units, path)
    return {"units": count, **({"note": note} if note else {})}
