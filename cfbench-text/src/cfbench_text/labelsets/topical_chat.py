"""``topical-chat``: responses of a dialogue about a fact, with ratings by people (USR, Mehri & Eskenazi 2020).

360 responses of six systems, two of which are people. ``uses_knowledge`` is the mean of three answers (0 or 1) to:
does the response use the fact? The text is the response, the evidence the fact. The other ratings (``natural``,
``engaging``, ...) are no evidence of factuality and show what a metric should not measure. Responses to one dialogue
belong together.

The file is a JSON list of objects with ``response``, ``fact``, ``dialog_history`` and the ratings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_text.meta_evaluation.labelled import LabelledTexts

SPEC = ComponentSpec(
    id="text/labelset/topical-chat",
    summary="360 responses of a dialogue; do they use the fact that was given?",
    target=f"{__name__}:TopicalChat",
    config=f"{__name__}:Config",
    papers=("mehri2020usr",),
    details={"files": f"{__name__}:FILES", "licence": "MIT", "embedded": False},
)

NAME = "topical_chat.json"
FILES = DataFiles(
    id="topical-chat",
    suite="text",
    forms=tuple(
        Form(files=(f"{name}{ending}",))
        for name in (f"human_factuality/{NAME}", NAME)
        for ending in (".gz", "")
    ),
    licence="MIT",
    page="http://shikib.com/usr",
    how=f"Make {NAME} of the data of http://shikib.com/usr, as the documentation of the labelset describes",
)

RIGHT = {"uses_knowledge": 2 / 3, "understandable": 1.0, "natural": 3.0, "maintains_context": 3.0}
RIGHT |= {"engaging": 3.0, "overall": 5.0}
"""From which mean rating on a response counts as right: two of three people for the fact, else the best."""


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str | None, InputFile(), Help("the file; none: it is looked for in the data folders")] = (
        None
    )
    rating: Annotated[
        Literal["uses_knowledge", "understandable", "natural", "maintains_context", "engaging", "overall"],
        Help("the rating"),
    ] = "uses_knowledge"


class TopicalChat:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        from cfbench_text.meta_evaluation.labelled import located

        return located(FILES, self.config.path, access)

    def load(self, source: Source | Mapping[str, Any]) -> LabelledTexts:
        from cfbench_text.meta_evaluation.labelled import labelled
        from cfbench_text.reading import opened

        path = next(iter(Source.of(source).paths.values()))
        rating = self.config.rating
        try:
            with opened(path) as file:
                responses = json.load(file)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}: is not JSON ({error})") from None
        if not isinstance(responses, list):
            raise UserError(f"{path}: must be a list of objects")
        rows, documents = [], []
        for number, row in enumerate(responses):
            try:
                # Ratings are stored with ten digits: 2/3 must not be below 2/3.
                rows.append((str(row["response"]), str(row["fact"]), round(float(row[rating]), 6)))
                documents.append((row["fact"], row["dialog_history"]))
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(
                    f"{path}: response {number}: needs response, fact, dialog_history and {rating}, a number"
                    f" ({type(error).__name__}: {error})"
                ) from None
        return labelled("topical-chat", rating, rows, documents, round(RIGHT[rating], 6))
