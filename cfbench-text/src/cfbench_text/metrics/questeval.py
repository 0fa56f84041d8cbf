"""QuestEval (Scialom et al. 2021): does the other text give the same answers to questions about a text?

    S(a -> b) = 1/|Q(a)| sum_{(q, r) in Q(a)} agree(r, answer to q in b)

Q(a): the questions q that a model generates from the text a, each for an answer r that a selector finds in it. ``-P``:
questions about the text, answered from the reference; ``-R``: the converse; ``-F``: their mean, harmonic as Statement
factuality defines it, or arithmetic as the library that it used computes it.

agree is the mean of ``scores``: "f1" of the words of both answers (lower case, without punctuation and articles, as in
SQuAD); "answerability", the model's probability that the question has an answer; "bertscore" of the two answers (raw,
so high for any pair). The library uses all three; bertscore needs an additional model and is not in the default. In the
article of 2021 precision is the F1 of answers alone and recall the weighted answerability alone; the library has since
treated both sides equally, as this implementation does.

Departures from the library (version 0.2): answers are selected by rules instead of spaCy (``models/phrases.py``; your
own selector is ``import:MODULE:CLASS``), from all sentences instead of the first five; an answer that occurs twice in a
text has one question; a question is not truncated at 19 tokens; a blank question is dropped. Questions are not weighted
(the library's query weighter is off as well, and by its own account outdated). As in the library, one model generates
and one model answers the questions, both greedily, for both texts; inputs beyond a model's limit are truncated with a
warning.

A text without questions counts as an empty one, see ``precision_recall``: with "zero" its own side is undefined, the
other side and both means are 0, and no question is generated. (The library still answers the other side's questions,
unless a text is blank.) In paragraphs of the template "the user" and "this product" are answers that always agree.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics import bertscore
from cfbench_text.metrics.base import Empty, ObservedTexts, f1, precision_recall
from cfbench_text.models import questions as plugins
from cfbench_text.models.phrases import normal
from cfbench_text.models.questions import AnswerSource, QuestionSource, Reply
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/questeval",
    summary="Do text and reference give the same answers to questions about either?",
    target=f"{__name__}:QuestEval",
    config=f"{__name__}:Config",
    papers=("scialom2021questeval",),
    details={"default": False, "pretrained": True},
)


Question = tuple[str, str]
"""The question, and the answer that it was made for."""
DIRECTION = "P: questions about the text, answered from the reference; R: the converse"


@dataclass(frozen=True, kw_only=True)
class Similarity(bertscore.Config):
    """The library's: layer 9 is what bert-score recommends for this model."""

    shorthand: ClassVar[str] = "model"

    model: Annotated[str, Help("name, folder or package:NAME of an encoder")] = "bert-base-multilingual-cased"
    layer: Annotated[int | None, Range(minimum=0), Help("whose hidden states; none: the last")] = 9


@dataclass(frozen=True, kw_only=True)
class Config:
    generator: Annotated[QuestionSource, Help("generates questions")] = field(default_factory=QuestionSource)
    answerer: Annotated[AnswerSource, Help("answers questions")] = field(default_factory=AnswerSource)
    selector: Annotated[str, Help("selects the answers: rules, or import:MODULE:CLASS")] = "rules"
    sentences: Annotated[
        int | None, Range(minimum=1), Help("of a text, for the rules; 5 in the library; none: all")
    ] = None
    scores: Annotated[
        tuple[Literal["f1", "answerability", "bertscore"], ...],
        Help("whose mean is the agreement of answers"),
    ] = ("f1", "answerability")
    similarity: Annotated[Similarity, Help("the encoder of bertscore")] = field(default_factory=Similarity)
    mean: Annotated[
        Literal["harmonic", "arithmetic"],
        Help("of P and R: as in Statement factuality, or as in the library"),
    ] = "harmonic"

    def __post_init__(self) -> None:
        if not self.scores or len(set(self.scores)) < len(self.scores):
            raise ValueError("scores must name one or more of f1, answerability, bertscore, each once")


class QuestEval:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Point) -> Sequence[Column]:
        return (
            Column(
                "QuestEval-P",
                "higher",
                (0.0, 1.0),
                "Does the reference give the same answers to questions about the text?",
            ),
            Column(
                "QuestEval-R",
                "higher",
                (0.0, 1.0),
                "Does the text give the same answers to questions about the reference?",
            ),
            Column("QuestEval-F", "higher", (0.0, 1.0), "Their mean, harmonic or arithmetic as configured"),
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        known = self._questions([*observed.texts, *observed.references])
        ways = [
            *zip(observed.texts, observed.references, strict=True),
            *zip(observed.references, observed.texts, strict=True),
        ]
        # If one side has no questions, ``empty`` decides, and the questions of the other side are not answered.
        queries = [
            (question, answer, other)
            for text, other in ways
            if known[other]
            for question, answer in known[text]
        ]
        agreement = iter(self._agreement(queries, observed))
        values = [
            np.array([next(agreement) if known[other] else 0.0 for _ in known[text]]) for text, other in ways
        ]
        p, r = precision_recall(values[: len(observed)], values[len(observed) :], observed.empty)
        return {"QuestEval-P": p, "QuestEval-R": r, "QuestEval-F": self._mean(p, r, observed.empty)}

    def signature(self) -> Mapping[str, str]:
        about = {
            "metric": "QuestEval",
            "mean": self.config.mean,
            "scores": " + ".join(self.config.scores),
            "weights": "none",
            "direction": DIRECTION,
            **plugins.prefixed_signature("selector", self._selector, self.config.selector),
            **plugins.prefixed_signature("generator", self._generator, self.config.generator.model),
            **plugins.prefixed_signature("answerer", self._answerer, self.config.answerer.model),
        }
        if "bertscore" in self.config.scores:
            about |= plugins.prefixed_signature("similarity", self._similarity, self.config.similarity.model)
        return about

    @functools.cached_property
    def _selector(self) -> plugins.AnswerSelector:
        return plugins.answer_selector(self.config.selector, self.config.sentences)

    @functools.cached_property
    def _generator(self) -> plugins.QuestionGenerator:
        return plugins.question_generator(self.config.generator)

    @functools.cached_property
    def _answerer(self) -> plugins.Answerer:
        return plugins.answerer(self.config.answerer)

    @functools.cached_property
    def _similarity(self) -> bertscore.BERTScore:
        return bertscore.BERTScore(self.config.similarity)

    def _questions(self, texts: Sequence[str]) -> dict[str, list[Question]]:
        """Of each distinct text; none of a blank one."""
        distinct = list(dict.fromkeys(texts))
        full = [text for text in distinct if text.strip()]
        selected = dict(zip(full, self._selector.select(full) if full else [], strict=True))
        pairs = [(answer, text) for text, chosen in selected.items() for answer in chosen]
        queries = plugins.distinct_results(pairs, self._generator.generate)
        return {
            text: [
                (queries[answer, text], answer)
                for answer in selected.get(text, ())
                if queries[answer, text].strip()
            ]
            for text in distinct
        }

    def _agreement(self, queries: Sequence[tuple[str, str, str]], observed: ObservedTexts) -> FloatArray:
        """(N,) how well the answer in the other text agrees with the one that each question was made for."""
        if not queries:
            return np.zeros(0)
        replies = plugins.distinct_results(
            [(question, text) for question, _, text in queries], self._answerer.answer
        )
        pairs = [(answer, replies[question, text]) for question, answer, text in queries]
        found = np.array([self._agree(score, pairs, observed) for score in self.config.scores])
        agreement: FloatArray = np.clip(found.mean(axis=0), 0.0, 1.0)
        return agreement

    def _agree(self, score: str, pairs: Sequence[tuple[str, Reply]], observed: ObservedTexts) -> FloatArray:
        if score == "f1":
            return np.array([token_f1(answer, reply.text) for answer, reply in pairs])
        if score == "answerability":
            return np.array([reply.answerable for _, reply in pairs])
        distinct = list(dict.fromkeys((reply.text, answer) for answer, reply in pairs))
        none: list[tuple[()]] = [()] * len(distinct)
        texts, references = [text for text, _ in distinct], [answer for _, answer in distinct]
        values = self._similarity.compute(ObservedTexts(texts, references, none, none, observed.domain))
        of_pair = dict(zip(distinct, np.clip(values["BERTScore-F"], 0.0, 1.0), strict=True))
        return np.array([of_pair[reply.text, answer] for answer, reply in pairs])

    def _mean(self, precision: FloatArray, recall: FloatArray, empty: Empty) -> FloatArray:
        if self.config.mean == "harmonic":
            return f1(precision, recall, empty)
        if empty == "skip":
            return (precision + recall) / 2
        missing = np.isnan(precision) & np.isnan(recall)
        return np.where(missing, np.nan, (np.nan_to_num(precision) + np.nan_to_num(recall)) / 2)


def token_f1(answer: str, other: str) -> float:
    """Of the words that two answers share, as often as both have them; 1 for two answers without words."""
    mine, others = normal(answer), normal(other)
    if not mine or not others:
        return float(mine == others)
    shared = sum((Counter(mine) & Counter(others)).values())
    return 2 * shared / (len(mine) + len(others))
