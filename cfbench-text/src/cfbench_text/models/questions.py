"""The three exchangeable parts of QuestEval: answer selector, question generator and answerer.

Each part has a protocol and an implementation, and can be replaced by a user's class, with
``import:my_package.my_module:MyClass`` in place of a model's name. Question generators and answerers are constructed with
their options, selectors without arguments. If the class has ``signature()``, it is reported with the scores. (The cache
does not detect changes in the code of such a class.)
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

from cfbench_core.config import Help, Range
from cfbench_core.config.code_references import IMPORT, origin
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.specs import resolve
from cfbench_text.models.loading import Source, signature
from cfbench_text.models.seq2seq import Seq2SeqWriter


@dataclass(frozen=True)
class Reply:
    """An answer. ``answerable``: the probability in [0, 1] that the text contains one."""

    text: str
    answerable: float


class AnswerSelector(Protocol):
    def select(self, texts: Sequence[str]) -> Sequence[Sequence[str]]:
        """The answers in each text for which questions are generated. Repetitions count."""


class QuestionGenerator(Protocol):
    def generate(self, pairs: Sequence[tuple[str, str]]) -> Sequence[str]:
        """A question for each distinct (answer, text); blank if there is none."""


class Answerer(Protocol):
    def answer(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Reply]:
        """The answer from the text to each distinct (question, text)."""


@dataclass(frozen=True, kw_only=True)
class QuestionSource(Source):
    """The published question generator and its input format."""

    shorthand: ClassVar[str] = "model"

    model: Annotated[
        str, Help("name, folder or package:NAME of an encoder-decoder model; import:MODULE:CLASS")
    ] = "ThomasNLG/t5-qg_squad1-en"
    form: Annotated[str, Help("input format with {answer} and {text}")] = "sv1 </s> {answer} </s> {text}"
    tokens: Annotated[int, Range(minimum=1), Help("the longest question; 19 in the published code")] = 64
    batch: Annotated[int, Range(minimum=1), Help("questions made at once")] = 8

    def __post_init__(self) -> None:
        _check_form(self.form, "answer", "text")


@dataclass(frozen=True, kw_only=True)
class AnswerSource(Source):
    """The published answerer, which can report that there is no answer."""

    shorthand: ClassVar[str] = "model"

    model: Annotated[
        str, Help("name, folder or package:NAME of an encoder-decoder model; import:MODULE:CLASS")
    ] = "ThomasNLG/t5-qa_squad2neg-en"
    form: Annotated[str, Help("input format with {question} and {text}")] = "{question} </s> {text}"
    unanswerable: Annotated[str, Help("its output for a question without an answer")] = "unanswerable"
    tokens: Annotated[int, Range(minimum=1), Help("the longest answer; 19 in the published code")] = 64
    batch: Annotated[int, Range(minimum=1), Help("questions answered at once")] = 8

    def __post_init__(self) -> None:
        _check_form(self.form, "question", "text")


_PART = re.compile(r"\{(\w+)\}")


def _check_form(form: str, *names: str) -> None:
    if sorted(_PART.findall(form)) != sorted(names):
        raise ValueError(f"form must hold {' and '.join(f'{{{name}}}' for name in names)} once, got {form!r}")


def _filled(form: str, **parts: str) -> str:
    """The form with its parts put in, whatever these hold."""
    return _PART.sub(lambda part: parts[part[1]], form)


class Seq2SeqQuestions:
    """A question for an answer, by a sequence-to-sequence model such as T5."""

    def __init__(self, source: QuestionSource) -> None:
        self.source = source
        self._writer = Seq2SeqWriter(source)

    def generate(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        inputs = [_filled(self.source.form, answer=answer, text=text) for answer, text in pairs]
        written = self._writer.write(inputs, self.source.tokens)
        _warn_about_truncated([one.cut for one in written], "questions", self.source.tokens)
        return [one.text for one in written]

    def signature(self) -> Mapping[str, str]:
        return {**signature(self.source), "form": self.source.form, "tokens": str(self.source.tokens)}


class Seq2SeqAnswers:
    """An answer by a sequence-to-sequence model such as T5 that was trained with unanswerable questions.

    Answerability: 1 - p(the answer begins with the first token of ``unanswerable``).
    """

    def __init__(self, source: AnswerSource) -> None:
        self.source = source
        self._writer = Seq2SeqWriter(source)

    def answer(self, pairs: Sequence[tuple[str, str]]) -> list[Reply]:
        inputs = [_filled(self.source.form, question=question, text=text) for question, text in pairs]
        written = self._writer.write(inputs, self.source.tokens, self.source.unanswerable)
        _warn_about_truncated([one.cut for one in written], "answers", self.source.tokens)
        return [Reply(one.text, 1.0 - (one.first or 0.0)) for one in written]

    def signature(self) -> Mapping[str, str]:
        return {**signature(self.source), "form": self.source.form, "tokens": str(self.source.tokens)}


def _warn_about_truncated(cut: Sequence[bool], what: str, tokens: int) -> None:
    if any(cut):
        warnings.warn(
            f"{sum(cut)} of {len(cut)} {what} have no end within {tokens} tokens and are cut",
            ResultWarning,
            stacklevel=3,
        )


def question_generator(source: QuestionSource) -> QuestionGenerator:
    found: QuestionGenerator = _imported(source.model, "generate", source) or Seq2SeqQuestions(source)
    return found


def answerer(source: AnswerSource) -> Answerer:
    found: Answerer = _imported(source.model, "answer", source) or Seq2SeqAnswers(source)
    return found


def answer_selector(name: str, sentences: int | None) -> AnswerSelector:
    from cfbench_text.models.phrases import Phrases

    if name == "rules":
        return Phrases(sentences)
    found: AnswerSelector | None = _imported(name, "select")
    if found is None:
        raise UserError(f"selector {name!r}: must be rules, or import:MODULE:CLASS")
    return found


def _imported(name: str, method: str, *options: Any) -> Any:
    """An instance of the user's own class, which has the method; None where the name is that of a model."""
    if not name.startswith(IMPORT):
        return None
    reference = name.removeprefix(IMPORT)
    if origin(reference.partition(":")[0]) == "standard library":
        raise UserError(f"{name}: is in Python's standard library; must be a class of your own")
    try:
        found = resolve(reference)
        if not (isinstance(found, type) and callable(getattr(found, method, None))):
            raise UserError(f"{name}: must be a class with the method {method}")
        return found(*options)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UserError(f"{name}: {error}; must be {IMPORT}package.module:Class") from None


def prefixed_signature(part: str, plugin: Any, name: str) -> dict[str, str]:
    """The signature of a plugin, each key after its part."""
    own = plugin.signature() if hasattr(plugin, "signature") else {"plugin": name}
    return {f"{part} {key}": str(value) for key, value in own.items()}


def distinct_results(pairs: Sequence[tuple[str, str]], query: Any) -> dict[tuple[str, str], Any]:
    """The answer to each distinct pair."""
    distinct = list(dict.fromkeys(pairs))
    found = list(query(distinct)) if distinct else []
    if len(found) != len(distinct):
        raise UserError(f"a plugin of QuestEval returned {len(found)} results for {len(distinct)} queries")
    return dict(zip(distinct, found, strict=True))
