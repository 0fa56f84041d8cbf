"""What tables say about a judge: measured, nearest, marked."""

from __future__ import annotations

import contextlib
import csv
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cfbench_core.api import run
from cfbench_core.cli.root import main
from cfbench_core.config import ConfiguredComponent
from cfbench_core.config.component import with_defaults
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_core.reports.tables import tables
from cfbench_text.judges.nli import Config as NLIConfig
from cfbench_text.meta_evaluation import reliability as module
from cfbench_text.meta_evaluation.reliability import (
    COLUMNS,
    LEVEL,
    MARK,
    NEAREST,
    reliability_of,
    store_measurements,
)

OVERLAP = with_defaults(installed().find("text", "judge", "overlap"))


def nli(**options: object) -> ConfiguredComponent:
    spec = installed().find("text", "judge", "nli").spec
    return ConfiguredComponent("judge", "nli", spec, NLIConfig(**options), "cfbench-text")


def measured(judge: ConfiguredComponent, labelset: str, auc: float, half: float = 0.01) -> dict[str, str]:
    values = {"n": "100", "auc": f"{auc}", "auc_low": f"{auc - half}", "auc_high": f"{auc + half}"}
    names = {
        "labelset": labelset,
        "rating": NEAREST.get(labelset, "label"),
        "judge": judge.label,
        "component": judge.spec.id,
    }
    return {**names, "options": module.verdict_options(judge), "metric": "StEnt-P", "commit": "abc", **values}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "reliability.csv"


def test_the_shipped_measurements_are_of_public_sets_with_a_commit(own: Path) -> None:
    rows = module._shipped()

    assert {row["labelset"] for row in rows} == set(NEAREST)
    assert {row["component"] for row in rows} >= {"text/judge/overlap", "text/judge/similarity"}
    assert all(len(row["commit"]) == 9 and float(row["auc_low"]) <= float(row["auc"]) for row in rows)
    assert set(rows[0]) == {*COLUMNS, "commit"}


def test_overlap_is_not_reliable_and_says_so(own: Path) -> None:
    found = reliability_of(OVERLAP)

    assert found.labelset == "topical-chat" and found.doubtful and found.others is not None
    assert f"AUC {found.auc:.2f}" in found.sentence and f"not shown to be at least {LEVEL}" in found.sentence
    assert "prefer an NLI model" in found.sentence


def test_a_judge_that_nobody_measured_is_marked(own: Path) -> None:
    found = reliability_of(nli(model="org/other"))

    assert found.doubtful and "was not measured" in found.sentence and "--store" in found.sentence


def test_own_labelled_texts_are_the_nearest_and_the_model_decides(own: Path) -> None:
    judge = nli(model="org/some")
    store_measurements([measured(judge, "mine", 0.93), measured(judge, "sick", 0.9)])

    found = reliability_of(nli(model="org/some", batch=4, device="cpu"))  # the same verdicts
    assert (found.labelset, found.own, found.auc) == ("mine", True, 0.93) and not found.doubtful
    assert "your labelled texts mine (on others 0.90)" in found.sentence
    assert not reliability_of(nli(model="org/another")).labelset
    assert not reliability_of(nli(model="org/some", revision="b")).labelset

    store_measurements([measured(judge, "mine", 0.75)])  # measured again: replaces
    assert reliability_of(judge).auc == 0.75 and reliability_of(judge).doubtful
    assert len(own.read_text().splitlines()) == 3


def test_of_two_that_store_at_once_none_loses_its_measurements(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, read = threading.Barrier(2), module._rows

    def meeting(path: Path) -> list[dict[str, str]]:
        rows = read(path)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return rows

    monkeypatch.setattr(module, "_rows", meeting)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: store_measurements([measured(OVERLAP, name, 0.9)]), ["one", "two"]))
    assert sorted(line.split(",")[0] for line in own.read_text().splitlines()[1:]) == ["one", "two"]


def test_the_lower_end_of_the_interval_counts(own: Path) -> None:
    store_measurements(
        [measured(nli(model="a"), "mine", 0.85, 0.1), measured(nli(model="b"), "mine", 0.85, 0.04)]
    )

    assert reliability_of(nli(model="a")).doubtful and not reliability_of(nli(model="b")).doubtful


@pytest.mark.parametrize(
    "content", ["x,y\n1,2\n", ",".join([*COLUMNS, "commit"]) + "\na,b,c,d,e,f,many,1,1,1,c\n"]
)
def test_a_damaged_file_is_named(own: Path, content: str) -> None:
    own.parent.mkdir()
    own.write_text(content)
    with pytest.raises(UserError, match=r"reliability.csv: is damaged .*; delete it"):
        reliability_of(OVERLAP)


def test_the_command_keeps_what_it_measured(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "shop.csv"
    path.write_text("text,evidence,label\nIt is soft.,It is soft.,1\nIt is red.,It is soft.,0\nIt.,It.,1\n")
    assert main(["meta-evaluate", str(path), "--judge", "overlap", "--store"]) == 0

    with own.open() as lines:
        (row,) = [row for row in csv.DictReader(lines) if row["metric"] == "StEnt-P"]
    assert (row["labelset"], row["auc"]) == ("shop", "1.0000")
    assert reliability_of(OVERLAP).labelset == "shop"


def test_tables_and_sentences_of_a_run_carry_the_mark(own: Path, tmp_path: Path) -> None:
    document = {
        "suite": "text",
        "executor": "inline",
        "data": ["toy-reviews"],
        "extractor": "rules",
        "generators": ["most-frequent", "item-review"],
        "judges": ["overlap"],
        "metrics": ["hallucination", "bleu"],
        "protocol": {"rows": 20},
    }
    found = run(document, out=tmp_path / "run")
    (table,) = tables(found)

    marked = [header.name for header in table.headers if header.name.endswith(MARK)]
    assert marked and all("(overlap)" in name for name in marked)
    assert [note for note in table.notes if note.startswith(f"{MARK} judge overlap has AUC")]
    from cfbench_core.api import analyse
    from cfbench_text.verbalization import worst_hallucination

    answer = analyse("reliability", found)
    assert list(answer["labelset"]) == list(NEAREST) and answer["nearest"].tolist() == [
        True,
        False,
        False,
        False,
    ]
    assert not answer["reliable"].any()

    told = worst_hallucination(found)
    finding = "judge overlap finds no support in the user's review (not to be taken for a fact: judge overlap has AUC"
    assert finding in told
