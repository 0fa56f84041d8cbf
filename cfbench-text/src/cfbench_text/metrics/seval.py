"""SEval-P, -R, -F1 (Herserant & Guigue 2025): statements of both texts, each checked against the other by a chat model.

    P = 1/n sum_k [b supports a_k]    R = 1/m sum_l [a supports b_l]    F1 = 2 P R / (P + R)

a_1..a_n are the statements of the text a, b_1..b_m those of the reference b (Statement factuality, equation 3, which
prints the second line as another "SEval-P"; it is R). [...] is 1 or 0, whichever is more probable; ``answer: soft`` uses
the probability.

It differs from St2Exp: the model divides both texts itself, including the template's own words. Its statements have no
topic and no sentiment, and are judged as they are instead of in the sentence "the user would appreciate ...". It
therefore needs no extractor and no domain, and two more queries per row.

The published code has a worked example in its prompt, takes each line of the response as a statement, and requests all
verdicts in one response, where a statement without a verdict is removed from the denominator. Here the prompt is
different and shows no example, which a small model would repeat; ``response_parsing.py`` parses the responses and counts
failures; each statement is a query of its own, the one of the judge ``llm``. Decoding is greedy; responses are cached.

If no response for a text is usable, its statements are unknown, which differs from an empty set: its row is missing
(NaN) for any ``protocol.empty``, and a warning reports the number and the reasons. Of a truncated response the complete
statements are used. An empty text is not queried.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.contracts import Point
from cfbench_core.errors import ResultWarning
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.entailment_batches import distinct_queries
from cfbench_text.extractors.llm import NO_ANSWER, pieces
from cfbench_text.judges.llm import SYSTEM as JUDGE_SYSTEM
from cfbench_text.judges.llm import USER as JUDGE_USER
from cfbench_text.judges.llm import hard, support_of
from cfbench_text.metrics.base import ObservedTexts, ratio_columns, with_f1
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import JUDGE_MODEL, ChatSource, Completion, Prompt
from cfbench_text.response_parsing import read_statements
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/seval",
    summary="A chat model divides both texts and checks each statement",
    target=f"{__name__}:SEval",
    config=f"{__name__}:Config",
    papers=("herserant2025seval",),
    details={"default": False, "pretrained": True},
)


SYSTEM = """\
You divide a text into statements.

Rules:
- A statement is atomic: it says one thing. Divide a sentence that says two things.
- It is complete: who reads it alone understands it. Write what "it" or "they" stand for.
- Together the statements say all that the text says, and nothing that it does not say.
- When the text says nothing, answer [].

Answer with a list in this form and nothing else:
["<first statement>", "<second statement>", ...]"""
USER = "Text:\n{text}\n\nList its statements."


@dataclass(frozen=True, kw_only=True)
class Config(ChatSource):
    model: Annotated[
        str, Help("name, folder, .gguf file, package:NAME; or the model's name at the endpoint")
    ] = JUDGE_MODEL
    answer: Annotated[
        Literal["hard", "soft"], Help("hard: supported or not, as published; soft: how sure the model is")
    ] = "hard"
    min_mass: Annotated[
        float,
        Range(minimum=0, maximum=1),
        Help("probability that 1 and 0 must have together; undecided below"),
    ] = 0.5
    words: Annotated[int, Range(minimum=10), Help("a longer text is split into pieces")] = 400
    tokens: Annotated[int, Range(minimum=1), Help("the longest list of statements")] = 1024


@dataclass(frozen=True)
class Divided:
    """The statements of a text. ``known``: whether an answer could be read; ``left_out``: what could not, by kind."""

    statements: tuple[str, ...]
    known: bool
    left_out: Mapping[str, int]


class SEval:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._chat = Chat(config)

    def columns(self, point: Point) -> Sequence[Column]:
        return ratio_columns(
            "SEval",
            "How many statements that a model finds in the text does the reference support?",
            "How many statements that a model finds in the reference does the text support?",
        )

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        divided = self.divide([*observed.texts, *observed.references])
        sides = [
            (divided[text], divided[reference], text, reference)
            for text, reference in zip(observed.texts, observed.references, strict=True)
        ]
        known = np.array([mine.known and other.known for mine, other, _, _ in sides], dtype=bool)
        questions = [
            *([(reference, one) for one in mine.statements] for mine, _, _, reference in sides),
            *([(text, one) for one in other.statements] for _, other, text, _ in sides),
        ]
        queries = [rows if row else [] for rows, row in zip(questions, [*known, *known], strict=True)]
        support = distinct_queries(queries, self._support, undecided=True)
        predicted, evidence = support[: len(sides)], support[len(sides) :]
        for side in (predicted, evidence):
            known &= [not len(row) or not np.isnan(row).all() for row in side]
        values = with_f1("SEval", predicted, evidence, observed.empty)
        return {name: np.where(known, column, np.nan) for name, column in values.items()}

    def signature(self) -> Mapping[str, str]:
        from cfbench_core.hashing import digest

        prompts = digest([SYSTEM, USER, JUDGE_SYSTEM, JUDGE_USER])[:16]
        direction = "P: statements of the text; R: statements of the reference"
        return {"metric": "SEval", "direction": direction, "prompts": prompts, **self._chat.signature()}

    def divide(self, texts: Sequence[str]) -> dict[str, Divided]:
        """The statements of each distinct text; warns of those that could not be divided."""
        parts = {text: pieces(text, self.config.words) for text in dict.fromkeys(texts)}
        distinct = list(dict.fromkeys(piece for of_text in parts.values() for piece in of_text))
        prompts = [Prompt(SYSTEM, USER.format(text=piece)) for piece in distinct]
        completions = dict(zip(distinct, self._chat.write(prompts, self.config.tokens), strict=True))
        found = {text: _joined([completions[piece] for piece in of_text]) for text, of_text in parts.items()}
        failed = [one.left_out for one in found.values() if not one.known]
        if failed:
            why = sum((Counter(reasons) for reasons in failed), Counter())
            listed = ", ".join(f"{reason}: {count}" for reason, count in sorted(why.items()))
            warnings.warn(
                f"SEval: {len(failed)} of {len(found)} texts could not be divided into statements ({listed})",
                ResultWarning,
                stacklevel=2,
            )
        return found

    def _support(self, questions: Sequence[tuple[str, str]]) -> FloatArray:
        found = support_of(self._chat, questions, "metric seval", self.config.min_mass)
        return found if self.config.answer == "soft" else hard(found)


def _joined(completions: Sequence[Completion]) -> Divided:
    """Of the pieces of a text. It is known when the answers to all of them are; an empty text is."""
    counts: Counter[str] = Counter()
    statements: list[str] = []
    read: list[bool] = []
    for one in completions:
        if one.failure:
            counts[f"{NO_ANSWER}: {one.failure}"] += 1
            read.append(False)
            continue
        reading = read_statements(one.text)
        counts.update(reading.left_out)
        statements += reading.statements
        read.append(bool(reading.statements) or reading.status == "empty")
    return Divided(tuple(dict.fromkeys(statements)), all(read), dict(counts))
