"""SEval-P, -R, -F1 (Herserant & Guigue 2025; paper 004, equation 3): statements of both texts, each held against the
other text by a chat model.

    P = 1/n sum_k [b supports a_k]    R = 1/m sum_l [a supports b_l]    F1 = 2 P R / (P + R)

a_1..a_n are the statements of the text a, b_1..b_m those of the reference b. (The paper prints the second line as
another "SEval-P"; it is R.) [...] is 1 or 0, whichever the model is surer of; ``answer: soft`` takes how sure it is.

It is not St2Exp: the model divides both texts itself, whatever they say, the template's own words included. Its
statements have no topic and no sentiment, and are judged as they are, not in the sentence "the user would appreciate
...". So it needs no extractor and no domain, and asks two more questions for each row.

The published code has a worked example in its prompt, takes each line of the answer for a statement, and asks for
all verdicts in one answer, where a statement without a verdict leaves the denominator. Here the prompt is our own and
shows no example, which a small model would repeat; ``answers.py`` reads the answers and counts their failures;
each statement is a question of its own, that of the judge ``llm``. Greedy; answers are kept.

A text of which no answer is usable has no known statements, which is not the same as none: its row is missing (NaN),
whatever ``protocol.empty`` says, and a warning says how many there are and why. An answer that ends early counts with
what is whole in it. An empty text is not asked about.
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
from cfbench_text.judges.llm import supported
from cfbench_text.metrics.base import ObservedTexts, ratio_columns, with_f1
from cfbench_text.models.chat import Chat, ChatSource, Completion, Prompt
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
    answer: Annotated[
        Literal["hard", "soft"], Help("hard: supported or not, as published; soft: how sure the model is")
    ] = "hard"
    words: Annotated[int, Range(minimum=10), Help("a longer text is asked about in pieces")] = 400
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
        asked = [rows if row else [] for rows, row in zip(questions, [*known, *known], strict=True)]
        support = distinct_queries(asked, self._support)
        predicted, evidence = support[: len(sides)], support[len(sides) :]
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
        said = dict(zip(distinct, self._chat.write(prompts, self.config.tokens), strict=True))
        found = {text: _joined([said[piece] for piece in of_text]) for text, of_text in parts.items()}
        failed = [one.left_out for one in found.values() if not one.known]
        if failed:
            why = sum((Counter(reasons) for reasons in failed), Counter())
            told = ", ".join(f"{reason}: {count}" for reason, count in sorted(why.items()))
            warnings.warn(
                f"SEval: {len(failed)} of {len(found)} texts could not be divided into statements ({told})",
                ResultWarning,
                stacklevel=2,
            )
        return found

    def _support(self, questions: Sequence[tuple[str, str]]) -> FloatArray:
        found = supported(self._chat, questions, "metric seval")
        return found if self.config.answer == "soft" else (found > 0.5).astype(np.float64)


def _joined(said: Sequence[Completion]) -> Divided:
    """Of the pieces of a text. It is known when an answer to one of them is; an empty text is."""
    counts: Counter[str] = Counter()
    statements: list[str] = []
    read: list[bool] = []
    for one in said:
        if one.failure:
            counts[f"{NO_ANSWER}: {one.failure}"] += 1
            read.append(False)
            continue
        reading = read_statements(one.text)
        counts.update(reading.left_out)
        statements += reading.statements
        read.append(bool(reading.statements) or reading.status == "empty")
    return Divided(tuple(dict.fromkeys(statements)), not said or any(read), dict(counts))
