"""Files of reviews: their forms, and what is wrong with them and where."""

import gzip
import json

import numpy as np
import pytest

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import ResultWarning, UserError
from cfbench_text.datasets.amazon_2014 import Config as AmazonConfig
from cfbench_text.datasets.amazon_2014 import MusicalInstruments
from cfbench_text.datasets.reviews import Config, ReviewsFile
from cfbench_text.domains import load_domain, names
from cfbench_text.reading import read_reviews
from cfbench_text.splits import divide

ROWS = [
    {
        "reviewerID": "u1",
        "asin": "i1",
        "overall": 5.0,
        "reviewText": 'Great, "warm" tone',
        "unixReviewTime": 100,
    },
    {"reviewerID": "u2", "asin": "i1", "overall": 1.0, "reviewText": "", "unixReviewTime": 50},
]


def jsonl(path, rows=ROWS):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def read(path, **columns):
    return read_reviews(path, "r", "toys", columns)


@pytest.mark.parametrize("name", ["r.json", "r.jsonl", "r.json.gz"])
def test_json_lines(tmp_path, name):
    found = read(jsonl(tmp_path / name))
    assert found.users.tolist() == ["u1", "u2"] and found.texts.tolist() == ['Great, "warm" tone', ""]
    assert found.ratings.tolist() == [5, 1] and found.times.tolist() == [100, 50]


def test_csv_with_a_review_of_several_lines_and_more_than_131_072_characters(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text('user,item,text\nu,i,"two\nlines, and a comma"\nv,i,' + "x " * 100_000 + "\n")
    found = read(path)
    assert found.texts[0] == "two\nlines, and a comma" and len(found.texts[1]) == 200_000
    assert np.isnan(found.ratings).all() and (found.times == 0).all()


def test_columns_may_be_named(tmp_path):
    rows = [{"who": "u", "what": "i", "said": "t"}]
    found = read(jsonl(tmp_path / "r.jsonl", rows), user="who", item="what", text="said")
    assert found.items.tolist() == ["i"]


def test_reviews_without_text_or_user_are_left_out_and_counted(tmp_path):
    rows = [*ROWS, {"asin": "i", "reviewText": "t"}, {"reviewerID": "u", "asin": "i"}]
    found = read(jsonl(tmp_path / "r.jsonl", rows))
    assert len(found) == 2 and found.about["dropped"] == {"without user, item or text": 2}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"user": "u", "item": "i", "text": "t"}\n{"user": \n', ":2: is not JSON"),
        ('{"user": {"id": 1}, "item": "i", "text": "t"}\n', ":1: user must be text or a number, got"),
        ('{"user": "u", "item": ["i"], "text": "t"}\n', ":1: item must be text or a number, got"),
        ('{"user": "u", "item": "i", "text": 5}\n', ":1: text must be text, got '5'"),
        ('{"user": "' + "u" * 1001 + '", "item": "i", "text": "t"}\n', "has 1,001 characters; at most 1,000"),
        (
            '{"user": "\\ud800", "item": "i", "text": "t"}\n',
            "holds a control character or half of a character",
        ),
        ('{"user": "u", "item": "i", "text": "t", "rating": NaN}\n', ":1: rating must be a finite number"),
        ('{"user": "u", "item": "i", "text": "' + "x" * 1_000_001 + '"}\n', "at most 1,000,000 are possible"),
        ("[1, 2]\n", ":1: must be an object"),
        ('{"user": "u", "item": "i"}\n', "no column looks like the text"),
        (
            '{"user": "u", "item": "i", "text": "t", "rating": "five"}\n',
            ":1: rating must be a number, got 'five'",
        ),
        ("\n", "holds no reviews"),
    ],
)
def test_errors_name_the_line(tmp_path, text, complaint):
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=complaint):
        read(path)


def test_a_damaged_archive_and_invalid_text_are_reported(tmp_path):
    broken = tmp_path / "r.json.gz"
    whole = jsonl(tmp_path / "whole.json.gz", ROWS * 3).read_bytes()
    broken.write_bytes(whole[:-20])
    latin = tmp_path / "r.jsonl"
    latin.write_bytes(b'{"user": "\xff"}\n')
    for path in (broken, latin):
        with pytest.raises(UserError, match="cannot be read"):
            read(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        ReviewsFile(Config(path=str(tmp_path / "none.csv"), domain="toys")).find(DataAccess())


def test_every_domain_has_its_topics():
    assert set(names()) >= {"toys", "clothes", "beauty", "sports", "cellphones", "musical_instruments"}
    for name in names():
        domain = load_domain(name)
        assert len(domain.topics) == {"toy_reviews": 5, "general": 1}.get(name, 10)
        assert all(
            topic.description and (topic.keywords or topic.takes_all) for topic in domain.topics.values()
        )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("topics: []", "needs 'topics'"),
        ("topics: {Fit: {keywords: [fit]}}", "must be in lower case"),
        ("topics: {fit: {words: [fit]}}", "has no option 'words'"),
        ("topics: {fit: {title: Fit}}", "must be a list of words"),
        ("topics: {fit: [", "not valid YAML"),
        ("topics: &a [*a]", "the alias *a stands for a value around it".replace("*", r"\*")),
        ("topics: {fit: 1, fit: 2}", "topics.fit: is given twice"),
    ],
)
def test_a_user_defined_domain_is_validated(tmp_path, text, complaint):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=complaint):
        load_domain(str(path))


def test_the_error_for_an_unknown_domain_names_the_nearest_one():
    with pytest.raises(UserError, match="toys"):
        load_domain("toyz")


def test_keywords_are_whole_words_and_the_longest_counts():
    domain = load_domain("toys")
    assert domain.keywords_in("Non-toxic! The small  parts, broken; unbroken") == [
        "non-toxic",
        "small parts",
        "broken",
    ]
    assert domain.topic_of("the price is fair but small parts choke") == "safety"
    assert domain.topic_of("nothing of it") == ""


def test_the_real_reviews_are_those_of_the_table(data):
    dataset = MusicalInstruments(AmazonConfig(path=str(data / "musical_instruments")))
    found = dataset.load(dataset.find(DataAccess(offline=True)))
    assert (len(found), len(set(found.users)), len(set(found.items))) == (10_261, 1_429, 900)
    split = divide(found, "per-user", 0.8, 0.1, 5)
    assert split.report["users"] == 1_429
    assert {part: split.report[part] for part in ("train", "validation", "test")} == {
        "train": 7_722, "validation": 932, "test": 1_580,
    }  # fmt: skip


def test_rows_with_references_of_their_own_are_all_explained(tmp_path):
    path = jsonl(tmp_path / "r.jsonl", [*ROWS, ROWS[0]])
    dataset = ReviewsFile(Config(path=str(path), domain="toys", explained=True))
    split = divide(dataset.load(dataset.find(DataAccess())), "per-user", 0.8, 0.1, 5)
    assert split.parts.tolist() == [2, 2, -1]
    assert split.report["test"] == 2 and split.report["excluded, duplicates"] == 1


def test_user_defined_topics_are_part_of_the_data(tmp_path):
    topics = tmp_path / "mine.yaml"
    topics.write_text("topics: {sound: {keywords: [bass]}}")
    path = jsonl(tmp_path / "r.jsonl", ROWS)
    dataset = ReviewsFile(Config(path=str(path), domain=str(topics)))
    before = dataset.find(DataAccess())
    assert dataset.load(before).domain == str(topics.resolve())
    topics.write_text("topics: {sound: {keywords: [bass, treble]}}")
    assert dataset.find(DataAccess()).parameters() != before.parameters()
    for name in ("x" * 20_000, "~nobody-of-this-name/topics.yaml"):
        with pytest.raises(UserError, match="no such domain or file"):
            load_domain(name)
    with pytest.raises(UserError, match=r"no such domain or file\. Did you mean 'toys'"):
        ReviewsFile(Config(path=str(path), domain="toyss")).find(DataAccess())


def test_columns_of_json_lines_are_those_of_all_lines(tmp_path):
    """A line may leave out what it does not know: the first one has neither rating nor time."""
    first = {"reviewerID": "u0", "asin": "i1", "reviewText": "no stars"}
    found = read(jsonl(tmp_path / "r.jsonl", [first, *ROWS]))
    assert found.users.tolist() == ["u0", "u1", "u2"]
    assert np.isnan(found.ratings[0]) and found.ratings[1:].tolist() == [5, 1]
    assert found.times[1:].tolist() == [100, 50]
    nobody = [{"asin": "i1", "reviewText": "by nobody"}, *ROWS]
    assert read(jsonl(tmp_path / "s.jsonl", nobody)).users.tolist() == ["u1", "u2"]


def test_reviews_that_are_left_out_are_reported(tmp_path):
    rows = [{**ROWS[0], "asin": f"i{n}", "reviewText": None if n % 3 else "good"} for n in range(30)]
    with pytest.warns(
        ResultWarning, match=r"r.jsonl: 20 of 30 reviews are left out, without user, item or text"
    ):
        found = read(jsonl(tmp_path / "r.jsonl", rows))
    assert len(found.users) == 10
    again = read(jsonl(tmp_path / "s.jsonl", [*ROWS, ROWS[0]]))
    with pytest.warns(
        ResultWarning, match="1 of 3 reviews are left out: an earlier row has their user, item and time"
    ):
        divide(again, "per-user", 0.8, 0.1, 1)
