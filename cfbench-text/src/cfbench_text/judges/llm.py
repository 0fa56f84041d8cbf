"""``llm``: a chat model decides whether a text supports a statement.

This is f_LLM of Statement factuality (section IV-B), also used by SEval. The model answers 1 or 0. If the back end
reports probabilities of the next token (local models, most servers), support is p("1") / (p("1") + p("0"))
(``answer: soft``); ``answer: hard`` rounds it to 0 or 1. Otherwise the response must be exactly 1 or 0. A response is
undecided if it is anything else, or if "1" and "0" together have less than ``min_mass`` of the probability: the model
was about to write something else, and the ratio of the two is noise. Undecided statements have no verdict (NaN): means
are over the others, and a warning counts them. Decoding is greedy.

An empty text supports nothing; the model is not queried. A query without a response (an endpoint that fails
repeatedly) has no verdict either, and the result is incomplete: the next run sends it again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.errors import ResultWarning
from cfbench_core.specs import ComponentSpec
from cfbench_text.documents import Document
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import JUDGE_MODEL, ChatSource, OptionProbabilities, Prompt
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet, sentence

SPEC = ComponentSpec(
    id="text/judge/llm",
    summary="A chat model decides whether a text supports a statement",
    target=f"{__name__}:LLMJudge",
    config=f"{__name__}:Config",
    provides={"verdict": {"support"}},
    papers=("statementfactuality",),
    details={"default": False, "pretrained": True},
)


SYSTEM = (
    "You check facts. You are given a text and a statement. Answer 1 if the text supports the statement, that is, if"
    " whoever believes the text must believe the statement; answer 0 if it does not, or says the opposite. Answer with"
    " the single digit and nothing else."
)
USER = "Text:\n{text}\n\nStatement:\n{statement}\n\nIs the statement supported by the text (1 or 0)?"


@dataclass(frozen=True, kw_only=True)
class Config(ChatSource):
    model: Annotated[
        str, Help("name, folder, .gguf file, package:NAME; or the model's name at the endpoint")
    ] = JUDGE_MODEL
    answer: Annotated[
        Literal["soft", "hard"], Help("soft: how sure the model is; hard: 1 or 0, whichever is surer")
    ] = "soft"
    min_mass: Annotated[
        float,
        Range(minimum=0, maximum=1),
        Help("probability that 1 and 0 must have together; undecided below"),
    ] = 0.5


class LLMJudge:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._chat = Chat(config)

    def prepare(self, statements: Collection[str]) -> None: ...

    def begin(self, report: Callable[[int, int], None]) -> None:
        """Begins a task: ``report`` is called with the number of prompts of a batch that are done, and of all."""
        self._chat.begin(report)

    def usage(self) -> Mapping[str, float]:
        """Responses of the task so far, their tokens and their cost."""
        return self._chat.usage()

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        questions = [(document.text, sentence(statement)) for document, statement in pairs]
        found = support_of(self._chat, questions, "judge llm", self.config.min_mass)
        return found if self.config.answer == "soft" else hard(found)

    def signature(self) -> Mapping[str, str]:
        from cfbench_core.hashing import digest

        return {"judge": "llm", "prompt": digest([SYSTEM, USER])[:16], **self._chat.signature()}


def hard(support: FloatArray) -> FloatArray:
    """1 above 0.5 and 0 otherwise; NaN where there is no verdict."""
    return np.where(np.isnan(support), np.nan, support > 0.5)


def support_of(
    chat: Chat, questions: Sequence[tuple[str, str]], component: str, min_mass: float
) -> FloatArray:
    """(N,) how certain the model is that each text supports its statement; NaN where there is no verdict.

    Args:
        component: is named in messages. min_mass: probability that both options must have together.
    """
    nonempty = [place for place, (text, _) in enumerate(questions) if text.strip()]
    prompts = [
        Prompt(SYSTEM, USER.format(text=text, statement=statement))
        for text, statement in (questions[place] for place in nonempty)
    ]
    choices = chat.choose(prompts)
    found = np.zeros(len(questions))
    found[nonempty] = [_value(choice, min_mass) for choice in choices]
    unread = sum(not one.failure and np.isnan(_value(one, min_mass)) for one in choices)
    if unread:
        warnings.warn(
            f"{unread} of {len(choices)} verdicts of {component} are undecided (neither 1 nor 0)",
            ResultWarning,
            stacklevel=3,
        )
    return found


def _value(choice: OptionProbabilities, min_mass: float) -> float:
    undecided = choice.p is None or (choice.mass is not None and choice.mass < min_mass)
    return float("nan") if undecided or choice.p is None else choice.p
