"""Files that are read in part: against reading all of it; and generators that see rows that were never loaded."""

import io

import numpy as np
import pandas as pd
import pytest

from cfbench_text.corpus import Corpus
from cfbench_text.domains import load_domain
from cfbench_text.row_store import GROUP, RowStore, RowWriter, StatementWriter, whole
from cfbench_text.triplets import Triplet, render

ROWS = 3 * GROUP + 7
NUMBERS = np.arange(ROWS) * 3 + 1
"""Ascending, with gaps, as after a split."""


@pytest.fixture(scope="module")
def stored():
    to = io.BytesIO()
    with RowWriter(to, ("row", "text", "rating")) as file:
        for start in range(0, ROWS, 1_500):
            rows = NUMBERS[start : start + 1_500]
            file.write(
                {"row": rows, "text": [f"t{row}" for row in rows], "rating": np.full(len(rows), np.nan)}
            )
        file.write({"row": [], "text": [], "rating": []})
    return RowStore(to.getvalue())


@pytest.mark.parametrize(
    "rows",
    [[], [1], [2], [1, 4, 7], [-5, 3 * ROWS - 2, 10**9], [*NUMBERS[::997]], [*NUMBERS]],
)
def test_rows_by_their_numbers_are_those_of_the_whole(stored, rows):
    requested = np.array(rows, dtype=np.int64)
    wanted = [row for row in NUMBERS.tolist() if row in set(rows)]
    assert stored.column("row", requested).tolist() == wanted
    assert stored.column("text", requested).tolist() == [f"t{row}" for row in wanted]
    assert np.isnan(stored.column("rating", requested)).sum() == len(wanted)


@pytest.mark.parametrize(
    "span", [(0, 0), (0, 5), (GROUP - 1, GROUP + 1), (1_499, 4_501), (ROWS - 3, ROWS + 9)]
)
def test_rows_by_their_places_are_those_of_the_whole(stored, span):
    assert stored.span(*span)["row"].to_pylist() == NUMBERS[slice(*span)].tolist()
    assert len(stored.span(0, None)) == len(stored) == ROWS


def test_only_the_groups_that_hold_a_row_are_read(stored, monkeypatch):
    from pyarrow import parquet

    groups = []
    read = parquet.ParquetFile.iter_batches

    def spy(self, *args, row_groups, **more):
        groups.extend(row_groups)
        return read(self, *args, row_groups=row_groups, **more)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", spy)
    stored.column("text", NUMBERS[[2, 5_000]])
    assert groups == [0, 3]


def test_half_a_character_is_written_as_lost_and_all_others_as_they_are():
    assert whole("a\ud83db 🎧\x00") == "a\ufffdb 🎧\x00" and whole("") == ""
    to = io.BytesIO()
    with StatementWriter(to, named=True) as file:
        file.write(
            ["u", "v"], [[Triplet("half \ud83d", "sound", "neutral")], [Triplet("🎧", "sound", "neutral")]]
        )
    assert [(row, t.statement) for row, t in RowStore(to.getvalue()).triplets()] == [
        ("u", "half \ufffd"),
        ("v", "🎧"),
    ]


@pytest.fixture(scope="module")
def corpus():
    draw = np.random.default_rng(0)
    parts = draw.integers(3, size=ROWS)
    reviews = pd.DataFrame(
        {
            "row": NUMBERS,
            "unit": [f"n{row}" for row in NUMBERS],
            "user": [f"u{row % 7}" for row in NUMBERS],
            "item": "i",
            "rating": 3.0,
            "time": NUMBERS,
            "text": "t",
            "part": parts,
        }
    )
    lines = [(row, f"s{row} {k}", "sound", "positive") for row in NUMBERS.tolist() for k in range(row % 4)]
    statements = pd.DataFrame(lines, columns=["row", "statement", "topic", "sentiment"])
    return reviews, statements, Corpus.of(reviews, statements, load_domain("toy-reviews"))


def test_a_part_has_the_rows_and_statements_of_the_tables(corpus):
    reviews, statements, found = corpus
    for place, name in enumerate(("train", "validation", "test")):
        rows, wanted = found.part(name), reviews[reviews["part"] == place]
        assert len(rows) == len(wanted) and rows.units == tuple(wanted["unit"])
        assert (
            rows.users.tolist() == wanted["user"].tolist() and rows.times.tolist() == wanted["time"].tolist()
        )
        reported = statements.groupby("row")["statement"].agg(list).to_dict()
        assert [[t.statement for t in of] for of in rows.triplets] == [
            reported.get(r, []) for r in wanted["row"]
        ]
        assert rows.paragraphs == [render(of) for of in rows.triplets]


def test_rows_come_in_the_requested_order(corpus):
    _, _, found = corpus
    numbers = NUMBERS[[4_000, 3, 2_999, 3]].tolist()
    rows = found.rows(numbers)
    assert rows.units == tuple(f"n{n}" for n in numbers) and rows.times.tolist() == numbers
    assert [len(of) for of in rows.triplets] == [n % 4 for n in numbers]


def test_paragraphs_of_many_rows_are_found_one_by_one(corpus):
    _, _, found = corpus
    numbers = NUMBERS[::2].tolist()
    texts, wanted = found.spooled_references(numbers), found.rows(numbers).paragraphs
    assert len(texts) == len(wanted) and texts[:9] == wanted[:9] and texts[-1] == wanted[-1]
    assert [texts[place] for place in (17, 3, 2_500)] == [wanted[place] for place in (17, 3, 2_500)]
    with pytest.raises(IndexError):
        texts[len(texts)]


def test_training_statements_are_read_at_each_iteration(corpus):
    _, statements, found = corpus
    rows = set(found.part("train").times.tolist())
    wanted = statements[statements["row"].isin(rows)]["statement"].tolist()
    assert list(found.training_statements) == list(found.training_statements) == wanted
    assert len(found.training_statements) == len(wanted) and wanted[0] in found.training_statements


def test_without_training_rows_word_frequencies_come_from_all_statements(corpus):
    reviews, statements, _ = corpus
    found = Corpus.of(reviews.assign(part=2), statements, load_domain("toy-reviews"))
    assert list(found.training_statements) == statements["statement"].tolist()
