"""The options that all recommenders on the graph share: embeddings, training with BPR, early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.devices.choice import Device


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """A recommender adds options of its own, and may redefine one with another default or search range."""

    dimensions: Annotated[int, Range(minimum=1), Help("length of the embeddings")] = 64
    layers: Annotated[
        int,
        Range(minimum=1),
        Search(choices=(1, 2, 3, 4)),
        Help("steps over the graph; the mean of 0..layers is taken"),
    ] = 3
    learning_rate: Annotated[
        float, Range(above=0), Search(low=0.005, high=0.1, log=True), Help("of Adam")
    ] = 0.03
    l2: Annotated[
        float,
        Range(minimum=0),
        Search(low=1e-5, high=1e-1, log=True),
        Help("weight of the squared embeddings"),
    ] = 1e-3
    negatives: Annotated[int, Range(minimum=1), Help("items drawn for each batch")] = 64
    batch: Annotated[
        int | None,
        Range(minimum=1),
        Help("interactions in a batch; none: 2048, or a sixteenth of all if more"),
    ] = None
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 300
    patience: Annotated[
        int, Range(minimum=1), Help("evaluations without a better validation NDCG@10 before stopping")
    ] = 10
    eval_every: Annotated[
        int, Range(minimum=1), Help("epochs between two evaluations on the validation data")
    ] = 2
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None
    device: Annotated[Device, Help("auto: that of the experiment")] = "auto"
