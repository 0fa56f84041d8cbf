"""BLEU of each explanation (Papineni et al. 2002), computed by ``sacrebleu``: up to 4-grams, as the length permits.

It is sentence BLEU (effective order, exponential smoothing, tokenizer 13a), scaled from sacrebleu's 0 to 100 to [0, 1].
The BLEU of all texts together is in the analysis ``corpus``. It does not measure factuality.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/bleu",
    summary="Word sequences shared with the reference",
    target=f"{__name__}:BLEU",
    papers=("papineni2002bleu",),
)


class BLEU:
    def __init__(self, config: None = None) -> None: ...

    def columns(self, point: Point) -> Sequence[Column]:
        return (Column("BLEU", "higher", (0.0, 1.0), "How many word sequences are those of the reference?"),)

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        values = [
            _sacrebleu().sentence_score(text, [reference]).score / 100 if reference else np.nan
            for text, reference in zip(observed.texts, observed.references, strict=True)
        ]
        clear_cache()
        return {"BLEU": np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)}

    def signature(self) -> Mapping[str, str]:
        return {"sacrebleu": str(_sacrebleu().get_signature())}


@functools.cache
def _sacrebleu() -> Any:
    from sacrebleu.metrics import bleu

    found = bleu.BLEU(effective_order=True)
    found.sentence_score("a", ["a"])  # its signature needs the number of references, even if no text has one
    return found


def clear_cache() -> None:
    """Clears sacrebleu's cache of 65,536 tokenized texts, because each text occurs once here."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    for tokenizer in (Tokenizer13a, TokenizerRegexp):
        tokenizer.__call__.cache_clear()
