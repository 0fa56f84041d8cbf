"""What a study will send to endpoints: requests, tokens and price, before it is run.

Requests of the extractor are counted: one for each piece of each distinct review in the split, and of each generated text
that no template parses. What is not known before a run is assumed, and said: how long generated texts are, how many
statements a text has, and that four characters are a token. The number of distinct requests can be smaller, because
equal texts are sent once and responses are cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.config.component import create
from cfbench_core.errors import UserError
from cfbench_core.plan import Plan
from cfbench_core.stages import Stage
from cfbench_text.config import TextConfig
from cfbench_text.models.chat_types import ChatSource

CHARACTERS_PER_TOKEN = 4
STATEMENTS_PER_TEXT = 4
"""Of a review or a generated text."""
TOKENS_PER_STATEMENT = 30
"""Of an answer that lists statements as JSON."""
CHARACTERS_PER_TEXT = 200
"""Of a generated text."""


@dataclass(frozen=True)
class Queries:
    """What is sent for one purpose. Tokens are those of all requests together."""

    purpose: str
    requests: int
    input_tokens: int
    output_tokens: int

    def cost(self, source: ChatSource) -> float:
        """In the currency of the configured prices."""
        return (source.input_price * self.input_tokens + source.output_price * self.output_tokens) / 1e6


def estimate(config: TextConfig, plan: Plan) -> list[str]:
    """Lines that describe what the study sends to endpoints; none if it queries none.

    Reads the reviews of the data sets, which a plan does not do otherwise.
    """
    extractor, judges = _remote(config.extractor), [one for one in config.judges if _remote(one)]
    if not extractor and not judges:
        return []
    lines, total, priced = list[str](), 0.0, False
    sizes = []
    for stage in plan.stages():
        if stage.kind == "data":
            try:
                sizes.append(_Sizes.of(stage, config))
            except (UserError, OSError):  # a plan downloads nothing
                lines.append(f"{stage.label}: not estimated, because its files are not here")
    generators = len({cell.labels["model"] for cell in plan.to_run})
    chosen: list[tuple[ConfiguredComponent, list[Queries]]] = []
    if extractor:
        chosen.append(
            (config.extractor, [one for size in sizes for one in _extraction(config, size, generators)])
        )
    chosen += [(judge, [_judgement(judge, size, generators) for size in sizes]) for judge in judges]
    for component, queries in chosen:
        source = component.options
        for one in queries:
            price = one.cost(source)
            total, priced = total + price, priced or bool(source.input_price or source.output_price)
            shown = f", {price:.2f}" if source.input_price or source.output_price else ""
            lines.append(
                f"{one.purpose} by {component.label} ({source.model}): about {one.requests:,} requests,"
                f" {one.input_tokens:,} + {one.output_tokens:,} tokens{shown}"
            )
    end = (
        f"in all about {total:.2f} in the currency of input_price and output_price"
        if priced
        else "no price: set input_price and output_price of the component (per million tokens)"
    )
    return [
        *lines,
        f"{end}. Assumed: {STATEMENTS_PER_TEXT} statements a text, {CHARACTERS_PER_TOKEN} characters a token,"
        " nothing cached",
    ]


def _remote(component: ConfiguredComponent) -> bool:
    return isinstance(component.options, ChatSource) and component.options.endpoint is not None


@dataclass(frozen=True)
class _Sizes:
    """Of a data set. reviews: the distinct texts in the split. rows: test rows that are explained."""

    name: str
    domain: str
    reviews: Sequence[str]
    rows: int

    @classmethod
    def of(cls, stage: Stage, config: TextConfig) -> _Sizes:
        from cfbench_text.splits import OUT, PARTS, divide

        parameters: Mapping[str, Any] = stage.parameters
        if "source" in parameters and not parameters["source"]["paths"]:
            raise UserError(f"{stage.label}: its files are not here")
        dataset = create(parameters["dataset"])
        found = [parameters["source"]] if "source" in parameters else []
        reviews, given = dataset.load(*found), config.protocol
        parts = divide(reviews, given.split, given.train, given.validation, given.min_reviews_per_user).parts
        texts = list(dict.fromkeys(str(text) for text in reviews.texts[parts != OUT] if str(text).strip()))
        rows = int((parts == PARTS.index("test")).sum())
        return cls(stage.label, reviews.domain, texts, min(rows, given.rows or rows))


def _extraction(config: TextConfig, size: _Sizes, generators: int) -> list[Queries]:
    """Of reviews, and of generated texts unless the template parses them."""
    from cfbench_text.domains import load_domain
    from cfbench_text.extractors.llm import USER, pieces, system_prompt

    source = config.extractor.options
    fixed = len(system_prompt(load_domain(size.domain))) + len(USER)
    sent = [piece for text in size.reviews for piece in pieces(text, getattr(source, "words", 400))]
    answer = min(
        STATEMENTS_PER_TEXT * TOKENS_PER_STATEMENT, source.tokens if hasattr(source, "tokens") else 10**9
    )
    answer += source.reasoning_tokens
    found = [
        Queries(
            f"statements of {size.name}",
            len(sent),
            (fixed * len(sent) + sum(map(len, sent))) // CHARACTERS_PER_TOKEN,
            answer * len(sent),
        )
    ]
    if config.protocol.read == "extractor" or config.protocol.learn == "written":
        texts = size.rows * generators
        characters = (fixed + CHARACTERS_PER_TEXT) * texts
        found.append(
            Queries(
                f"statements of texts on {size.name}",
                texts,
                characters // CHARACTERS_PER_TOKEN,
                answer * texts,
            )
        )
    return found


def _judgement(judge: ConfiguredComponent, size: _Sizes, generators: int) -> Queries:
    """Each statement of a text against the review, and the converse."""
    from cfbench_text.judges.llm import SYSTEM, USER

    requests = 2 * STATEMENTS_PER_TEXT * size.rows * generators
    review = sum(map(len, size.reviews)) // max(1, len(size.reviews))
    characters = len(SYSTEM) + len(USER) + (review + CHARACTERS_PER_TEXT) // 2 + 60
    answer = 1 + judge.options.reasoning_tokens
    return Queries(
        f"verdicts on {size.name}",
        requests,
        requests * characters // CHARACTERS_PER_TOKEN,
        requests * answer,
    )
