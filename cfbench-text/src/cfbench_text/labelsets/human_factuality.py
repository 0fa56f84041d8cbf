"""``qags-cnn`` and ``summeval``: summaries of news whose consistency with the article people judged.

- QAGS-CNN (Wang et al. 2020): 235 summaries; ``fact`` is the share of sentences that a majority of three people found
  consistent with the article.
- SummEval (Fabbri et al. 2021): 1,600 summaries of 16 systems for 100 articles; means of three experts' ratings from 1 to 5:
  ``consistency`` with the article, and ``coherence``, ``fluency``, ``relevance``.

Files have a JSON object on each line: ``doc_id``, ``source`` (the article), ``summary``, ``reference`` and ``scores``,
a mapping from the name of a rating to its value. In QAGS-CNN ``reference`` is the article again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_text.meta_evaluation.labelled import LabelledTexts

SPECS = (
    ComponentSpec(
        id="text/labelset/qags-cnn",
        summary="235 summaries of news; share of sentences that people found consistent with the article",
        target=f"{__name__}:QAGSCNN",
        config=f"{__name__}:QAGSConfig",
        papers=("wang2020qags",),
        details={"files": f"{__name__}:QAGS_CNN", "licence": "Apache-2.0", "embedded": False},
    ),
    ComponentSpec(
        id="text/labelset/summeval",
        summary="1,600 summaries of news; experts' ratings of consistency with the article",
        target=f"{__name__}:SummEval",
        config=f"{__name__}:SummEvalConfig",
        papers=("fabbri2021summeval",),
        details={"files": f"{__name__}:SUMMEVAL", "licence": "Apache-2.0", "embedded": False},
    ),
)


def _files(id: str, name: str, page: str) -> DataFiles:
    names = (f"human_factuality/{name}", name)
    forms = tuple(Form(files=(f"{one}{ending}",)) for one in names for ending in (".gz", ""))
    how = f"Make {name} of the data of {page}, as the documentation of the labelset describes"
    return DataFiles(id=id, suite="text", forms=forms, licence="Apache-2.0", page=page, how=how)


QAGS_CNN = _files("qags-cnn", "QAGS_CNN.jsonl", "https://github.com/W4ngatang/qags")
SUMMEVAL = _files("summeval", "SummEval.jsonl", "https://github.com/Yale-LILY/SummEval")

Against = Literal["source", "reference"]


@dataclass(frozen=True, kw_only=True)
class QAGSConfig:
    path: Annotated[str | None, InputFile(), Help("the file; none: it is looked for in the data folders")] = (
        None
    )
    rating: Annotated[Literal["fact"], Help("the rating")] = "fact"
    against: Annotated[Literal["source"], Help("what a summary is compared with: the article")] = "source"


@dataclass(frozen=True, kw_only=True)
class SummEvalConfig:
    path: Annotated[str | None, InputFile(), Help("the file; none: it is looked for in the data folders")] = (
        None
    )
    rating: Annotated[Literal["consistency", "coherence", "fluency", "relevance"], Help("the rating")] = (
        "consistency"
    )
    against: Annotated[
        Against, Help("what a summary is compared with: the article, or another summary by a person")
    ] = "source"


class _Summaries:
    name: ClassVar[str]
    files: ClassVar[DataFiles]
    best: ClassVar[float]

    def __init__(self, config: QAGSConfig | SummEvalConfig) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        from cfbench_text.meta_evaluation.labelled import located

        return located(self.files, self.config.path, access)

    def load(self, source: Source | Mapping[str, Any]) -> LabelledTexts:
        from cfbench_text.meta_evaluation.labelled import labelled
        from cfbench_text.reading import json_lines, opened

        path = next(iter(Source.of(source).paths.values()))
        rating, against = self.config.rating, self.config.against
        rows, documents = [], []
        with opened(path) as file:
            for number, row in json_lines(path, file):
                where = f"{path}:{number}"
                try:
                    rows.append((str(row["summary"]), str(row[against]), float(row["scores"][rating])))
                    documents.append(str(row["doc_id"]))
                except (KeyError, TypeError, ValueError) as error:
                    raise UserError(
                        f"{where}: needs doc_id, summary, {against} and scores.{rating}, a number"
                        f" ({type(error).__name__}: {error})"
                    ) from None
        return labelled(self.name, rating, rows, documents, self.best)


class QAGSCNN(_Summaries):
    name, files, best = "qags-cnn", QAGS_CNN, 1.0


class SummEval(_Summaries):
    name, files, best = "summeval", SUMMEVAL, 5.0
