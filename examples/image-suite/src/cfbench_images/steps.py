"""The steps of the suite; a unit is one image, an answer is the pixels that differ."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from cfbench_core.config.component import create
from cfbench_core.lifecycle.models import load_state, save_state
from cfbench_core.stages import TaskContext
from cfbench_images.contracts import Images, Observed


def read_data(context: TaskContext, loaded: tuple[Any, Any]) -> dict[str, Any]:
    pixels, labels = loaded
    test = context.streams.generator("split").permutation(len(labels)) < len(labels) // 3
    save_state({"pixels": pixels, "labels": labels, "test": test}, context.output)
    return {"images": len(labels)}


def load_data(context: TaskContext) -> Images:
    return Images(**context.load("data", load_state))


def fit(context: TaskContext, data: Images) -> tuple[Any, dict[str, Any]]:
    model = create(context.parameters["model"])
    model.fit(data.pixels[~data.test], data.labels[~data.test])
    correct = model.predict_proba(data.pixels[data.test]).argmax(axis=1) == data.labels[data.test]
    return model, {"quality": {"accuracy": float(correct.mean())}}


def choose_units(context: TaskContext, data: Images, model: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    drawn = context.streams.generator("units").permutation(np.flatnonzero(data.test))
    chosen = np.sort(drawn[: context.parameters["images"]])
    return pd.DataFrame({"unit": chosen.astype(str), "group": np.arange(len(chosen)), "image": chosen}), {}


class Chunk(NamedTuple):
    units: pd.DataFrame
    model: Any
    data: Images
    originals: Any
    queries: ClassVar = ("predict_proba",)


def open_chunk(context: TaskContext, data: Images, model: Any, units: pd.DataFrame) -> Chunk:
    return Chunk(units, model, data, data.pixels[units["image"]])


def explain(context: TaskContext, explainer: Any, model: Any, chunk: Chunk, state: Any) -> tuple[Any, Any]:
    streams = functools.partial(context.streams.generator, "explain")
    names = chunk.units["unit"].tolist()
    return explainer.counterfactuals(model, chunk.originals, chunk.data, lambda b: streams(names[b])), {}


def to_rows(chunk: Chunk, answers: Any) -> pd.DataFrame:
    unit, pixel = np.nonzero((answers != chunk.originals) & ~np.isnan(answers))
    changes = {"pixel": pixel, "original": chunk.originals[unit, pixel], "value": answers[unit, pixel]}
    return chunk.units[["unit", "image"]].iloc[unit].assign(**changes)


def from_rows(chunk: Chunk, rows: pd.DataFrame) -> tuple[Any, Any]:
    place = pd.Index(chunk.units["unit"]).get_indexer(rows["unit"])
    answers = np.full(chunk.originals.shape, np.nan)
    answers[place] = chunk.originals[place]
    answers[place, rows["pixel"].astype(int)] = rows["value"].astype(float)
    return answers, np.ones(len(answers), dtype=bool)


def observe(context: TaskContext, chunk: Chunk, answers: Any) -> Observed:
    given = ~np.isnan(answers).any(axis=1)
    before, after = (
        chunk.model.predict_proba(x).argmax(axis=1) for x in (chunk.originals, np.nan_to_num(answers))
    )
    return Observed(chunk.originals, answers, given & (before != after))
