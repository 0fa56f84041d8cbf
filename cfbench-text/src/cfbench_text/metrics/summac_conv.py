"""SummaC-Conv (Laban et al. 2022): SummaC with a trained head over the histogram of entailment. For comparison only.

E_kl = the NLI model's probability that premise b_l entails hypothesis a_k, sentences of two texts.

    Conv(a | b) = softmax(V m + c)[1],  m = mean_k (w . histogram_l(E_kl) + u), repeated three times

The head is read from the file with the published weights. It was trained on the outputs of one NLI model for documents
of many sentences and is not meaningful with another model: its value is 0.20 if nothing is entailed and 0.22 if a
sentence is entailed with probability 0.50 (the table of Statement factuality shows this minimum for all models). A
warning is issued in this case. Directions as in SummaC-ZS. An empty text scores the minimum; a missing reference gives
NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help
from cfbench_core.contracts import Point
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.summac_zs import DIRECTION, both_ways
from cfbench_text.models.pairs import Pairs, PairSource
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/summac-conv",
    summary="SummaC with a trained head; its lowest value is about 0.20",
    target=f"{__name__}:SummaCConv",
    config=f"{__name__}:Config",
    papers=("laban2022summac",),
    details={"default": False, "pretrained": True},
)


TRAINED_ON = "albert-xlarge-vitaminc-mnli"
"""The model whose answers the published head was trained on."""

_EDGES = """
    0 0.01 0.02 0.03 0.04 0.07 0.13 0.37 0.9 0.91 0.92 0.93 0.94 0.95 0.955 0.96 0.965 0.97 0.975 0.98 0.985 0.99
    0.995 1
"""
EDGES = np.array([float(edge) for edge in _EDGES.split()])
"""Of its histogram: percentiles of that model's answers. The last bin holds 1.0."""

MOST_SENTENCES = 10
"""The published head reads so many sentences of the judged text; more are a warning, not lost without a word."""


@dataclass(frozen=True, kw_only=True)
class Config(PairSource):
    model: Annotated[str, Help("name, folder or package:NAME of an NLI model")] = f"tals/{TRAINED_ON}"
    weights: Annotated[str, Help("file with the published weights, summac_conv_vitc_sent_perc_e.bin")] = (
        "summac_conv_vitc_sent_perc_e.bin"
    )


class SummaCConv:
    def __init__(self, config: Config) -> None:
        self._path = Path(config.weights).expanduser()
        self._pairs = Pairs(config)
        self._model = config.model

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column("SummaC-Conv-P", "higher", (0.0, 1.0), "Does the reference entail the text's sentences?"),
            Column("SummaC-Conv-R", "higher", (0.0, 1.0), "Does the text entail the reference's sentences?"),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        if TRAINED_ON not in self._model:
            warnings.warn(
                f"SummaC-Conv was trained on {TRAINED_ON}, not on {self._model}: a value near 0.20 means nothing",
                ResultWarning,
                stacklevel=2,
            )
        return both_ways("SummaC-Conv", observed, self._pairs, Head.read(self._path).score)

    def signature(self) -> Mapping[str, str]:
        head = {"weights": file_digest(self._path)[:16], "trained on": TRAINED_ON}
        return {"metric": "SummaC-Conv", "direction": DIRECTION, **head, **self._pairs.signature()}


@dataclass(frozen=True)
class Head:
    """w (23,), u; V (2, 3), c (2,): the trained part of SummaC-Conv."""

    w: FloatArray
    u: float
    v: FloatArray
    c: FloatArray

    @classmethod
    def read(cls, path: Path) -> Head:
        """From the published file; only tensors are read, no code in it is run."""
        import torch

        if not path.is_file():
            raise UserError(f"weights {path}: no such file; it comes with the SummaC library")
        try:
            state: Mapping[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            arrays = {name: tensor.double().numpy() for name, tensor in state.items()}
            w, u = arrays["mlp.weight"], arrays["mlp.bias"]
            v, c = arrays["layer_final.weight"], arrays["layer_final.bias"]
        except Exception as error:
            raise UserError(f"weights {path}: not those of SummaC-Conv ({type(error).__name__})") from None
        if w.shape != (1, len(EDGES) - 1) or v.shape != (2, 3):
            raise UserError(f"weights {path}: have {w.shape[-1]} bins; the published percentile ones have 23")
        return cls(w[0], float(u[0]), v, c)

    def score(self, matrix: FloatArray) -> float:
        """The probability that the hypotheses (rows) follow from the premises (columns)."""
        if not matrix.size:
            return 0.0
        if len(matrix) > MOST_SENTENCES:
            warnings.warn(
                f"SummaC-Conv reads {MOST_SENTENCES} of {len(matrix)} sentences", ResultWarning, stacklevel=2
            )
        entailed = matrix[:MOST_SENTENCES, :, 0]
        histograms = np.stack([np.histogram(row, bins=EDGES)[0] for row in entailed])
        logits = self.v @ np.full(3, (histograms @ self.w + self.u).mean()) + self.c
        return float(1 / (1 + np.exp(logits[0] - logits[1])))
