"""Answers as rows of the contract's table, and back."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cfbench_recsys.edits import BoolArray, Edits, FloatArray
from cfbench_recsys.explanations import edits_table, importances_table, read_edits, read_importances
from cfbench_recsys.steps.chunks import Chunk

Answers = FloatArray | Edits
"""(B, H) importances (implicit), or B edits (explicit)."""


def to_rows(chunk: Chunk, answers: Answers) -> pd.DataFrame:
    """A row for each unit and interaction."""
    described = chunk.contract_columns()
    if isinstance(answers, Edits):
        return edits_table(chunk.interactions, answers, described)
    return importances_table(chunk.interactions, chunk.targets, answers, described)


def from_rows(chunk: Chunk, rows: pd.DataFrame) -> tuple[Answers, BoolArray]:
    """The answers of a chunk, and (B,) which units have one: an explicit answer may be "no edits"."""
    if chunk.format == "implicit":
        return from_rows_of_source(chunk, rows)
    edits = read_edits(rows, chunk.interactions, chunk.targets, chunk.units["unit"], chunk.split.profiles)
    return edits, np.ones(len(edits), dtype=bool)


def from_rows_of_source(chunk: Chunk, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
    """(B, H) importances, and (B,) which units have some."""
    return read_importances(rows, chunk.interactions, chunk.targets, chunk.units["unit"])
