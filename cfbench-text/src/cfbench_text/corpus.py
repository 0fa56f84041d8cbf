"""Reviews with their statements and their part, as generators and metrics see them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cfbench_core.errors import UserError
from cfbench_text.domains import Domain, load_domain
from cfbench_text.reviews import FloatArray, IntArray, Reviews, TextArray
from cfbench_text.splits import PARTS
from cfbench_text.triplets import Triplet, render

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Asked:
    """B rows to explain: what a generator may know of them.

    Attributes:
        units: their names, by which references are joined.
        users, items: (B,) identifiers.
        times: (B,) seconds since 1970.
        places: (B,) places among all rows to explain, for controls that look at other rows.
    """

    units: tuple[str, ...]
    users: TextArray
    items: TextArray
    times: IntArray
    places: IntArray

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True)
class Rows:
    """N reviews of one part, in the order of the file.

    Attributes:
        users, items, ratings, times, reviews: (N,) as in the data set.
        triplets: the statements of each review.
        paragraphs: (N,) these as a paragraph, the text that generators learn to write; empty without statements.
    """

    units: tuple[str, ...]
    users: TextArray
    items: TextArray
    ratings: FloatArray
    times: IntArray
    reviews: TextArray
    triplets: Sequence[tuple[Triplet, ...]]
    paragraphs: Sequence[str]

    def __len__(self) -> int:
        return len(self.units)


class Corpus:
    """All reviews that the split kept, with their statements."""

    def __init__(self, reviews: pd.DataFrame, statements: pd.DataFrame, domain: Domain) -> None:
        self.domain = domain
        self._reviews = reviews.set_index("row", drop=False)
        found: dict[int, list[Triplet]] = {}
        columns = (statements[name].tolist() for name in ("row", "statement", "topic", "sentiment"))
        for row, statement, topic, sentiment in zip(*columns, strict=True):
            found.setdefault(row, []).append(Triplet(statement, topic, sentiment))
        self._triplets = {row: tuple(of_row) for row, of_row in found.items()}

    @staticmethod
    def load(reviews: Path, statements: Path, domain: str) -> Corpus:
        """From the artifacts of the stages that read the reviews and extracted their statements."""
        import pandas as pd

        return Corpus(
            pd.read_parquet(reviews / "reviews.parquet"),
            pd.read_parquet(statements / "statements.parquet"),
            load_domain(domain),
        )

    @functools.cached_property
    def training_statements(self) -> list[str]:
        """The statements of the training reviews, in the order of the file."""
        return [triplet.statement for of_row in self.part("train").triplets for triplet in of_row]

    def part(self, name: str) -> Rows:
        """The rows of "train", "validation" or "test"."""
        return self.rows(self._reviews["row"][self._reviews["part"] == PARTS.index(name)].tolist())

    def rows(self, numbers: Sequence[int]) -> Rows:
        """Rows by their number in the data set, in that order."""
        table = self._reviews.loc[list(numbers)]
        triplets = [self._triplets.get(row, ()) for row in numbers]
        return Rows(
            tuple(table["unit"]),
            table["user"].to_numpy(object),
            table["item"].to_numpy(object),
            table["rating"].to_numpy(np.float64),
            table["time"].to_numpy(np.int64),
            table["text"].to_numpy(object),
            triplets,
            [render(of_row) for of_row in triplets],
        )


def unit_names(reviews: Reviews, rows: Sequence[int]) -> list[str]:
    """ "user|item|time": how a row is called in every table.

    Raises:
        UserError: if identifiers with a bar in them give two rows one name.
    """
    names = [f"{reviews.users[row]}|{reviews.items[row]}|{reviews.times[row]}" for row in rows]
    if len(set(names)) < len(names):
        raise UserError("two reviews are called alike: identifiers of users and items must not hold '|'")
    return names
