"""Label sets: what is read, and what is said about files that are not as they should be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_core.testing import Subject, checks_for, verify
from cfbench_text.labelsets import file, human_factuality, sick, topical_chat


def load(labelset):
    return labelset.load(labelset.find(DataAccess(offline=True)))


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def own(path: Path, **options: object):
    return load(file.LabelledFile(file.Config(path=str(path), **options)))


def test_the_published_sets_have_their_published_sizes(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(data.parent))
    qags = load(human_factuality.QAGSCNN(human_factuality.QAGSConfig()))
    summeval = load(human_factuality.SummEval(human_factuality.SummEvalConfig()))
    chat = load(topical_chat.TopicalChat(topical_chat.Config()))
    pairs = load(sick.SICK(sick.Config()))

    assert [len(one) for one in (qags, summeval, chat, pairs)] == [235, 1600, 360, 4927]
    assert len(np.unique(summeval.documents)) == 100 and len(np.unique(chat.documents)) == 60
    # Marelli et al. 2014, table 5: 1,414 entailments among the 4,927 pairs of the test part.
    assert int(pairs.good.sum()) == 1414
    # Two or three of three people.
    assert chat.good.sum() == 205 and set(chat.labels[chat.good].round(2)) == {0.67, 1.0}


def test_sick_reads_the_direction_and_the_ratings(tmp_path: Path) -> None:
    path = tmp_path / "SICK_test.txt"
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    path.write_text(
        f"{head}1\tA dog runs\tAn animal runs\t4.2\tENTAILMENT\n2\tA dog runs\tA dog sits\t3.9\tCONTRADICTION\n"
    )
    found = load(sick.SICK(sick.Config(path=str(path))))
    related = load(sick.SICK(sick.Config(path=str(path), rating="relatedness")))

    assert found.evidence == ["A dog runs"] * 2 and found.texts == ["An animal runs", "A dog sits"]
    assert found.labels.tolist() == [1.0, 0.0] and found.documents.tolist() == [0, 0]
    assert related.labels.tolist() == [4.2, 3.9] and related.good.tolist() == [True, False]

    path.write_text(f"{head}1\tA dog runs\tAn animal runs\t4.2\tMAYBE\n")
    with pytest.raises(UserError, match=r"SICK_test.txt:2: needs pair_ID, .*MAYBE"):
        load(sick.SICK(sick.Config(path=str(path))))


def test_your_own_file_is_read_by_usual_or_given_names(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "mine.jsonl",
        {"claim": "It is soft.", "review": ["The strap is soft", "It is long"], "supported": "yes"},
        {"claim": "It is red.", "review": ["The strap is soft", "It is long"], "supported": False},
    )
    found = own(path)

    assert found.name == "mine" and found.labels.tolist() == [1.0, 0.0] and found.rule == "supported >= 1"
    assert found.evidence[0] == "The strap is soft\nIt is long"
    assert found.documents.tolist() == [0, 0]

    table = tmp_path / "mine.csv.gz"
    with gzip.open(table, "wt") as out:
        out.write("a,b,c,who\nx,y,3,1\nz,y,5,1\nw,q,4,2\n")
    named = own(table, text="a", evidence="b", rating="c", document="who", threshold=4)
    assert named.labels.tolist() == [3, 5, 4] and named.good.tolist() == [False, True, True]
    assert named.documents.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            [{"text": "a", "evidence": "b", "label": "perhaps"}],
            {},
            r"m.jsonl:1: label must be a number or one of yes",
        ),
        ([{"text": 3, "evidence": "b", "label": 1}], {}, r"m.jsonl:1: text must be text or a list"),
        ([{"text": "a", "label": 1}], {}, r"no column looks like the evidence"),
        ([{"text": "a", "evidence": "b", "label": 1}] * 3, {}, r"at least two different ratings \(label\)"),
        (
            [{"text": "a", "evidence": "b", "label": 1}, {"text": "a", "evidence": "b", "label": 2}],
            {"threshold": 7.0},
            r"no ratings are at least 7; they are from 1 to 2",
        ),
        ([], {}, "holds no labelled texts"),
        ([{"text": "a", "evidence": "b", "label": "nan"}], {}, r"m.jsonl:1: label must be a number"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, rows, options, message: str) -> None:
    with pytest.raises(UserError, match=message):
        own(lines(tmp_path / "m.jsonl", *rows), **options)


def test_damaged_published_files_are_refused(tmp_path: Path) -> None:
    qags = lines(tmp_path / "QAGS_CNN.jsonl", {"summary": "a", "source": "b", "doc_id": 0, "scores": {}})
    with pytest.raises(UserError, match=r"QAGS_CNN.jsonl:1: needs doc_id, summary, source and scores.fact"):
        load(human_factuality.QAGSCNN(human_factuality.QAGSConfig(path=str(qags))))
    chat = tmp_path / "topical_chat.json"
    for content, message in (
        ("{", "is not JSON"),
        ("{}", "must be a list"),
        ("[{}]", "response 0: needs response"),
    ):
        chat.write_text(content)
        with pytest.raises(UserError, match=message):
            load(topical_chat.TopicalChat(topical_chat.Config(path=str(chat))))


def test_your_own_file_passes_the_conformance_checks(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "m.jsonl",
        {"text": "a", "evidence": "b", "label": 1},
        {"text": "c", "evidence": "b", "label": 0},
    )
    spec = next(one.spec for one in installed().components("labelset", "text") if one.spec.name == "file")
    subject = Subject(spec, file.Config(path=str(path)))
    for check in checks_for(spec.id):
        if check.name in ("has-rated-texts", "reads-the-same-ratings-again", "is-made-from-its-options"):
            verify(check, subject)


def test_rows_without_a_group_belong_together_where_their_evidence_is_equal(tmp_path: Path) -> None:
    groups = ["g", None, None, "", "g"]
    rows = [
        {"text": "t", "evidence": evidence, "label": place % 2, "doc_id": group}
        for place, (evidence, group) in enumerate(zip("aabbc", groups, strict=True))
    ]
    found = own(lines(tmp_path / "mine.jsonl", *rows)).documents
    assert [found[0] == found[4], found[2] == found[3], len(set(found.tolist()))] == [True, True, 3]
