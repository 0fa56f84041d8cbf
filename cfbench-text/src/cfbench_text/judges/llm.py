"""``llm``: a chat model decides whether a text supports a statement.

This is f_LLM of Statement factuality (section IV-B), also used by SEval. The model answers 1 or 0. If the back end
reports probabilities of the next token (local models, most servers), support is p("1") / (p("1") + p("0"))
(``answer: soft``); ``answer: hard`` rounds it to 0 or 1. Otherwise the response must be exactly 1 or 0. Any other
response scores 0.5, which is not above the threshold of St2Exp, and a warning counts such responses. Decoding is greedy.

An empty text supports nothing; the model is not queried. A query without a response (an endpoint that fails
repeatedly) stops the run instead of inventing a verdict; the next run resumes.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.specs import ComponentSpec
from cfbench_text.documents import Document
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import ChatSource, OptionProbabilities, Prompt
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
    answer: Annotated[
        Literal["soft", "hard"], Help("soft: how sure the model is; hard: 1 or 0, whichever is surer")
    ] = "soft"


class LLMJudge:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._chat = Chat(config)

    def prepare(self, statements: Collection[str]) -> None: ...

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        questions = [(document.text, sentence(statement)) for document, statement in pairs]
        found = support_of(self._chat, questions, "judge llm")
        return found if self.config.answer == "soft" else np.where(found == 0.5, 0.5, found > 0.5)

    def signature(self) -> Mapping[str, str]:
        from cfbench_core.hashing import digest

        return {"judge": "llm", "prompt": digest([SYSTEM, USER])[:16], **self._chat.signature()}


def support_of(chat: Chat, questions: Sequence[tuple[str, str]], component: str) -> FloatArray:
    """(N,) how certain the model is that each text supports its statement. ``component`` is named in messages."""
    nonempty = [place for place, (text, _) in enumerate(questions) if text.strip()]
    prompts = [
        Prompt(SYSTEM, USER.format(text=text, statement=statement))
        for text, statement in (questions[place] for place in nonempty)
    ]
    choices = chat.choose(prompts)
    found = np.zeros(len(questions))
    found[nonempty] = [_value(choice, f"{component} ({chat.source.model})") for choice in choices]
    unread = sum(choice.p is None for choice in choices)
    if unread:
        warnings.warn(
            f"{unread} of {len(choices)} responses of {component} are neither 1 nor 0",
            ResultWarning,
            stacklevel=3,
        )
    return found


def _value(choice: OptionProbabilities, component: str) -> float:
    if choice.failure:
        raise UserError(f"{component}: a query has no response: {choice.failure}")
    return 0.5 if choice.p is None else choice.p
