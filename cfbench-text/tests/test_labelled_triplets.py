"""Labelled triplets: reading them, comparing extractors with them, and the command."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_core.cli.root import main
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_text.extractors.rules import Config, Rules
from cfbench_text.labelled_triplets.agreement import OUTCOMES, content_words, outcomes, overlap
from cfbench_text.labelled_triplets.labels import digest, half_of, read_labels
from cfbench_text.labelled_triplets.measure import AGREEMENT, measured
from cfbench_text.labelled_triplets.sets import FOLDER, load_set, names
from cfbench_text.triplets import Triplet

TEXT = "The tone is warm. The strap broke."
LABELS = [[0, 16, "sound", "positive"], [18, 33, "build", "negative"]]


def t(statement, topic="sound", sentiment="positive"):
    return Triplet(statement, topic, sentiment)


def written(tmp_path, *rows):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("extracted", "expected"),
    [
        (t("the tone is warm"), "right"),
        (t("warm tone"), "right"),
        (t("the tone is warm", "build"), "topic"),
        (t("the tone is warm", "sound", "negative"), "sentiment"),
        (t("the tone is warm", "build", "negative"), "topic and sentiment"),
        (t("the tone is warm and my cousin from Ohio bought another guitar last year"), "boundaries"),
        (t("my cousin lives in Ohio"), "none"),
    ],
)
def test_what_a_triplet_is(extracted, expected):
    assert outcomes([extracted], [t("The tone is warm"), t("The strap broke", "build", "negative")]) == [
        expected
    ]


def test_a_label_is_matched_once():
    assert sorted(outcomes([t("warm tone"), t("the tone is warm")], [t("The tone is warm")])) == [
        "boundaries",
        "right",
    ]


def test_a_right_triplet_is_preferred_to_one_with_another_topic():
    found = outcomes([t("the tone is warm", "build"), t("tone is warm")], [t("The tone is warm")])
    assert found == ["boundaries", "right"]


words = st.lists(
    st.sampled_from(["tone", "warm", "strap", "broke", "price", "good", "cable"]), min_size=1, max_size=3
)
triplets = st.lists(
    st.builds(
        t,
        words.map(" ".join),
        st.sampled_from(["sound", "build"]),
        st.sampled_from(["positive", "negative"]),
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(triplets, triplets)
def test_the_number_of_right_triplets_is_that_of_the_best_assignment(extracted, labels):
    def fits(a, b):
        shares = overlap(content_words(a.statement), content_words(b.statement))
        return min(shares) >= 0.5 and (a.topic, a.sentiment) == (b.topic, b.sentiment)

    size = max(len(extracted), len(labels))
    padded = [*labels, *[None] * (size - len(labels))]
    best = max(
        sum(b is not None and fits(a, b) for a, b in zip(extracted, order, strict=False))
        for order in itertools.permutations(padded)
    )
    found = outcomes(extracted, labels)
    assert found.count("right") == best
    assert len(found) == len(extracted) and set(found) <= set(OUTCOMES)


@given(triplets)
def test_a_text_agrees_with_itself(labels):
    assert set(outcomes(labels, labels)) <= {"right"}


def test_labels_are_spans_of_the_text(tmp_path):
    path = written(tmp_path, {"id": "a", "pass": 1, "sha256": digest(TEXT), "labels": LABELS})
    (one,) = read_labels(path, {"a": TEXT})
    assert one.passes[1] == (t("The tone is warm"), t("The strap broke", "build", "negative"))
    assert one.half == half_of("a")


ROW = {"id": "a", "pass": 1, "text": TEXT, "labels": LABELS}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**ROW, "labels": [[0, 99, "sound", "positive"]]}], r"mine.jsonl:1: .* 0 <= start < end <= 34"),
        ([{**ROW, "labels": [[0, 5, "sound", "happy"]]}], "a sentiment of positive, negative, neutral"),
        ([{**ROW, "pass": "one"}], "needs 'id'"),
        ([ROW, ROW], "mine.jsonl:2: a has two rows of pass 1"),
        ([{"id": "a", "pass": 1, "labels": LABELS}], "neither in the row nor in the data"),
        ([{**ROW, "sha256": "0" * 16}], "another version of the text"),
        ([], "has no labelled texts"),
    ],
)
def test_wrong_files_are_refused_with_their_place(tmp_path, rows, message):
    with pytest.raises(UserError, match=message):
        read_labels(written(tmp_path, *rows))


def test_topics_must_be_of_the_domain(tmp_path):
    path = written(tmp_path, ROW)
    with pytest.raises(UserError, match="'a' has the topic 'sound'"):
        load_set(str(path), DataAccess())


def test_both_halves_have_texts_and_no_text_is_in_both():
    for name in names():
        if name == "toy-reviews":
            continue
        ids = {json.loads(line)["id"] for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()}
        halves = {half_of(one) for one in ids}
        assert halves == {"development", "held-out"}


def test_packaged_labels_hold_no_text():
    for path in FOLDER.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            assert set(row) == {"id", "pass", "sha256", "labels"}
            assert all(len(label) == 4 and " " not in label[2] + label[3] for label in row["labels"])


def test_rules_read_the_synthetic_reviews_right():
    found = load_set("toy-reviews", DataAccess())
    (row,) = measured(found, {"rules": Rules(Config())}, "all")
    assert row["texts"] == 100 and row["precision"] == row["recall"] == 1


def test_later_passes_are_measured_like_extractors(tmp_path):
    second = {**ROW, "pass": 2, "labels": [LABELS[0], [18, 33, "playability", "negative"]]}
    third = {**ROW, "pass": 3, "labels": [LABELS[0]]}
    found = load_set(str(written(tmp_path, ROW, second, third)), DataAccess(), "musical-instruments")
    rows = measured(found, {"rules": Rules(Config())}, "all")
    agreement = {row["extractor"]: row for row in rows if row["extractor"] != "rules"}
    assert list(agreement) == [AGREEMENT.format(2), AGREEMENT.format(3)]
    assert (agreement["pass 2"]["right"], agreement["pass 2"]["topic"]) == (1, 1)
    assert (agreement["pass 2"]["precision"], agreement["pass 3"]["precision"]) == (0.5, 1.0)
    assert agreement["pass 3"]["recall"] == 1 / len(ROW["labels"])


def test_the_command_writes_a_row_for_each_extractor_and_names_no_text(tmp_path, capsys):
    path = written(tmp_path, ROW)
    out = tmp_path / "out.csv"
    arguments = ["evaluate-extractor", str(path), "--domain", "musical-instruments", "--half", "all"]
    assert main([*arguments, "--extractor", "rules", "--output", str(out), "--errors", "5"]) == 0
    head, row = out.read_text().splitlines()
    assert dict(zip(head.split(","), row.split(","), strict=True))["extractor"] == "rules"
    assert "strap" not in capsys.readouterr().out


def test_the_command_names_the_sets_for_an_unknown_one(capsys):
    assert main(["evaluate-extractor", "toy-review"]) == 2
    assert "toy-reviews" in capsys.readouterr().err
