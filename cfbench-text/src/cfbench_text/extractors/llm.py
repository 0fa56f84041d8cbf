"""``llm``: a chat model extracts statements, as in Statement factuality (section III-A), with a different prompt.

The model returns a JSON array of atomic, factual, explanatory statements in the present tense, each with exactly one
topic of the domain and a sentiment; decoding is greedy. ``response_parsing.py`` parses and validates the response. A
long text is split at sentence boundaries into pieces that are queried one by one, so no part is lost (the paper's code
truncates reviews at 128 words); a sentence longer than a piece is split between words. The statements of a text are
those of its pieces, without duplicates.

The prompt shows the form of a response without a worked example, because small models repeat the statements of an
example as if they were in the review (SmolLM2-135M did so for eight of eight reviews), which cannot be detected. If a
model repeats the placeholders instead, they fail the validation because they are not topics.

A text is "failed" if a piece has no usable response, and "cut" if a piece has a truncated one. Responses are
cached by the digest of endpoint, model, prompt and text, whatever they hold; requests without a response are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_text.extractors.base import Extraction
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import ChatSource, Completion, Prompt
from cfbench_text.response_parsing import Status, read_answer
from cfbench_text.sentence_segmentation import sentences
from cfbench_text.triplets import Triplet, canonical

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

SPEC = ComponentSpec(
    id="text/extractor/llm",
    summary="A chat model lists atomic statements with topic and sentiment",
    target=f"{__name__}:LLMExtractor",
    config=f"{__name__}:Config",
    papers=("statementfactuality",),
    version="2",
    details={"default": False, "pretrained": True},
)


NO_ANSWER = "no response"

SYSTEM = """\
You read reviews of {domain} and list what they say about the product. Answer with a JSON array and nothing else. \
Each member is an object with the keys "statement", "topic" and "sentiment".

Rules:
- A statement is atomic: it says one thing about one property. Divide a sentence that says two things.
- It is factual and explanatory: it tells why somebody would like or dislike the product. Leave out opinions \
without content ("I love it", "great product"), stories, and what is about the seller.
- It is a short clause in the present tense that begins in lower case and can stand alone: no "I", no "it". Say \
nothing that the review does not say.
- "topic" is exactly one of these names:
{topics}
- "sentiment" is the reviewer's: "positive", "negative" or "neutral".
- When there is nothing to list, answer [].

The form of the answer:
[{{"statement": "<what the review says>", "topic": "<one of the names>", "sentiment": "<one of the three>"}}, ...]"""
USER = "Review:\n{text}\n\nJSON array:"


@dataclass(frozen=True, kw_only=True)
class Config(ChatSource):
    words: Annotated[int, Range(minimum=10), Help("a longer text is split into pieces")] = 400
    tokens: Annotated[int, Range(minimum=1), Help("maximum length of a response")] = 1024


class LLMExtractor:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._chat = Chat(config)

    def begin(self, report: Callable[[int, int], None]) -> None:
        """Begins a task: ``report`` is called with the number of prompts of a batch that are done, and of all."""
        self._chat.begin(report)

    def usage(self) -> Mapping[str, float]:
        """Responses of the task so far, their tokens and their cost."""
        return self._chat.usage()

    def extract(self, texts: Sequence[str], domain: Domain) -> list[Extraction]:
        system = system_prompt(domain)
        parts = [pieces(text, self.config.words) for text in texts]
        distinct = list(dict.fromkeys(piece for of_text in parts for piece in of_text))
        prompts = [Prompt(system, USER.format(text=piece)) for piece in distinct]
        completions = dict(zip(distinct, self._chat.write(prompts, self.config.tokens), strict=True))
        return [_joined([completions[piece] for piece in of_text], domain) for of_text in parts]

    def signature(self) -> Mapping[str, str]:
        from cfbench_core.hashing import digest

        return {"extractor": "llm", "prompt": digest([SYSTEM, USER])[:16], **self._chat.signature()}


def system_prompt(domain: Domain) -> str:
    """The rules, with the topics of the domain and what they mean."""
    lines = (f"  {topic.name}: {topic.description or topic.title}" for topic in domain.topics.values())
    return SYSTEM.format(domain=domain.title, topics="\n".join(lines))


def pieces(text: str, words: int) -> list[str]:
    """The text in pieces of at most so many words; none for a blank text. A piece ends where a sentence does."""
    if not text.strip():
        return []
    if len(text.split()) <= words:
        return [text]
    found: list[list[str]] = [[]]
    for sentence in sentences(text):
        rest = sentence.split()
        if len(found[-1]) + len(rest) > words and found[-1]:
            found.append([])
        while len(rest) > words:
            found[-1], rest = rest[:words], rest[words:]
            found.append([])
        found[-1] += rest
    return [" ".join(piece) for piece in found if piece]


def _joined(completions: Sequence[Completion], domain: Domain) -> Extraction:
    counts: Counter[str] = Counter()
    triplets: list[Triplet] = []
    ended: list[str] = []
    for one in completions:
        if one.failure:
            counts[f"{NO_ANSWER}: {one.failure}"] += 1
            ended.append("failed")
            continue
        reading = read_answer(one.text, domain.topics)
        counts.update(reading.left_out)
        triplets += reading.triplets
        ended.append(reading.status)
    status = _status(ended)
    return Extraction(() if status == "failed" else canonical(triplets), status, dict(counts))


def _status(ended: Sequence[str]) -> Status:
    if not ended or set(ended) == {"empty"}:
        return "empty"
    if "failed" in ended:
        return "failed"
    return "cut" if "cut" in ended else "ok"
