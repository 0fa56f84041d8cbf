"""``factcg``: does a text support a statement, by FactCG (Lei et al. 2025), a DeBERTa that was trained for that.

The published model FactCG-DeBERTa-v3-Large has two classes, the second is "supported". It reads a prompt with the text
and the statement. The prompt belongs to the authors' code and is not part of this package: ``prompt`` is a file with their
template (INSTRUCTION_TEMPLATE in factcg/utils.py of their repository, with its line breaks), in which ``{text_a}``
stands for the text and ``{text_b}`` for the statement. With another prompt the model is not FactCG.

As in the published code, a long text is split at sentences into chunks of 550 words and punctuation marks, whose
sentences are on lines of their own; the chunk with the highest probability counts; inputs are truncated at 2,048
tokens. Sentences and words are segmented by the suite, not by NLTK. The rest is as in ``minicheck.py``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cfbench_core.config import Help, InputFile
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_text.judges.minicheck import Config as MiniCheckConfig
from cfbench_text.judges.minicheck import MiniCheck, chunked
from cfbench_text.sentence_segmentation import sentences

SPEC = ComponentSpec(
    id="text/judge/factcg",
    summary="FactCG: a model that checks a statement against a text",
    target=f"{__name__}:FactCG",
    config=f"{__name__}:Config",
    provides={"verdict": {"support"}},
    papers=("lei2025factcg",),
    details={"default": False, "pretrained": True},
)

CHUNK = 550
TEXT, STATEMENT = "{text_a}", "{text_b}"
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, kw_only=True)
class Config(MiniCheckConfig):
    prompt: Annotated[str, InputFile(), Help("file with the authors' template, with {text_a} and {text_b}")]
    model: Annotated[str, Help("name, folder or package:NAME of the model")] = (
        "yaxili96/FactCG-DeBERTa-v3-Large"
    )


class FactCG(MiniCheck):
    name = "factcg"
    _seq2seq = False
    config: Config

    def __init__(self, config: Config) -> None:
        super().__init__(config)

    def signature(self) -> Mapping[str, str]:
        from cfbench_core.hashing import digest

        return {**super().signature(), "prompt": digest(self._prompt)[:16]}

    @functools.cached_property
    def _prompt(self) -> str:
        path = Path(self.config.prompt).expanduser()
        try:
            found = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read as the prompt of FactCG: {error}") from None
        if found.count(TEXT) != 1 or found.count(STATEMENT) != 1:
            raise UserError(f"{path}: the prompt of FactCG has {TEXT} and {STATEMENT} once each")
        return found

    def _input(self, text: str, claim: str) -> str:
        before, rest = self._prompt.split(TEXT)
        between, after = rest.split(STATEMENT)
        return f"{before}{text}{between}{claim}{after}"

    def _chunks(self, text: str) -> list[str]:
        size = self.config.chunk or CHUNK
        return list(chunked(sentences(text), size, lambda piece: len(_TOKEN.findall(piece)), "\n"))
