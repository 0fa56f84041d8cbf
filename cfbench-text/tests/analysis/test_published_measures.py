"""What counts as the paper's measure: its extractor, models by their whole names, and settings."""

from types import SimpleNamespace

import pytest

from cfbench_text.analysis.published_measures import stand_in
from cfbench_text.analysis.reproduction import _statistics

OF_THE_PAPER = {"extractor": "llm", "judges": ["llm", "nli"], "protocol": {"empty": "skip"}}
LLAMA = "Meta-Llama-3-8B-Instruct"


@pytest.mark.parametrize(
    "metric",
    [
        *("SummaC-ZS-P", "SummaC-Conv-P", "AlignScore-P", "QuestEval-F", "BERTScore-F", "BARTScore-F"),
        *("BLEURT", "STS", "St2Exp-P", "StEnt-bin-R"),
    ],
)
def test_the_extractor_counts_where_references_are_paragraphs_of_its_statements(metric):
    config = {**OF_THE_PAPER, "extractor": "atomic"}
    judge = {"St2Exp-P": "llm", "StEnt-bin-R": "nli"}.get(metric, "")
    assert stand_in(OF_THE_PAPER, metric, judge) == ""
    assert stand_in(config, metric, judge) == "atomic in place of Llama-3-8B-Instruct"


@pytest.mark.parametrize("metric", ["BERTScore-F", "BARTScore-F", "BLEURT", "STS"])
def test_reviews_as_written_need_no_extractor(metric):
    assert (
        stand_in({**OF_THE_PAPER, "extractor": "rules", "protocol": {"reference": "written"}}, metric, "")
        == ""
    )


@pytest.mark.parametrize(
    ("component", "model", "same"),
    [
        ("bertscore", "FacebookAI/roberta-large", True),
        ("bertscore", "/models/RoBERTa-large/", True),
        ("bertscore", "~/hub/models--FacebookAI--roberta-large/snapshots/722cf37b", True),
        ("bertscore", "FacebookAI/xlm-roberta-large", False),
        ("bertscore", "FacebookAI/roberta-large-mnli", False),
        ("bertscore", "roberta-large/adapted", False),
        ("bartscore", "facebook/bart-large-cnn", True),
        ("bartscore", "facebook/bart-large-mnli", False),
        ("sts", "sentence-transformers/all-MiniLM-L6-v2", True),
        ("sts", "paraphrase-all-MiniLM-L6-v2", False),
        ("summac-zs", "my-deberta-large-mnli-fever", False),
        ("bleurt", "Elron/bleurt-base-512", True),
        ("bleurt", "bleurt-base-tuned", False),
        ("extractor", f"meta-llama/{LLAMA}", True),
        ("extractor", f"weights/{LLAMA}.F16.gguf", True),
        ("extractor", f"weights/{LLAMA}-Q4_K_M.gguf", False),
        ("extractor", "not-llama-3-8b-instruct-at-all", False),
        ("extractor", "llama-3.8b-instruct", False),
        ("extractor", "meta-llama/Llama-3.1-8B-Instruct", False),
    ],
)
def test_models_are_those_of_the_paper_by_their_whole_name(component, model, same):
    names = {"bertscore": "BERTScore-F", "bartscore": "BARTScore-F", "sts": "STS", "summac-zs": "SummaC-ZS-P"}
    if component == "extractor":
        config = {**OF_THE_PAPER, "extractor": {"name": "llm", "model": model}}
    else:
        config = {**OF_THE_PAPER, "metrics": [{"name": component, "model": model}]}
    found = stand_in(config, names.get(component, "BLEURT"), "")
    assert found == "" if same else found.startswith(f"{model} in place of")


@pytest.mark.parametrize(
    ("metric", "judge", "changes", "expected"),
    [
        ("BERTScore-F", "", {"name": "bertscore", "baseline": "b.tsv"}, "baseline: b.tsv in place of null"),
        ("BERTScore-F", "", {"name": "bertscore", "layer": None}, "layer: null in place of 17"),
        (
            "BERTScore-F",
            "",
            {"name": "bertscore", "special": "leave-out"},
            "special: leave-out in place of match",
        ),
        ("BERTScore-F", "", {"name": "bertscore", "baseline": None, "layer": 17}, ""),
        ("St2Exp-P", "llm", {"name": "st2exp", "threshold": None}, "threshold: null in place of 0.5"),
        ("St2Exp-P", "llm", {"name": "st2exp", "threshold": 0.9}, "threshold: 0.9 in place of 0.5"),
        ("St2Exp-P", "llm", {"name": "st2exp", "threshold": 0.5}, ""),
        ("StEnt-P", "nli", {"name": "st2exp", "threshold": None}, ""),
        ("AlignScore-P", "", {"name": "alignscore", "head": "binary"}, "head: binary in place of three-way"),
        (
            "AlignScore-P",
            "",
            {"name": "alignscore", "checkpoint": "x/AlignScore-base.ckpt"},
            "checkpoint: AlignScore-base.ckpt in place of AlignScore-large.ckpt",
        ),
        ("AlignScore-P", "", {"name": "alignscore", "checkpoint": "x/AlignScore-large.ckpt"}, ""),
        ("BLEURT", "", {"name": "bleurt", "limit": 128}, "limit: 128 in place of null"),
        ("SummaC-ZS-P", "", {"name": "summac-zs", "score": "difference"}, ""),
    ],
)
def test_settings_that_change_the_number_are_named(metric, judge, changes, expected):
    assert stand_in({**OF_THE_PAPER, "metrics": [changes]}, metric, judge) == expected


@pytest.mark.parametrize("protocol", [None, "per-user", {}, {"empty": "zero"}])
def test_rows_without_statements_must_be_left_out_as_in_the_paper(protocol):
    config = {**OF_THE_PAPER, "protocol": protocol}
    for metric, judge in (
        ("St2Exp-R", "llm"),
        ("StEnt-F1", "nli"),
        ("StEnt-bin-P", "nli"),
        ("StCoh-P", "nli"),
    ):
        assert stand_in(config, metric, judge) == "protocol.empty: zero in place of skip"
    assert stand_in(config, "BERTScore-F", "") == ""


def test_statements_in_table_2_are_those_of_the_extractor():
    known = {
        "data": {"users": 2, "items": 2, "train": 2, "validation": 0, "test": 1},
        "statements": {"statements": 9, "distinct": 7},
    }
    run = SimpleNamespace(config={"extractor": "rules"}, summaries=lambda kind: {"toys": known[kind]})
    found = {line["metric"]: line["stand_in"] for line in _statistics([run])}
    assert {name for name, other in found.items() if other} == {
        *("Avg/interaction", "Avg/user", "Avg/item", "Unique", "Total")
    }
    assert found["Total"] == "rules in place of Llama-3-8B-Instruct"
