"""``sick``: pairs of sentences with entailment and relatedness (Marelli et al. 2014); 4,927 of them in the test part.

The evidence is sentence A, the text sentence B. ``entailment``: 1 if A entails B, else 0 (neutral or contradiction: B is not
supported). ``relatedness`` is the mean of ten ratings from 1 to 5; at least 4 counts as right. It says what a judge of
similarity measures, and is no evidence of factuality.

Files are those of the authors, tab-separated: pair_ID, sentence_A, sentence_B, relatedness_score, entailment_judgment. The
licence (CC BY-NC-SA) permits to measure with them; neither they nor weights made from them are distributed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_text.meta_evaluation.labelled import LabelledTexts

SPEC = ComponentSpec(
    id="text/labelset/sick",
    summary="4,927 pairs of sentences (test part): does one entail the other?",
    target=f"{__name__}:SICK",
    config=f"{__name__}:Config",
    papers=("marelli2014sick",),
    details={
        "files": f"{__name__}:FILES",
        "licence": "CC BY-NC-SA 3.0, no redistribution",
        "embedded": False,
    },
)

FILES = DataFiles(
    id="sick",
    suite="text",
    forms=tuple(
        Form(files=tuple(f"{folder}SICK_{part}.txt{ending}" for part in ("train", "trial", "test")))
        for folder in ("sick/", "")
        for ending in (".gz", "")
    ),
    licence="CC BY-NC-SA 3.0",
    page="https://zenodo.org/records/2787612",
)
RELATED = 4.0


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[
        str | None, InputFile(), Help("the file of the part; none: it is looked for in the data folders")
    ] = None
    part: Annotated[Literal["train", "trial", "test"], Help("which part")] = "test"
    rating: Annotated[Literal["entailment", "relatedness"], Help("the rating")] = "entailment"


class SICK:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        from cfbench_text.meta_evaluation.labelled import located

        return located(FILES, self.config.path, access)

    def load(self, source: Source | Mapping[str, Any]) -> LabelledTexts:
        import numpy as np

        from cfbench_text.meta_evaluation.labelled import labelled
        from cfbench_text.reading import opened

        paths = Source.of(source).paths
        wanted = f"SICK_{self.config.part}."
        path = next(path for name, path in paths.items() if name == "path" or wanted in name)
        rows, denied = [], []
        with opened(path) as file:
            for number, line in enumerate(file, start=1):
                fields = line.rstrip("\r\n").split("\t")
                if number == 1 or not line.strip():
                    continue
                rows.append(self._row(f"{path}:{number}", fields))
                denied.append(fields[-1] == "CONTRADICTION")
        threshold = 1.0 if self.config.rating == "entailment" else RELATED
        # Each sentence A stands in several pairs.
        found = labelled("sick", self.config.rating, rows, threshold=threshold)
        return replace(found, denied=np.array(denied, dtype=bool))

    def _row(self, where: str, fields: list[str]) -> tuple[str, str, float]:
        try:
            _, evidence, text, relatedness, judgment = fields
            if judgment not in ("ENTAILMENT", "NEUTRAL", "CONTRADICTION"):
                raise ValueError(f"entailment_judgment {judgment[:20]!r}")
            entailed = float(judgment == "ENTAILMENT")
            return text, evidence, entailed if self.config.rating == "entailment" else float(relatedness)
        except ValueError as error:
            raise UserError(
                f"{where}: needs pair_ID, sentence_A, sentence_B, relatedness_score, entailment_judgment ({error})"
            ) from None
