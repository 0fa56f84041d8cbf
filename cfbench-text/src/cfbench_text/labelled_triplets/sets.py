"""The labelled sets of the package, and where their texts are read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.data_files import DataAccess, DataFiles, Form, Source
from cfbench_core.errors import UserError, did_you_mean
from cfbench_text.datasets.amazon_2014 import MUSICAL_INSTRUMENTS
from cfbench_text.labelled_triplets.labels import LabelledText, read_labels

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

FOLDER = Path(__file__).parent
TOY_REVIEWS = 100
"""How many of the synthetic reviews are a labelled set."""
_XREC = ("amazon", "google")
XREC_OUTPUTS = DataFiles(
    id="xrec-outputs",
    suite="text",
    forms=(
        Form(files=tuple(f"xrec_outputs/{name}_test_outputs.jsonl.gz" for name in _XREC)),
        Form(files=tuple(f"{name}_test_outputs.jsonl" for name in _XREC)),
    ),
    licence="Apache-2.0",
    page="https://github.com/HKUDS/XRec",
    how="Write the predictions of XRec's test sets as JSON lines with 'prediction', in their order",
)
FILES: Mapping[str, DataFiles] = {"musical-instruments": MUSICAL_INSTRUMENTS, "xrec-outputs": XREC_OUTPUTS}
"""What the texts of a set are read from."""


@dataclass(frozen=True)
class LabelledSet:
    """Labelled texts of one domain."""

    name: str
    domain: Domain
    texts: list[LabelledText]


def names() -> tuple[str, ...]:
    """The sets of the package."""
    return ("toy-reviews", *sorted(path.stem for path in FOLDER.glob("*.jsonl")))


def load_set(name: str, access: DataAccess, domain: str | None = None) -> LabelledSet:
    """A set of the package by its name, or a file of labelled texts by its path.

    Args:
        domain: the topics of the labels; None: those of the set, or ``general`` for a file.

    Raises:
        UserError: if there is no such set, its texts are not on this machine, or a line is not as it should be.
    """
    from cfbench_text.domains import load_domain

    if name == "toy-reviews":
        return LabelledSet(name, load_domain(domain or name), _toy_reviews())
    if name in names():
        texts = _texts(name, access)
        topics = "musical-instruments" if name == "musical-instruments" else "general"
        return _checked(
            LabelledSet(name, load_domain(domain or topics), read_labels(FOLDER / f"{name}.jsonl", texts))
        )
    path = Path(name).expanduser()
    if not path.is_file():
        raise UserError(
            f"{name}: no set of labelled triplets and no such file.{did_you_mean(name, list(names()))}"
            f" There are {', '.join(names())}"
        )
    return _checked(
        LabelledSet(path.name.partition(".")[0], load_domain(domain or "general"), read_labels(path))
    )


def _checked(found: LabelledSet) -> LabelledSet:
    for one in found.texts:
        for triplet in (triplet for labels in one.passes.values() for triplet in labels):
            if triplet.topic not in found.domain.topics:
                raise UserError(
                    f"{found.name}: {one.id!r} has the topic {triplet.topic!r}; {found.domain.title!r} has"
                    f" {', '.join(found.domain.topics)}"
                )
    return found


def _toy_reviews() -> list[LabelledText]:
    """Synthetic reviews with the statements that the grammar made them from."""
    from cfbench_text.datasets.toy_reviews import Config, ToyReviews

    reviews = ToyReviews(Config()).load()
    rows = zip(reviews.texts, reviews.known or (), strict=True)
    return [LabelledText(f"toy:{row}", str(text), {1: known}) for row, (text, known) in enumerate(rows)][
        :TOY_REVIEWS
    ]


def _texts(name: str, access: DataAccess) -> dict[str, str]:
    """The texts of a set by id, from the user's copy of the data."""
    if name == "musical-instruments":
        rows = _rows(access.find(MUSICAL_INSTRUMENTS))
        return {
            f"{row.get('reviewerID')}:{row.get('asin')}": str(row.get("reviewText", "")) for _, row in rows
        }
    found: dict[str, str] = {}
    source = access.find(XREC_OUTPUTS)
    for which in _XREC:
        paths = {key: path for key, path in source.paths.items() if which in path.name}
        part = Source(paths, source.where)
        found |= {f"{which}:{number}": str(row.get("prediction", "")) for number, row in _rows(part)}
    return found


def _rows(source: Source) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of JSON lines, numbered from 0."""
    from cfbench_text.reading import json_lines, opened

    for path in source.paths.values():
        with opened(path) as file:
            for number, row in json_lines(path, file):
                yield number - 1, row
