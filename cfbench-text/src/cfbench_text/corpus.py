"""Reviews with their statements and their part of the split, as generators and metrics receive them."""

from __future__ import annotations

import functools
import itertools
import operator
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cfbench_core.errors import UserError
from cfbench_text.domains import Domain
from cfbench_text.reviews import FloatArray, IntArray, Reviews, TextArray
from cfbench_text.row_store import GROUP, RowStore
from cfbench_text.splits import PARTS
from cfbench_text.triplets import Triplet, render

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ExplanationRequests:
    """B rows to explain, as a generator receives them.

    Attributes:
        units: their names, by which references are joined.
        users, items: (B,) identifiers.
        times: (B,) seconds since 1970.
        places: (B,) places among all rows to explain, for controls that use other rows.
    """

    units: tuple[str, ...]
    users: TextArray
    items: TextArray
    times: IntArray
    places: IntArray

    def __len__(self) -> int:
        return len(self.units)

    @staticmethod
    def of(units: pd.DataFrame) -> ExplanationRequests:
        """From rows of ``units.parquet``."""
        users, items = (units[name].to_numpy(object) for name in ("user", "item"))
        times, places = (units[name].to_numpy(np.int64) for name in ("time", "group"))
        return ExplanationRequests(tuple(units["unit"]), users, items, times, places)


@dataclass(frozen=True)
class Rows:
    """N reviews of one part, in the order of the file.

    Attributes:
        users, items, ratings, times, reviews: (N,) as in the data set.
        triplets: the statements of each review.
        paragraphs: (N,) these as a paragraph; empty without statements.
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

    @property
    def targets(self) -> Sequence[str]:
        """(N,) the texts that generators learn to write: the paragraphs, or with ``learn: written`` the reviews."""
        return self.paragraphs

    def references(self, written: bool = False) -> Sequence[str]:
        """The reference texts: paragraphs of the true statements, or the reviews as written."""
        return self.reviews.tolist() if written else self.paragraphs


class Corpus:
    """All reviews of the split with their statements, read lazily from their files."""

    def __init__(
        self, reviews: RowStore, statements: RowStore, domain: Domain, learn_written: bool = False
    ) -> None:
        self.domain, self._learn_written = domain, learn_written
        self._reviews, self._statements = reviews, statements

    @staticmethod
    def of(reviews: pd.DataFrame, statements: pd.DataFrame, domain: Domain) -> Corpus:
        """From tables, in the order of ``row``."""
        files = [RowStore(table.to_parquet(None, index=False)) for table in (reviews, statements)]
        return Corpus(files[0], files[1], domain)

    @staticmethod
    def load(reviews: Path, statements: Path, domain: Domain, learn_written: bool = False) -> Corpus:
        """From the artifacts of the stages that read the reviews and extracted their statements."""
        files = RowStore(reviews / "reviews.parquet"), RowStore(statements / "statements.parquet")
        return Corpus(files[0], files[1], domain, learn_written)

    @functools.cached_property
    def training_statements(self) -> Collection[str]:
        """The statements of the training reviews, in the order of the file; of all reviews if there are no training rows."""
        rows = self._numbers("train")
        return _Statements(self._statements, rows if len(rows) else self._reviews.column("row"))

    def part(self, name: str) -> Rows:
        """The rows of "train", "validation" or "test". Each column is read at its first use."""
        return _LazyRows(self._reviews, self._statements, self._numbers(name), self._learn_written)

    def rows(self, numbers: Sequence[int]) -> Rows:
        """Rows by their number in the data set, in that order; columns as above."""
        return _LazyRows(
            self._reviews, self._statements, np.asarray(numbers, dtype=np.int64), self._learn_written
        )

    def spooled_references(self, numbers: Sequence[int], written: bool = False) -> Sequence[str]:
        """The references of many rows, in a temporary file that is read on access."""
        return _Texts(
            self.rows(numbers[start : start + GROUP]).references(written)
            for start in range(0, len(numbers), GROUP)
        )

    def _numbers(self, part: str) -> IntArray:
        chosen = self._reviews.column("part") == PARTS.index(part)
        return np.asarray(self._reviews.column("row")[chosen], dtype=np.int64)


class _LazyRows(Rows):
    """Rows whose columns are read at their first use and then cached."""

    def __init__(
        self, reviews: RowStore, statements: RowStore, numbers: IntArray, learn_written: bool
    ) -> None:
        vars(self).update(
            _reviews=reviews, _statements=statements, _numbers=numbers, _learn_written=learn_written
        )

    _reviews: RowStore
    _statements: RowStore
    _numbers: IntArray
    _learn_written: bool

    def __len__(self) -> int:
        return len(self._numbers)

    @functools.cached_property
    def units(self) -> tuple[str, ...]:
        return tuple(self._column("unit"))

    @functools.cached_property
    def users(self) -> TextArray:
        return self._column("user")

    @functools.cached_property
    def items(self) -> TextArray:
        return self._column("item")

    @functools.cached_property
    def ratings(self) -> FloatArray:
        return self._column("rating")

    @functools.cached_property
    def times(self) -> IntArray:
        return self._column("time")

    @functools.cached_property
    def reviews(self) -> TextArray:
        return self._column("text")

    @functools.cached_property
    def triplets(self) -> list[tuple[Triplet, ...]]:
        of_row: dict[int, list[Triplet]] = {number: [] for number in self._numbers.tolist()}
        for number, triplet in self._statements.triplets(np.unique(self._numbers)):
            of_row[number].append(triplet)
        return [tuple(of_row[number]) for number in self._numbers.tolist()]

    @functools.cached_property
    def paragraphs(self) -> list[str]:
        """Without storing the statements, of which a large training part has many."""
        triplets = self._statements.triplets(np.unique(self._numbers))
        of_row = {
            number: render(triplet for _, triplet in own)
            for number, own in itertools.groupby(triplets, key=operator.itemgetter(0))
        }
        return [of_row.get(number, "") for number in self._numbers.tolist()]

    @property
    def targets(self) -> Sequence[str]:
        return self.reviews.tolist() if self._learn_written else self.paragraphs

    def _column(self, name: str) -> np.ndarray[Any, np.dtype[Any]]:
        """In the order of the numbers, which need not be that of the file."""
        ascending, places = np.unique(self._numbers, return_inverse=True)
        return np.asarray(self._reviews.column(name, ascending)[places])


class _Statements(Collection[str]):
    """The statements of some rows, read from their file at each iteration."""

    def __init__(self, statements: RowStore, numbers: IntArray) -> None:
        self._statements, self._numbers = statements, numbers

    def __iter__(self) -> Iterator[str]:
        for batch in self._statements.batches(["statement"], self._numbers):
            yield from batch.column("statement").to_pylist()

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._statements.batches(["row"], self._numbers))

    def __contains__(self, statement: object) -> bool:
        return any(statement == other for other in self)


class _Texts(Sequence[str]):
    """Texts in a temporary file that the system deletes; only their offsets are in memory."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with this object)
        weakref.finalize(self, self._file.close)
        lengths = [0]
        for some in texts:
            for text in some:
                lengths.append(self._file.write(text.encode()))
        self._starts = np.cumsum(lengths)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        self._file.seek(int(self._starts[number]))
        return self._file.read(int(self._starts[number + 1] - self._starts[number])).decode()


def unit_names(reviews: Reviews, rows: Sequence[int]) -> list[str]:
    """ "user|item|time": the identifier of a row in every table.

    Raises:
        UserError: if two rows have the same identifier, because users or items contain a bar.
    """
    names = [f"{reviews.users[row]}|{reviews.items[row]}|{reviews.times[row]}" for row in rows]
    if len(set(names)) < len(names):
        raise UserError(
            "two reviews have the same identifier: identifiers of users and items must not contain '|'"
        )
    return names
