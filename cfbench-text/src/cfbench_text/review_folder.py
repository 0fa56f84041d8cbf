"""The reviews of a split as the files of a folder.

``reviews.parquet``: the reviews, see :data:`COLUMNS`; ``data.json``: name, domain, and what generators learn;
``known.parquet``: the true statements, where these are known because the reviews are synthetic.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cfbench_text.corpus import unit_names
from cfbench_text.domains import Domain, load_domain
from cfbench_text.reviews import IntArray, Reviews
from cfbench_text.row_store import GROUP, RowStore, RowWriter, StatementWriter

COLUMNS = ("row", "unit", "user", "item", "rating", "time", "text", "part")


@dataclass(frozen=True)
class ReviewFolder:
    """Reads the reviews in a folder; :meth:`write` writes them."""

    path: Path

    @property
    def reviews(self) -> RowStore:
        return RowStore(self.path / "reviews.parquet")

    @property
    def known(self) -> RowStore | None:
        """The true statements; None where they are not known."""
        file = self.path / "known.parquet"
        return RowStore(file) if file.exists() else None

    @property
    def domain(self) -> Domain:
        return load_domain(json.loads((self.path / "data.json").read_text(encoding="utf-8"))["domain"])

    @property
    def learn_written(self) -> bool:
        """Whether generators learn to write the reviews themselves."""
        described = json.loads((self.path / "data.json").read_text(encoding="utf-8"))
        return bool(described.get("learn_written", False))

    @staticmethod
    def write(path: Path, reviews: Reviews, parts: IntArray, learn_written: bool = False) -> None:
        """Writes N reviews, except those whose part of the split, ``parts`` (N,), is negative.

        Raises:
            UserError: when the domain of the reviews is unknown, or two have the same identifier.
        """
        load_domain(reviews.domain)
        included = np.flatnonzero(parts >= 0)
        _write_rows(path / "reviews.parquet", reviews, included, parts)
        if reviews.known is not None:
            with StatementWriter(path / "known.parquet") as known:
                known.write(included.tolist(), [reviews.known[row] for row in included.tolist()])
        described = {"domain": reviews.domain, "name": reviews.name, "learn_written": learn_written}
        (path / "data.json").write_text(json.dumps(described), encoding="utf-8")


def _write_rows(path: Path, reviews: Reviews, included: IntArray, parts: IntArray) -> None:
    names = np.array(unit_names(reviews, included.tolist()), dtype=object)
    with RowWriter(path, COLUMNS) as to:
        for start in range(0, len(included), GROUP):
            rows = included[start : start + GROUP]
            columns = (rows, names[start : start + GROUP], reviews.users[rows], reviews.items[rows])
            further = (reviews.ratings[rows], reviews.times[rows], reviews.texts[rows], parts[rows])
            to.write(dict(zip(COLUMNS, (*columns, *further), strict=True)))
