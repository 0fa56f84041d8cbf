"""With which models Statement factuality measures, and what a run has in their place.

Statements are extracted by Meta-Llama-3-8B-Instruct; St2Exp judges them by Llama-3.1-8B-Instruct, StEnt and StCoh by
DeBERTa-large-mnli, as does SummaC-ZS; BERTScore and AlignScore read texts with RoBERTa-large, BARTScore with BART-large,
STS with all-MiniLM-L6-v2. Of SummaC-Conv, QuestEval and BLEURT the paper names the implementation: its models are meant.
A number of another model is not the paper's measure: neither the number nor a claim about it is comparable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Measure(NamedTuple):
    """A judge, an extractor or a metric of the paper, and how its model is called, in small letters and without signs."""

    component: str
    model: str
    shown: str


EXTRACTOR = Measure("llm", "llama38binstruct", "Llama-3-8B-Instruct")
BY_STATEMENTS = {
    "St2Exp": Measure("llm", "llama318binstruct", "Llama-3.1-8B-Instruct"),
    "StEnt": Measure("nli", "debertalargemnli", "DeBERTa-large-mnli"),
    "StEnt-bin": Measure("nli", "debertalargemnli", "DeBERTa-large-mnli"),
    "StCoh": Measure("nli", "debertalargemnli", "DeBERTa-large-mnli"),
}
OF_TEXTS = {
    "BERTScore": Measure("bertscore", "robertalarge", "RoBERTa-large"),
    "BARTScore": Measure("bartscore", "bartlarge", "BART-large"),
    "STS": Measure("sts", "allminilml6v2", "all-MiniLM-L6-v2"),
    "SummaC-ZS": BY_STATEMENTS["StEnt"]._replace(component="summac-zs"),
    "SummaC-Conv": Measure("summac-conv", "albertxlargevitaminc", "ALBERT-xlarge-vitaminc-mnli"),
    "AlignScore": Measure("alignscore", "robertalarge", "RoBERTa-large"),
    "BLEURT": Measure("bleurt", "bleurtbase", "BLEURT-base"),
}
OF_QUESTIONS = {
    "generator": Measure("questeval", "t5qgsquad1en", "t5-qg_squad1-en"),
    "answerer": Measure("questeval", "t5qasquad2negen", "t5-qa_squad2neg-en"),
}
"""The two models of QuestEval, by the options that name them."""


def stand_in(config: Mapping[str, Any], metric: str, judge: str) -> str:
    """What a run has in place of the paper's measure, "overlap in place of Llama-3.1-8B-Instruct"; empty if nothing.

    Args:
        config: of the run.
        metric: without its judge, such as "StEnt-P".
        judge: the label of the judge; empty for a metric of texts.
    """
    name = metric.rpartition("-")[0] or metric
    if name in BY_STATEMENTS:
        found = [
            _other(_entry([config.get("extractor", "")]), EXTRACTOR),
            _other(_entry(config.get("judges") or [], judge), BY_STATEMENTS[name]),
        ]
        return "; ".join(filter(None, found))
    if name in OF_TEXTS:
        wanted = OF_TEXTS[name]
        return _other(_entry(config.get("metrics") or [], wanted.component), wanted)
    if name == "QuestEval":
        entry = _entry(config.get("metrics") or [], "questeval")
        models = {option: _entry([entry.get(option) or ""]) for option in OF_QUESTIONS}
        found = [
            _other(
                {"name": "questeval", "model": model.get("model") or model.get("name")}, OF_QUESTIONS[option]
            )
            for option, model in models.items()
        ]
        return "; ".join(filter(None, found))
    return ""


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
    letters = "".join(filter(str.isalnum, model.lower()))
    return "" if not model or wanted.model in letters else f"{model} in place of {wanted.shown}"
