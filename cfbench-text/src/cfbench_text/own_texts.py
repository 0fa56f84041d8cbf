"""The configuration for a file of texts that come with their references: ``cfbench evaluate --suite text FILE``.

The file is read twice, as the reviews that are the references, and as the texts to score.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfbench_core.errors import UserError
from cfbench_text.config_templates import MEASURED_CONTROLS

REFERENCES = ("reference", "evidence", "ground_truth", "review", "reviewText")
"""Usual names of the column of references; the first that is there counts."""
FORMS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
METRICS = ("hallucination", "st2exp", "bleu", "rouge")


def document_for(path: Path) -> Mapping[str, Any]:
    """A configuration that scores the texts of a file against the references in it, without topics or a model.

    Raises:
        UserError: if the file cannot be read, or has no column of references.
    """
    column = _reference_column(path)
    data = {
        "name": "reviews",
        "label": "references",
        "path": str(path.resolve()),
        "text": column,
        "domain": "general",
        "explained": True,
    }
    return {
        "suite": "text",
        "seed": 0,
        "data": [data],
        "extractor": "atomic",
        "generators": list(MEASURED_CONTROLS),
        "judges": ["overlap"],
        "protocol": {"reference": "written"},
        "metrics": list(METRICS),
    }


def _reference_column(path: Path) -> str:
    from cfbench_text.external_texts import rows_of

    form = Path(path.name.lower().removesuffix(".gz")).suffix
    if form not in FORMS:
        raise UserError(f"{path}: texts with references must be JSON lines or CSV, got {form or 'no ending'}")
    _, row = next(iter(rows_of(path)), (0, None))
    if row is None:
        raise UserError(f"{path}: holds no texts")
    found = next((name for name in REFERENCES if name in row), None)
    if found is None:
        raise UserError(
            f"{path}: has no column 'reference' (or evidence) that texts can be compared with; it has "
            f"{', '.join(map(str, row))}. For references in another file, write a configuration: "
            "cfbench evaluate study.yaml --explanations FILE"
        )
    return found
