"""The cells of one data set, as data: reviews -> statements -> generator -> texts -> statements -> scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Cell, Column
from cfbench_core.specs import lacking
from cfbench_core.stages import UNITS, Stage
from cfbench_text.config import TextConfig

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_text.contracts import Metric

STAGES = "cfbench_text.stages"
VERSION = "2"  # of the stages; raise it when what they compute changes
READING = "3"  # of the stage that reads what was written
SCORES = "4"  # the same of the last stage, which others do not wait for
EXTERNAL = "text/generator/external"
"""The generator of external texts."""

STATEMENTS, READ, TEXTS = "statements", "statements of texts", "texts"
"""Roles of inputs: the statements of the reviews, those of the texts, and external texts."""


@dataclass(frozen=True)
class Measure:
    """A metric, with the judge that answers for it where it needs one."""

    metric: ConfiguredComponent
    judge: ConfiguredComponent | None = None

    def columns(self) -> list[Column]:
        """Those of the metric, with the name of the judge appended."""
        metric: Metric = self.metric.create()
        found = metric.columns({})
        return [replace(column, name=self.name(column.name)) for column in found]

    def name(self, column: str) -> str:
        return column if self.judge is None else f"{column} ({self.judge.label})"

    def parameters(self) -> dict[str, Any]:
        judge = None if self.judge is None else self.judge.parameters()
        label = None if self.judge is None else self.judge.label
        verdicts = sorted(self.metric.spec.needs.get("judge", {}).get("verdict", ()))
        return {"metric": self.metric.parameters(), "judge": judge, "label": label, "verdicts": verdicts}


def measures(metrics: Sequence[ConfiguredComponent], judges: Sequence[ConfiguredComponent]) -> list[Measure]:
    """Every metric, once for each judge that gives what it needs."""
    found = []
    for metric in metrics:
        needed = metric.spec.needs.get("judge")
        if needed is None:
            found.append(Measure(metric))
        else:
            found += [Measure(metric, judge) for judge in judges if not lacking(needed, judge.spec.provides)]
    return found


class Grid:
    """The cells of one data set."""

    def __init__(
        self,
        config: TextConfig,
        dataset: ConfiguredComponent,
        chosen: Sequence[Measure],
        access: DataAccess | None,
        explanations: Path | None,
    ) -> None:
        self.config = config
        self.dataset = dataset
        self.measures = chosen
        self.explanations = explanations
        protocol = config.protocol
        data = Stage(
            kind="data",
            label=dataset.label,
            target=f"{STAGES}:read_data",
            parameters={
                "version": VERSION,
                "dataset": dataset.parameters(),
                "split": protocol.split,
                "train": protocol.train,
                "validation": protocol.validation,
                "min_reviews_per_user": protocol.min_reviews_per_user,
                **_source_of(dataset, access),
            },
        )
        statements = Stage(
            kind="statements",
            label=f"statements of {dataset.label}",
            target=f"{STAGES}:extract_statements",
            parameters={"version": VERSION, "extractor": config.extractor.parameters()},
            inputs={"data": data},
        )
        units = Stage(
            kind="units",
            label=f"rows of {dataset.label}",
            target=f"{STAGES}:choose_units",
            parameters={"version": VERSION, "rows": protocol.rows},
            inputs={"data": data},
            seed=config.seed if protocol.rows is not None else 0,
        )
        self.known = {"data": data, STATEMENTS: statements, UNITS: units}

    def cell(self, generator: ConfiguredComponent) -> Cell:
        labels: Mapping[str, str | int] = {"dataset": self.dataset.label, "model": generator.label}
        external = generator.spec.id == EXTERNAL
        model = {} if external else {"model": self.fitted(generator)}
        written = self.imported(labels) if external else self.explained(generator, model)
        read = Stage(
            kind="statements of texts",
            label=f"statements of {generator.label} on {self.dataset.label}",
            target=f"{STAGES}:read_texts",
            parameters={
                "version": READING,
                "extractor": self.config.extractor.parameters(),
                "read": generator.spec.details.get("read", self.config.protocol.read),
            },
            inputs={"data": self.known["data"], UNITS: self.known[UNITS], "explanations": written},
            chunked=True,
        )
        scores = Stage(
            kind="scores",
            label=f"scores of {generator.label} on {self.dataset.label}",
            target=f"{STAGES}:score",
            parameters={
                "version": SCORES,
                "measures": [measure.parameters() for measure in self.measures],
                "empty": self.config.protocol.empty,
                **self._compared(),
            },
            inputs={**self.known, "explanations": written, READ: read},
            chunked=True,
        )
        columns = [column for measure in self.measures for column in measure.columns()]
        stages = {**self.known, **model, "explanations": written, READ: read, "scores": scores}
        return Cell(labels, columns, stages, role=generator.spec.role)

    def _compared(self) -> dict[str, str]:
        """What texts are compared with, where it is not as usual: so that older artifacts stay what they are."""
        reference = self.config.protocol.reference
        return {} if reference == "paragraph" else {"reference": reference}

    def fitted(self, generator: ConfiguredComponent) -> Stage:
        return Stage(
            kind="model",
            label=f"{generator.label} on {self.dataset.label}",
            target=f"{STAGES}:fit_model",
            parameters={
                "version": VERSION,
                "generator": generator.parameters(),
                "threads": self.config.threads,
            },
            inputs={name: self.known[name] for name in ("data", STATEMENTS)},
            seed=self.config.seed,
        )

    def explained(self, generator: ConfiguredComponent, model: Mapping[str, Stage]) -> Stage:
        sees = "references" in generator.spec.provides.get("sees", frozenset())
        return Stage(
            kind="explanations",
            label=f"{generator.label} on {self.dataset.label}",
            target=f"{STAGES}:explain",
            parameters={
                "version": VERSION,
                "sees references": sees,
                "threads": self.config.threads,
                **self._compared(),
            },
            inputs={**self.known, **model},
            seed=self.config.seed,
            chunked=True,
        )

    def imported(self, labels: Mapping[str, str | int]) -> Stage:
        """External explanations: the rows of the file with the labels of this cell."""
        assert self.explanations is not None
        texts = Stage(
            kind="texts",
            label=f"texts of {labels['model']} on {self.dataset.label}",
            target=f"{STAGES}:read_file",
            parameters={
                "version": VERSION,
                "file": str(self.explanations.resolve()),
                "digest": file_digest(self.explanations),
                "labels": dict(labels),
            },
            inputs={UNITS: self.known[UNITS]},
        )
        return Stage(
            kind="explanations",
            label=f"{labels['model']} on {self.dataset.label}",
            target=f"{STAGES}:import_explanations",
            parameters={"version": VERSION, **self._compared()},
            inputs={**self.known, TEXTS: texts},
            chunked=True,
        )


def _source_of(dataset: ConfiguredComponent, access: DataAccess | None) -> Mapping[str, Any]:
    """The files that a data set was found in, as a parameter; nothing for one that needs no files."""
    from cfbench_core.data_files import DataAccess

    component = dataset.create()
    if not hasattr(component, "find"):
        return {}
    return {"source": component.find(access or DataAccess()).parameters()}
