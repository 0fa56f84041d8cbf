"""The whole of a meta-evaluation, as a call and as a command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from cfbench_core.cli.root import main
from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.extractors.rules import Config as RulesConfig
from cfbench_text.extractors.rules import Rules
from cfbench_text.judges.overlap import Overlap
from cfbench_text.meta_evaluation.evaluate import meta_evaluate

ROWS = [
    ("The strap is soft.", "The strap is soft and long.", 1),
    ("The strap is red.", "The strap is soft and long.", 0),
    ("A guitar sounds warm. It is cheap.", "The guitar sounds warm. I paid little.", 1),
    ("The cable broke.", "The guitar sounds warm. I paid little.", 0),
    ("The tuner is exact.", "This tuner is exact.", 1),
    ("The tuner is not exact.", "This tuner is exact.", 0),
    ("I gave it to my nephew.", "I paid little for a good sound.", 0),
    ("The sound is good.", "I paid little for a good sound.", 1),
]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    rows = [{"text": text, "evidence": evidence, "label": label} for text, evidence, label in ROWS]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def row_of(table, metric: str):
    names = [[one.metric, *one.also.split(", ")] for one in table.itertuples()]
    return table[[metric in found for found in names]].iloc[0]


def test_a_judge_is_measured_by_its_own_verdicts_on_sentences(mine: Path) -> None:
    table = meta_evaluate({"labelsets": [{"name": "file", "path": str(mine)}], "judges": ["overlap"]})
    row = row_of(table, "StEnt-P")

    # By hand: the mean over the sentences of a text of its largest similarity with a sentence of the evidence.
    judge = Overlap()
    split = [[part.strip() + "." for part in text.rstrip(".").split(".")] for text, _, _ in ROWS]
    premises = [[part.strip() + "." for part in evidence.rstrip(".").split(".")] for _, evidence, _ in ROWS]
    judge.prepare([one for row in dict.fromkeys(map(tuple, premises)) for one in row])
    values = [
        np.mean([max(judge.similarity(premise, one) for premise in known) for one in own])
        for own, known in zip(split, premises, strict=True)
    ]
    labels = [label for _, _, label in ROWS]
    assert row["auc"] == pytest.approx(roc_auc_score(labels, values))
    assert row["kendall"] == pytest.approx(stats.kendalltau(values, labels).statistic)
    assert (row["n"], row["judge"], row["component"]) == (len(ROWS), "overlap", "text/judge/overlap")
    assert row["rule"] == "label >= 1" and row["within"] == "documents" and row["pairs"] == 4


def test_the_direction_of_a_metric_counts(mine: Path) -> None:
    table = meta_evaluate(
        {
            "labelsets": [{"name": "file", "path": str(mine)}],
            "judges": ["overlap"],
            "metrics": ["hallucination", "stent-bin"],
        }
    )
    # 1 - StEnt-bin-P orders the texts the other way round; negated it is the same metric.
    assert "StEnt-bin-P" in row_of(table, "hallucinated")["also"]


def test_an_extractor_makes_the_statements(mine: Path) -> None:
    study = {"labelsets": [{"name": "file", "path": str(mine)}], "judges": ["overlap"], "metrics": ["stent"]}
    plain = meta_evaluate(study)
    extracted = meta_evaluate({**study, "extractor": "rules", "domain": "musical-instruments"})

    assert set(plain["extractor"]) == {"sentences", ""} and set(extracted["extractor"]) == {"rules", ""}
    # Texts without a statement on a topic of the domain have no precision.
    texts = [text for text, _, _ in ROWS]
    silent = [
        not one.triplets for one in Rules(RulesConfig()).extract(texts, load_domain("musical-instruments"))
    ]
    assert sum(silent) > 0
    assert (plain.iloc[0]["missing"], extracted.iloc[0]["missing"]) == (0, sum(silent))
    with pytest.raises(UserError, match="an extractor needs a 'domain'"):
        meta_evaluate({**study, "extractor": "rules"})


def test_rows_are_drawn_by_whole_documents_and_the_same_again(mine: Path) -> None:
    study = {"labelsets": [{"name": "file", "path": str(mine)}], "metrics": ["bleu"], "rows": 4}
    first, again = meta_evaluate(study), meta_evaluate(study)

    assert first["n"].tolist() == [4, 4] and first.equals(again)
    assert (first["pairs"] == 2).all()


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"judges": ["overlap"]}, "labelsets: is missing"),
        ({"labelsets": ["qags"], "judges": ["overlap"]}, "Did you mean 'qags-cnn'"),
        (
            {"labelsets": ["qags-cnn"], "metrics": ["stent"]},
            "metric stent needs a judge that gives entailment",
        ),
        ({"labelsets": ["qags-cnn"], "metrics": []}, "nothing to evaluate"),
        (
            {"labelsets": ["qags-cnn"], "judges": [{"name": "nli", "model": "./none"}]},
            "judge nli: .*no such folder",
        ),
    ],
)
def test_wrong_configurations_are_refused(study, message: str) -> None:
    with pytest.raises(UserError, match=message):
        meta_evaluate(study)


def test_the_published_sets_give_the_known_numbers(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden: AUC and tau of the judge overlap on QAGS-CNN as first measured in docs/results at 286b3abac."""
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(data.parent))
    table = meta_evaluate({"labelsets": ["qags-cnn"], "judges": ["overlap"], "resamples": 50})

    row = row_of(table, "StEnt-P")
    assert row["auc"] == pytest.approx(0.7907297258087915, abs=1e-9)
    assert row["kendall"] == pytest.approx(0.44538833425147295, abs=1e-9)
    assert row_of(table, "ROUGE-2")["auc"] == pytest.approx(0.6881981720586102, abs=1e-9)
    assert row_of(table, "length")["auc"] == pytest.approx(0.6359350065283621, abs=1e-9)


def test_the_command_prints_a_table_and_writes_a_file(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["meta-evaluate", str(mine), "--judge", "overlap", "--set", "resamples=20"]) == 0
    out = capsys.readouterr().out
    assert "StEnt-P" in out and "mine" in out and "†" in out

    target = tmp_path / "out.csv"
    assert main(["meta-evaluate", str(mine), "--metric", "bleu", "--output", str(target)]) == 0
    with target.open() as lines:
        assert [row["metric"] for row in csv.DictReader(lines)] == ["BLEU", "length"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sic"], "sic: no label set of this name, and no such file. Did you mean 'sick'?"),
        (["qags-cnn", "--judge", "overlp"], "--judge overlp: judges[0]: "),
        (["qags-cnn", "--judge", "overlp"], "Did you mean 'overlap'?"),
        (["qags-cnn", "--set", "row=3"], "Did you mean 'rows'?"),
    ],
)
def test_the_command_refuses_what_is_wrong(
    arguments, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["meta-evaluate", *arguments]) == 2
    assert message in capsys.readouterr().err
