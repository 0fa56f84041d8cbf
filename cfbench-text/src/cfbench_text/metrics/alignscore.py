"""AlignScore (Zha et al. 2023): does the reference contain the content of the text, by a model trained for alignment?

A RoBERTa encodes a chunk of the context b and a sentence of the claim a; one of three heads on its first token predicts
how well they are aligned.

    AlignScore(a | b) = mean_k max_l P(aligned | chunk b_l, sentence a_k)

``-P``: the claim is the text and the context the reference; ``-R``: the converse. Statement factuality reports one of
the two without naming the direction. ``head``: the probability of "aligned" among three classes (as published and in
Statement factuality), among two, or a regression, which is unbounded and clipped to [0, 1], its training range.

Chunks as published: a context of W words and S sentences is split into runs of max(1, S // (W // 350 + 1)) sentences,
so a chunk has about 350 words and ends with a sentence. Sentences are segmented by the suite, not by NLTK. If chunk and
sentence exceed the encoder's limit, the end of the chunk is truncated, and a warning counts these pairs. Padding is
masked; the published code pads to 512 tokens, which gives the same numbers in more time.

``checkpoint`` is the published file AlignScore-base.ckpt or AlignScore-large.ckpt (PyTorch Lightning: a
``state_dict`` with base_model.*, bin_layer.*, tri_layer.*, reg_layer.*; mlm_head.* is not used), or safetensors with
the same names. Only tensors are read; no code in it is executed. Of ``model``, the encoder from which it was trained,
only tokenizer and configuration are needed.

An empty text scores 0. A missing reference gives NaN.
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, InputFile, Range
from cfbench_core.contracts import Point
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.loading import Loaded, Source, signature, unfilled
from cfbench_text.models.pair_values import PairValues, first_only
from cfbench_text.reviews import FloatArray
from cfbench_text.sentence_segmentation import sentences

SPEC = ComponentSpec(
    id="text/metric/alignscore",
    summary="Sentences that the other text contains, by a model trained for that",
    target=f"{__name__}:AlignScore",
    config=f"{__name__}:Config",
    papers=("zha2023alignscore",),
    details={"default": False, "pretrained": True},
)


DIRECTION = "P: context is the reference, claim the text; R: context is the text, claim the reference"
HEADS = {"three-way": "tri_layer", "binary": "bin_layer", "regression": "reg_layer"}
OUTPUTS = {"tri_layer": 3, "bin_layer": 2, "reg_layer": 1}


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    checkpoint: Annotated[
        str, InputFile(), Help("file with the weights: AlignScore-large.ckpt, or safetensors")
    ]
    model: Annotated[
        str, Help("name or folder of the encoder it was trained from; its weights are not needed")
    ] = "roberta-large"
    head: Annotated[Literal["three-way", "binary", "regression"], Help("which of its answers counts")] = (
        "three-way"
    )
    chunk: Annotated[int, Range(minimum=1), Help("words of the context read at once, about")] = 350
    batch: Annotated[int, Range(minimum=1), Help("pairs computed at once")] = 32


class AlignScore:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column(
                "AlignScore-P", "higher", (0.0, 1.0), "Does the reference contain the content of the text?"
            ),
            Column(
                "AlignScore-R", "higher", (0.0, 1.0), "Does the text contain the content of the reference?"
            ),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        known = [bool(reference.strip()) for reference in observed.references]
        texts, references = list(map(sentences, observed.texts)), list(map(sentences, observed.references))
        both = [*zip(texts, references, strict=True), *zip(references, texts, strict=True)]
        sides = [(claim, chunks(context, self.config.chunk)) for claim, context in both]
        pairs = list(
            dict.fromkeys((part, claim) for claims, context in sides for claim in claims for part in context)
        )
        head = list(HEADS).index(self.config.head)
        values = (float(np.clip(one[head], 0, 1)) for one in self._pairs.values(pairs))
        aligned = dict(zip(pairs, values, strict=True))

        def of_side(claims: Sequence[str], context: Sequence[str]) -> float:
            best = [max(aligned[part, claim] for part in context) for claim in claims if context]
            return float(np.mean(best)) if best else 0.0

        found = np.array([of_side(*side) for side in sides]).reshape(2, len(texts))
        found[:, ~np.array(known, dtype=bool)] = np.nan
        return {"AlignScore-P": found[0], "AlignScore-R": found[1]}

    def signature(self) -> Mapping[str, str]:
        c = self.config
        return {
            "metric": "AlignScore",
            "direction": DIRECTION,
            "head": c.head,
            "chunk": f"{c.chunk} words",
            **self._identity(),
        }

    def _identity(self) -> dict[str, str]:
        """What determines the answer to one pair: all three heads are computed at once."""
        return {**signature(self.config), "checkpoint": _digest(*self._weights)[:16]}

    @functools.cached_property
    def _weights(self) -> tuple[str, int]:
        """Path, and when it was changed, so that another file is read anew."""
        path = Path(self.config.checkpoint).expanduser()
        if not path.is_file():
            raise UserError(
                f"checkpoint {path}: no such file; AlignScore's authors publish AlignScore-large.ckpt"
            )
        return str(path), path.stat().st_mtime_ns

    @functools.cached_property
    def _pairs(self) -> PairValues:
        c = self.config
        source = Source(
            model=c.model, revision=c.revision, download=c.download, device=c.device, dtype=c.dtype
        )
        return PairValues(
            "alignscore",
            f"AlignScore on {c.model}",
            self._identity(),
            lambda: _load(*self._weights, source),
            _alignments,
            first_only,
            batch=c.batch,
        )


def chunks(context: Sequence[str], words: int) -> list[str]:
    """Sentences of a context in runs of about so many words."""
    parts = sum(len(sentence.split()) for sentence in context) // words + 1
    size = max(len(context) // parts, 1)
    return [" ".join(context[start : start + size]) for start in range(0, len(context), size)]


def _alignments(loaded: Loaded, given: Mapping[str, Any]) -> Any:
    """(B, 3): P(aligned) of the three-way and of the binary head, and the regression, in the order of ``HEADS``."""
    import torch

    first = loaded.model["encoder"](**given).pooler_output
    tri, bin_, reg = (loaded.model[name](first).double() for name in HEADS.values())
    return torch.stack([torch.softmax(tri, -1)[:, 0], torch.softmax(bin_, -1)[:, 1], reg[:, 0]], dim=1)


@functools.lru_cache(maxsize=4)
def _digest(path: str, changed: int) -> str:
    return file_digest(Path(path))


@functools.lru_cache(maxsize=1)
def _load(checkpoint: str, changed: int, source: Source) -> Loaded:
    """Encoder and heads with the weights of the file."""
    loaded = unfilled("AutoModel", source)
    import torch

    state = read(Path(checkpoint))
    size = loaded.model.config.hidden_size
    heads = {name: torch.nn.Linear(size, outputs) for name, outputs in OUTPUTS.items()}
    model = torch.nn.ModuleDict({"encoder": loaded.model, **heads}).to(loaded.model.dtype)
    given = {_inside(name): tensor for name, tensor in state.items()}
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    there = {name: tuple(given[name].shape) for name in given if name and not name.endswith("position_ids")}
    for name in [*wanted, *there]:
        if wanted.get(name) != there.get(name):
            shown = name.replace("encoder.", "base_model.", 1)
            raise UserError(
                f"checkpoint {checkpoint} does not fit the model {source.model!r}: {shown} is"
                f" {there.get(name, 'missing')} in the file and {wanted.get(name, 'missing')} in the model; name the"
                " encoder that it was trained from (AlignScore-base: roberta-base, AlignScore-large: roberta-large)"
            )
    model.load_state_dict({name: given[name] for name in wanted})
    model.eval().requires_grad_(False).to(loaded.device)
    return Loaded(loaded.tokenizer, model, loaded.device, loaded.limit)


def _inside(name: str) -> str:
    """What a tensor of the file is called here; "" for those that are not used."""
    if name.startswith("base_model."):
        return name.replace("base_model.", "encoder.", 1)
    return name if name.partition(".")[0] in OUTPUTS else ""


def read(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by name."""
    import torch

    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except Exception as error:
        what = re.search(r"GLOBAL ([\w.]+)", str(error))
        if what:
            raise UserError(
                f"checkpoint {path}: holds an object that is no tensor ({what[1]}), which is not read as that would"
                " run code; save its 'state_dict' alone, or as safetensors"
            ) from None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"checkpoint {path}: cannot be read ({reason[:120]})") from None
    state = found.get("state_dict", found) if isinstance(found, dict) else None
    tensors = {name: one for name, one in (state or {}).items() if isinstance(one, torch.Tensor)}
    if not tensors:
        raise UserError(
            f"checkpoint {path}: has no tensors; needs the file AlignScore-large.ckpt or its like"
        )
    return tensors
