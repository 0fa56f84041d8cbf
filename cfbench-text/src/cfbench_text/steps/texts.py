"""Texts: generated, as rows of the contract's table, and read back."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Generator
from cfbench_text.corpus import ExplanationRequests
from cfbench_text.generators.base import Context, Explanation
from cfbench_text.reviews import BoolArray
from cfbench_text.row_store import whole
from cfbench_text.steps.data import Chunk

Texts = Sequence[Explanation | None]
"""(B,) texts with ratings; None for a unit without a text."""


def explain(
    context: TaskContext, explainer: Generator, model: Generator, chunk: Chunk, state: None
) -> tuple[Texts, dict[str, float]]:
    """The texts of all rows of the chunk, generated in one call."""
    streams = functools.partial(context.streams.generator, "explain")
    texts = explainer.explain(ExplanationRequests.of(chunk.units), Context(streams, chunk.visible))
    if len(texts) != len(chunk.units) or not all(isinstance(one.text, str) for one in texts):
        raise UserError(f"{context.task.label}: explain must give a text for each of {len(chunk.units)} rows")
    return texts, {}


def to_rows(chunk: Chunk, texts: Texts) -> pd.DataFrame:
    """unit, user, item, time, reference, text, rating (NaN where none is predicted); no row for a unit without a text."""
    given = np.array([one is not None for one in texts], dtype=bool)
    references = np.array(chunk.references(), dtype=object)[given]
    present = [one for one in texts if one is not None]
    return chunk.units.loc[given, ["unit", "user", "item", "time"]].assign(
        reference=pd.Series(references, dtype=str).to_numpy(),
        text=pd.Series([whole(one.text) for one in present], dtype=str).to_numpy(),
        rating=np.array([one.rating for one in present], dtype=np.float64),
    )


def from_rows(chunk: Chunk, rows: pd.DataFrame) -> tuple[Texts, BoolArray]:
    """The texts of a chunk, and (B,) which units have one."""
    columns = zip(rows["unit"], rows["text"], rows["rating"], strict=True)
    found = {unit: Explanation(text, float(rating)) for unit, text, rating in columns}
    texts = [found.get(unit) for unit in chunk.units["unit"]]
    return texts, np.array([one is not None for one in texts], dtype=bool)
