"""Texts that come with their references: ``cfbench evaluate --suite text FILE`` without a configuration."""

import csv
import json

import pandas as pd
import pytest

from cfbench_core import api
from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.external_texts import TextTable, rows_of
from cfbench_text.own_texts import document_for
from cfbench_text.reading import read_reviews

ROWS = [
    (
        "u1",
        "i1",
        "The sound is great and the strings are bright.",
        "Great sound, bright strings, fair price.",
    ),
    ("u1", "i2", "The cable is very durable.", "The cable broke after a week."),
    ("u2", "i1", "It is easy to tune. The bag feels cheap.", "It is easy to tune. The neck is comfortable."),
]


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def written(path, rows=ROWS, names=("user", "item", "text", "reference")):
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([names, *rows])
    else:
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mine.jsonl", marks=pytest.mark.slow),
        "mine.csv",
        pytest.param("mine.tsv", marks=pytest.mark.slow),
    ],
)
def test_one_line_scores_texts_against_the_references_in_the_file(name, tmp_path, capsys):
    path = written(tmp_path / name)
    assert main(["evaluate", "--suite", "text", str(path), "--output", "run", "--executor", "inline"]) == 0
    assert "mine" in capsys.readouterr().out
    scores = pd.read_parquet("run/scores.parquet")
    rows = scores[scores["metric"] == "ROUGE-1"].groupby("model")["value"].mean()
    assert rows["reference"] == 1 and 0 < rows["mine"] < 1
    # The same as with a configuration that says all of it.
    document = {
        "suite": "text",
        "data": [
            {"name": "reviews", "path": name, "text": "reference", "domain": "general", "explained": True}
        ],
        "extractor": "atomic",
        "generators": ["reference"],
        "judges": ["overlap"],
        "protocol": {"reference": "written"},
        "metrics": ["hallucination", "st2exp", "bleu", "rouge"],
        "executor": "inline",
    }
    theirs = api.run(document, explanations=path, out="theirs").scores
    ours = scores[scores["model"] == "mine"].set_index(["unit", "metric"])["value"].sort_index()
    wanted = theirs[theirs["model"] == "mine"].set_index(["unit", "metric"])["value"].sort_index()
    pd.testing.assert_series_equal(ours, wanted)


def test_every_clause_is_a_statement_if_no_topics_are_known(tmp_path):
    path = written(
        tmp_path / "mine.jsonl", [("u", "i", "The zorb is blue. It wobbles a bit.", "The zorb is blue.")]
    )
    scores = api.run(explanations=path, suite="text", set=["executor=inline"], out="run").scores
    values = scores[scores["model"] == "mine"].set_index("metric")["value"]
    precision = next(name for name in values.index if name.startswith("St2Exp-P"))
    recall = next(name for name in values.index if name.startswith("St2Exp-R"))
    assert (values[precision], values[recall]) == (0.5, 1.0)


@pytest.mark.slow
def test_the_references_may_stand_next_to_the_texts_of_several_generators(tmp_path):
    rows = [(*row, model) for model in ("first", "second") for row in ROWS]
    path = written(tmp_path / "mine.jsonl", rows, ("user", "item", "text", "evidence", "model"))
    scores = api.run(explanations=path, set=["executor=inline"], out="run").scores
    counts = scores[scores["metric"] == "BLEU"].groupby("model").size()
    assert counts["first"] == counts["second"] == counts["reference"] == len(ROWS)


@pytest.mark.parametrize(
    ("name", "names", "message"),
    [
        (
            "mine.jsonl",
            ("user", "item", "text", "truth"),
            "has no column 'reference' .* it has user, item, text, truth",
        ),
        ("mine.txt", ("user", "item", "text", "reference"), "must be JSON lines or CSV, got .txt"),
    ],
)
def test_what_is_missing_is_reported_in_one_line(name, names, message, tmp_path):
    with pytest.raises(UserError, match=message):
        document_for(written(tmp_path / name, names=names))


def test_an_empty_file_and_a_file_that_is_not_there(tmp_path, capsys):
    (tmp_path / "empty.jsonl").write_text("\n")
    assert main(["evaluate", "--suite", "text", "empty.jsonl"]) == 2
    assert "empty.jsonl: holds no texts" in capsys.readouterr().err
    assert main(["evaluate", "--suite", "text", "gone.jsonl"]) == 2
    assert "no such file: gone.jsonl" in capsys.readouterr().err


def test_a_topic_may_take_all_statements_without_a_keyword(tmp_path):
    path = tmp_path / "topics.yaml"
    topics = "topics:\n  price: {keywords: [price, cheap]}\n  other: {keywords: all}\n"
    path.write_text(topics)
    domain = load_domain(str(path))
    assert domain.topic_of("it is cheap") == "price" and domain.topic_of("it is blue") == "other"
    assert domain.covers("it is blue") and not load_domain("clothes").covers("zorb")
    path.with_name("two.yaml").write_text(topics + "  more: {keywords: all}\n")
    with pytest.raises(UserError, match="only one topic may have 'keywords: all'"):
        load_domain(str(path.with_name("two.yaml")))


@pytest.mark.parametrize("times", [(1394409600000, 1394409700000), ("1394409600.0", "1394409700.0")])
@pytest.mark.parametrize("name", ["mine.jsonl", "mine.csv"])
def test_texts_are_joined_by_times_as_reviews_have_them(name, times, tmp_path):
    """Two rows of one user and item, which differ by their times alone: in thousandths, or with decimals."""
    words = ["The sound is great.", "The cable is durable."]
    rows = [("u1", "i1", text, text, time) for text, time in zip(words, times, strict=True)]
    path = written(tmp_path / name, rows, ("user", "item", "text", "reference", "time"))
    assert main(["evaluate", "--suite", "text", str(path), "--output", "run", "--executor", "inline"]) == 0
    found = pd.read_parquet("run/scores.parquet").query("model == 'mine' and metric == 'ROUGE-1'")
    assert found["value"].tolist() == [1, 1]


def test_a_column_without_a_name_is_an_index_and_not_a_field_too_many(tmp_path):
    path = tmp_path / "mine.csv"
    pd.DataFrame(ROWS, columns=["user", "item", "text", "reference"]).to_csv(path)
    assert [dict(row) for _, row in rows_of(path)] == [
        {"": str(place), "user": user, "item": item, "text": text, "reference": reference}
        for place, (user, item, text, reference) in enumerate(ROWS)
    ]
    path.write_text(path.read_text().rstrip("\n") + ",more\n")
    with pytest.raises(UserError, match=r"mine\.csv:4: has more fields than the first line names"):
        list(rows_of(path))


def test_true_is_no_rating(tmp_path):
    rows = [(*row, True) for row in ROWS]
    path = written(tmp_path / "mine.jsonl", rows, ("user", "item", "text", "reference", "rating"))
    with pytest.raises(UserError, match=r"mine\.jsonl:1: rating must be a finite number, got 'True'"):
        read_reviews(path, "mine", "general", {})
    with pytest.raises(UserError, match=r"mine\.jsonl:1: rating must be a finite number, got 'True'"):
        TextTable(path, []).combinations()


def test_a_file_whose_references_are_all_empty_is_scored(tmp_path):
    path = written(tmp_path / "mine.jsonl", [("u1", "i1", "The tone is warm.", "")])
    assert main(["evaluate", "--suite", "text", str(path), "--output", "run", "--executor", "inline"]) == 0
    found = pd.read_parquet("run/scores.parquet").query("model == 'mine'").set_index("metric")["value"]
    assert found["hallucinated (overlap)"] == 1 and pd.isna(found.get("BLEU"))
