"""``cfbench reproduce``: a paper's numbers next to ours, from configurations that a package ships."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from cfbench_core.api import prepare
from cfbench_core.cli.commands.reproduce import _needs
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_core.replications import (
    PublishedItem,
    Replication,
    ReplicationStudy,
    check_changes,
    find_replication,
    prepare_study,
    reproduce,
)
from cfbench_core.run_directory import Run

from .conftest import Command, Install

PLUGIN = """
from cfbench_core.hooks import hookimpl

@hookimpl
def cfbench_components():
    import toy_replication
    return toy_replication.SPECS
"""

BROKEN = """
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@hookimpl
def cfbench_components():
    return [ComponentSpec(id="toy/replication/unreadable", summary="S", target="no_such_package.paper:paper")]
"""


@pytest.fixture
def paper(toy: Path, install: Install) -> Path:
    install("cfbench-toy-paper", "1.0", PLUGIN)
    return toy


def test_numbers_get_verdicts_and_their_run_is_stored(paper: Path, cfbench: Command) -> None:
    found = cfbench("reproduce", "digits", "table-1", "table-2", "--format", "csv")
    assert found.code == 0, found.err
    rows = {row["item"]: row for row in csv.DictReader(io.StringIO(found.out))}
    assert float(rows["table-1"]["ours"]) == mean_of_sums(20)
    assert [rows[item]["verdict"] for item in ("table-1", "table-2")] == ["confirmed", "refuted"]
    assert Run(paper / "reproductions/digits/small/sums").exit_code == 0
    assert "study sums of Digits, scale small" in found.err


def mean_of_sums(count: int) -> float:
    return sum(sum(map(int, str(2 * number))) for number in range(count)) / count


def test_only_the_chosen_table_is_shown(paper: Path, cfbench: Command) -> None:
    found = cfbench("reproduce", "digits", "table-2", "--format", "csv", "--output", "mine")
    assert [row["item"] for row in csv.DictReader(io.StringIO(found.out))] == ["table-2"]
    assert "1 numbers were compared" in cfbench("reproduce", "digits", "table-2", "--output", "mine").out
    assert (paper / "mine/sums/scores.parquet").is_file() and not (paper / "reproductions").exists()


def test_runs_are_not_put_into_another_run(paper: Path, cfbench: Command) -> None:
    assert cfbench("reproduce", "digits", "table-1", "--output", "mine").code == 0
    before = sorted(path.name for path in (paper / "mine/sums").iterdir())
    found = cfbench("reproduce", "digits", "table-1", "--output", "mine/sums")
    assert found.code == 2 and found.err.endswith(
        "mine/sums: is a run; give a folder for the runs, one for each study\n"
    )
    with pytest.raises(UserError, match="is a run"):
        reproduce("digits", ["table-1"], out=paper / "mine/sums")
    assert sorted(path.name for path in (paper / "mine/sums").iterdir()) == before


def test_data_sets_are_given_once(paper: Path, cfbench: Command) -> None:
    found = cfbench("reproduce", "digits", "--data", "numbers", "--set", "data=numbers")
    assert (found.code, found.err) == (2, "the data sets are given twice, by --data and by --set\n")
    with pytest.raises(UserError, match="the data sets are given twice, by --data and by --set"):
        reproduce("digits", data=["numbers"], set=["data=numbers"])


def test_a_plain_string_is_one_item_one_data_set_and_one_change(paper: Path) -> None:
    with pytest.raises(UserError, match="no table or figure 'table-11' in Digits"):
        reproduce("digits", "table-11")
    with pytest.raises(UserError, match="--data numbrs: data: must be one dataset"):
        reproduce("digits", "table-1", data="numbrs")
    found = reproduce("digits", "table-1", set="data.count=10", out=paper / "here")
    assert found.table["ours"].tolist() == [mean_of_sums(10)]


def test_the_scale_changes_the_study(paper: Path, cfbench: Command) -> None:
    found = cfbench("reproduce", "digits", "table-1", "--scale", "paper", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(found.out))
    assert float(row["ours"]) == mean_of_sums(40)


def test_a_change_on_the_command_line_is_applied_last(paper: Path, cfbench: Command) -> None:
    found = cfbench("reproduce", "digits", "table-1", "--set", "data.count=10", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(found.out))
    assert float(row["ours"]) == mean_of_sums(10)


def test_a_second_call_resumes(paper: Path, cfbench: Command) -> None:
    first = cfbench("reproduce", "digits", "table-1", "--format", "csv")
    second = cfbench("reproduce", "digits", "table-1", "--format", "csv")
    assert first.out == second.out
    lines = (paper / "reproductions/digits/small/sums/outcomes.jsonl").read_text().splitlines()
    last = {outcome["key"]: outcome["status"] for outcome in map(json.loads, lines)}
    assert set(last.values()) == {"cached"}


def test_the_help_describes_the_folder_of_a_paper_and_offers_no_suite(paper: Path, cfbench: Command) -> None:
    words = " ".join(cfbench("reproduce", "--help").out.split())
    assert "The folder of the runs, one for each study; reproductions/PAPER/SCALE unless given." in words
    assert "runs/" not in words and "--suite" not in words
    assert "--suite" in cfbench("run", "--help").out


def test_a_failed_study_ends_with_exit_code_1(paper: Path, cfbench: Command) -> None:
    found = cfbench("reproduce", "digits", "table-3")
    assert found.code == 1


def test_what_cannot_run_is_known_before_other_studies_run(paper: Path, cfbench: Command) -> None:
    """The second of two studies names a model that does not exist: in one line, and the first has not run."""
    found = cfbench("reproduce", "digits", "table-1", "table-4")
    assert found.code == 2 and "no-such-model" in found.err
    with pytest.raises(UserError, match="no-such-model"):
        reproduce("digits", ["table-1", "table-4"])
    assert not (paper / "reproductions").exists()


def test_all_of_a_scale_leaves_out_what_it_does_not_measure(paper: Path) -> None:
    replication = find_replication("digits")[1]
    assert [item.name for item in replication.chosen([], "paper")] == ["table-1", "table-2", "table-3"]
    assert [item.name for item in replication.chosen([], "small")][-1] == "table-4"


def test_the_list_shows_tables_costs_and_reasons(paper: Path, cfbench: Command) -> None:
    shown = cfbench("reproduce", "digits", "--list").out
    assert "digits: Digits" in shown and "nothing is measured" in shown
    (line,) = (line for line in shown.splitlines() if line.strip().startswith("table-1"))
    assert "90 min" in line and "not measured" in line
    whole = json.loads(cfbench("reproduce", "digits", "--list", "--format", "json").out)
    assert [item["item"] for item in whole[0]["items"]] == [
        *("table-1", "table-2", "table-3", "table-4", "figure-1")
    ]
    (other,) = (line.split() for line in shown.splitlines() if line.strip().startswith("table-4"))
    assert other[:8] == ["table-4", "an", "unknown", "model", "not", "measured", "-", "-"]
    assert not (paper / "reproductions").exists()


def test_a_list_with_other_data_is_that_without(paper: Path, cfbench: Command) -> None:
    plain = cfbench("reproduce", "digits", "table-1", "--list")
    with_data = cfbench("reproduce", "digits", "table-1", "--list", "--set", "data.count=3")
    assert (with_data.code, with_data.out) == (0, plain.out)
    assert not (paper / "reproductions").exists()


def test_the_list_of_named_items_has_no_others(paper: Path, cfbench: Command) -> None:
    """Each once, those that are not reproduced too, and the studies that measure them."""
    listed = cfbench(
        "reproduce", "digits", "figure-1", "table-1", "table-1", "--list", "--format", "json"
    ).out
    (whole,) = json.loads(listed)
    assert [item["item"] for item in whole["items"]] == ["figure-1", "table-1"]
    assert [study["study"] for study in whole["studies"]] == ["sums"]
    assert "Times are those of all tasks" in cfbench("reproduce", "digits", "table-1", "--list").out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("digits", "table-11", "--list"), "Did you mean 'table-1'?"),
        (("digits", "broken"), "broken is another paper: reproduce one at a time"),
        (("digts",), "Did you mean 'digits'?"),
        (("digits", "table-11"), "Did you mean 'table-1'?"),
        (("digits", "figure-1"), "figure-1 of Digits is not reproduced: nothing is measured"),
        (("digits", "table-3", "--scale", "paper"), "there is no study at the scale paper"),
        (
            ("digits", "table-4", "--scale", "paper"),
            "table-4 of Digits is not reproduced at the scale paper: the model is of the small study",
        ),
        (("broken",), "must return a Replication"),
        (("digits", "--suite", "toy"), "--suite does not apply"),
        (("digits", "table-1", "--list", "--set", "data=numbrs"), "Did you mean 'numbers'?"),
        (("digits", "table-1", "--list", "--data", "numbers"), "--data numbers: data: must be one dataset"),
        (
            ("digits", "--set", "suite=tabular"),
            "--set suite=tabular: does not apply to reproduce: the paper determines the suite",
        ),
        (("digits", "table-1", "--list", "--set", "data.cout=3"), "Did you mean 'count'?"),
        (("--data", "numbers"), "--data, --set and --seeds change the studies of one paper"),
        (("--seeds", "1"), "--data, --set and --seeds change the studies of one paper"),
        (("digits", "--seeds", "1,x"), "--seeds 1,x: must be whole numbers separated by commas"),
        (("digits", "--seeds", "1", "--set", "seed=2"), "the seed is set twice, by --seeds and by --set"),
    ],
)
def test_a_wrong_call_is_one_line(
    paper: Path, cfbench: Command, arguments: tuple[str, ...], line: str
) -> None:
    found = cfbench("reproduce", *arguments)
    assert found.code == 2 and line in found.err and len(found.err.strip().splitlines()) == 1


def test_without_a_suite_that_has_papers_nothing_is_listed(toy: Path, cfbench: Command) -> None:
    if any(True for _ in json.loads(cfbench("list", "replications", "--format", "json").out or "[]")):
        pytest.skip("other distributions that are installed here bring replications")
    assert "No installed suite brings a replication" in cfbench("reproduce").out


def test_a_replication_that_cannot_be_read_costs_its_own_paper_only(
    paper: Path, cfbench: Command, install: Install
) -> None:
    install("cfbench-broken-paper", "2.0", BROKEN)
    listed = cfbench("reproduce")
    assert listed.code == 0 and "digits: Digits" in listed.out
    line = "toy/replication/unreadable of cfbench-broken-paper 2.0 cannot be read: ModuleNotFoundError: No module named"
    assert len([one for one in listed.err.splitlines() if one.startswith(line)]) == 1
    assert "toy/replication/broken: toy_replication" in listed.err
    as_json = cfbench("reproduce", "--format", "json")
    assert "digits" in [one["paper"] for one in json.loads(as_json.out)] and as_json.err == listed.err
    alone = cfbench("reproduce", "unreadable")
    assert alone.code == 2 and alone.err.startswith(line)


def test_a_study_without_its_configuration_is_named(paper: Path) -> None:
    for config in ("no_such_package:study.yaml", "toy_replication:no-such-file.yaml"):
        study = ReplicationStudy(name="sums", config=config, changes={"small": ()})
        with pytest.raises(UserError, match=f"the study sums: its configuration {config} does not exist"):
            check_changes(study, "small", ())


def test_a_bare_name_takes_the_options_of_the_study(paper: Path) -> None:
    descending = ("explainers=[{name: digits, order: descending}]",)
    study = ReplicationStudy(name="sums", config="toy_replication:study.yaml", changes={"small": descending})
    for change, order in (
        ("explainers=[digits]", "descending"),
        ("explainers=[{name: digits}]", "ascending"),
    ):
        planned = prepare_study(study, "small", [change], prepare)
        assert [one.options.order for one in planned.config.explainers] == [order]
    for changes in (["explainers=[plain]"], ["seed=2", "explainers=plain"]):
        with pytest.raises(UserError, match="--set explainers: the study sums has no 'plain'"):
            prepare_study(study, "small", changes, prepare)
        with pytest.raises(UserError, match="--set explainers: the study sums has no 'plain'"):
            check_changes(study, "small", changes)


def test_the_call_from_python_is_the_same(paper: Path) -> None:
    found = reproduce("digits", ["table-1"], out=paper / "here")
    assert found.table["verdict"].tolist() == ["confirmed"]
    assert [run.directory for run in found.runs] == [paper / "here/sums"]
    with pytest.raises(UserError, match="scale must be one of small, paper"):
        reproduce("digits", scale="large")
    assert find_replication("digits")[1].title == "Digits"


@pytest.mark.slow
def test_each_study_runs_once_for_each_seed(paper: Path, cfbench: Command) -> None:
    found = cfbench("reproduce", "digits", "table-1", "--seeds", "3,4,3", "--format", "csv")
    assert found.code == 0, found.err
    runs = sorted((paper / "reproductions/digits/small").iterdir())
    assert [run.name for run in runs] == ["sums-seed-3", "sums-seed-4"]
    assert [Run(run).config["seed"] for run in runs] == [3, 4]
    same = reproduce("digits", ["table-1"], seeds=(3, 4), out=paper / "here")
    assert [run.config["seed"] for run in same.runs] == [3, 4]
    assert float(next(csv.DictReader(io.StringIO(found.out)))["ours"]) == same.table["ours"].iloc[0]


def test_a_replication_of_a_plugin_that_could_not_be_loaded_is_hinted_at(
    paper: Path, install: Install, cfbench: Command
) -> None:
    """As for a component of a configuration that is not found."""
    assert "could not be loaded" not in cfbench("reproduce", "mine").err
    install("cfbench-broken", "0.3", "import a_module_that_is_nowhere\n")
    found = cfbench("reproduce", "mine")
    problem = "ModuleNotFoundError: No module named 'a_module_that_is_nowhere'"
    hint = f"It may be in what could not be loaded: cfbench-broken ({problem}); see cfbench plugins."
    assert found.code == 2 and found.err.startswith(f"no replication 'mine'. {hint}  (")
    with pytest.raises(UserError, match="could not be loaded: cfbench-broken"):
        installed().find("toy", "explainer", "mine")


@pytest.mark.parametrize("changes", [("seed=7",), ()])
def test_seeds_of_studies_are_not_replaced(changes: tuple[str, ...]) -> None:
    """Whether the studies have seeds of their own or not: the message says nothing of them."""
    study = ReplicationStudy(name="a", config="p:a.yaml", changes={"small": changes})
    fixed = Replication(title="T", paper="p", studies=(study,), items=(), analysis="a")
    assert fixed.with_seeds([study], ()) == [study]
    with pytest.raises(UserError, match=r"T: its analysis does not compare runs of several seeds$"):
        fixed.with_seeds([study], (1, 2))


def test_a_replication_cannot_name_unknown_studies_or_hide_a_reason() -> None:
    study = ReplicationStudy(name="a", config="p:a.yaml", changes={"small": ()})
    for item in (
        PublishedItem(name="table-1", caption="c", studies=("b",)),
        PublishedItem(name="table-1", caption="c"),
        PublishedItem(name="table-1", caption="c", studies=("a",), scales=("small",)),
    ):
        with pytest.raises(ValueError, match="table-1"):
            Replication(title="T", paper="p", studies=(study,), items=(item,), analysis="a")


@pytest.mark.parametrize(
    ("needs", "shown"),
    [
        ({}, ""),
        ({"small": "a file", "paper": "a file"}, "a file"),
        ({"small": "a file", "paper": "a GPU"}, "small: a file; paper: a GPU"),
        ({"paper": "a GPU"}, "paper: a GPU"),
    ],
)
def test_what_a_study_needs_at_all_scales_is_said_once(needs: dict[str, str], shown: str) -> None:
    assert _needs(ReplicationStudy(name="sums", config="a:b.yaml", changes={}, needs=needs)) == shown
