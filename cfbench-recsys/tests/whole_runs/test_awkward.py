"""Whole runs over what goes wrong: awkward users and files, components that misbehave."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from studies import SAMPLES, by_explainer, study, values

from cfbench_core import run
from cfbench_core.api import prepare
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run


@pytest.fixture(scope="module")
def all_users(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All users explained in every way, with lists of 3 and of 50."""
    folder = tmp_path_factory.mktemp("all_users")
    explainers = [{"import": "my_lab:ByIndex"}, {"import": "my_lab:TakesTheFirst"}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        patch.chdir(SAMPLES)
        whole = study(shop, explainers=explainers, protocol={"k": [3, 50], "users": 100})
        return run(whole, out=folder / "run")


def test_awkward_users_fail_nothing(all_users: Run) -> None:
    assert all_users.exit_code == 0
    assert {cell.status for cell in all_users.cells()} == {"ok", "skipped"}
    scores = all_users.scores  # a value that a metric does not define for a unit is marked as skipped
    assert (scores["status"] == np.where(scores["value"].isna(), "skipped", "ok")).all()


def test_a_user_with_one_interaction_is_scored_as_the_formulas_say(all_users: Run) -> None:
    scores = all_users.scores[(all_users.scores["user"] == "one") & (all_users.scores["k"] == 3)]
    item = scores[(scores["level"] == "item") & (scores["explainer"] == "by-index")]
    assert len(values(item, metric="POS-P@3")) == 3
    # there is one order of one interaction: most and least important first are the same
    assert values(item, metric="POS-P@3") == values(item, metric="NEG-P@3")
    # only the last of ten steps removes it, and what is left is the empty profile
    assert values(item, metric="POS-P@3") == values(item, metric="Empty-profile POS-P@3")
    assert set(values(item, metric="Full removal").values()) == {1.0}
    assert set(values(item, metric="Gini").values()) == {0.0}
    # the empty profile of this recommender scores every item 0: lower indices come first
    retained = {f"one/i{index:02}" for index in (0, 1, 2)}
    gone = {unit: float(unit not in retained) for unit in values(item, metric="PN-S@3")}
    assert values(item, metric="PN-S@3") == gone
    first = scores[(scores["level"] == "item") & (scores["explainer"] == "takes-the-first")]
    assert values(first, metric="PN-S@3") == gone
    whole = scores[(scores["level"] == "list") & (scores["explainer"] == "takes-the-first")]
    assert values(whole, metric="PN-S@3") == {"one": pytest.approx(np.mean([*gone.values()]))}
    edited = all_users.explanations[all_users.explanations["user"] == "one"]
    assert set(edited["edge_user"]) == {"one"} and set(edited["edge_item"]) == {"i03"}


def test_users_with_fewer_candidates_than_places_have_the_items_they_have(all_users: Run) -> None:
    of_3 = all_users.scores[all_users.scores["k"] == 3]
    cell = {"metric": "PN-S@3", "explainer": "by-index"}
    # two of the twelve items of "all" were held out, and two of the eleven of "nearly"
    items = values(of_3[of_3["user"] == "all"], level="item", **cell)
    assert len(items) == 2 and set(items.values()) == {0.0}
    assert len(values(of_3[of_3["user"] == "nearly"], level="item", **cell)) == 3
    lists = values(of_3, level="list", **cell)
    assert len(lists) == 32 and "all" not in lists and "nearly" in lists
    for cell_of_3 in all_users.cells("ok"):
        if cell_of_3.labels["k"] == 3:
            assert cell_of_3.reason.startswith("1 of 33 users have fewer than 3 items left to recommend: ")


def test_lists_longer_than_the_catalogue_are_skipped_and_their_items_cannot_leave_them(
    all_users: Run,
) -> None:
    too_long = [cell for cell in all_users.cells() if cell.labels["k"] == 50]
    lists = [cell for cell in too_long if cell.labels["level"] == "list" and "format" not in cell.reason]
    assert len(lists) == 3 and {(cell.status, cell.reason) for cell in lists} == {
        ("skipped", "33 of 33 users have fewer than 50 items left to recommend: no list to explain")
    }
    scores = all_users.scores[all_users.scores["k"] == 50]
    assert set(scores["level"]) == {"item"}
    profile = all_users.scores[["user"]].drop_duplicates()
    assert set(scores["user"]) == set(profile["user"])
    assert set(scores[scores["metric"] == "POS-P@50"]["value"]) == {1.0}
    assert set(scores[scores["metric"] == "PN-S@50"]["value"]) == {0.0}


def test_a_user_to_whom_nothing_can_be_recommended_is_left_out(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user\nall\nu00\n")
    chosen = {"k": [3], "users_file": str(tmp_path / "users.csv")}
    changes = {"split": {"kind": "per-user"}, "chunk": 1}  # profiles are whole: "all" has seen everything
    done = run(study(shop, protocol=chosen, **changes), out=tmp_path / "run")
    assert done.exit_code == 0 and set(done.scores["user"]) == {"u00"}
    assert {cell.status for cell in done.cells()} == {"ok"}
    (tmp_path / "users.csv").write_text("user\nall\n")
    nothing = run(study(shop, protocol=chosen, **changes), out=tmp_path / "nothing")
    assert nothing.exit_code == 3 and nothing.scores.empty
    assert {cell.status for cell in nothing.cells()} == {"skipped"}
    assert all("1 of 1 users have fewer than 3 items left" in cell.reason for cell in nothing.cells())


def test_a_user_who_is_listed_twice_is_explained_once(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user\nu00\none\nu00\n")
    chosen = {"k": [3], "users_file": str(tmp_path / "users.csv"), "level": ["list"]}
    done = run(study(shop, protocol=chosen), out=tmp_path / "run")
    assert done.scores[done.scores["metric"] == "Gini"]["user"].tolist() == ["u00", "one"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"", "t.csv: is empty"),
        ("t.csv", b"user,item\n", "t.csv: has a header, but no rows"),
        ("t.csv", b"who,item\na,1\nb,2\n", "t.csv: no column looks like the user; name it with 'user: ...'"),
        ("t.parquet", b"PAR1 and then nothing", "t.parquet: is no whole Parquet file"),
    ],
)
def test_data_that_cannot_be_read_fail_their_cells_and_no_others(
    shop: Path, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    data = [
        {"name": "file", "path": str(shop)},
        {"name": "file", "path": str(tmp_path / name), "label": "bad"},
    ]
    done = run(study(shop, data=data), out=tmp_path / "run")
    good, bad = done.cells()
    assert (good.status, bad.status, done.exit_code) == ("ok", "failed", 1)
    assert bad.reason.startswith(str(tmp_path)) and said in bad.reason and "\n" not in bad.reason
    assert len(done.scores[done.scores["dataset"] == "file"]["unit"].unique()) == 98


def test_missing_data_are_reported_before_anything_runs(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(tmp_path / "nothing"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        prepare(
            study(shop, data="ml-1m", recommenders=["ease"], explainers=[]), access=DataAccess(offline=True)
        )
    where, remedy = caught.value.lines
    assert where.startswith("ml-1m: not found in ") and "--offline forbids downloading" in where
    assert "cfbench data fetch ml-1m" in remedy


BAD_USER = 2
""""one" is the third user by index, and in the first of four chunks, which has 29 units."""


@pytest.mark.slow
def test_explainers_that_fail_affect_their_own_chunk_and_report_why(shop: Path, tmp_path: Path) -> None:
    said = {
        "raise": ("failed", "ValueError: I do not like this user"),
        "shape": ("failed", "importances has shape (29, 1), must be (29, "),
        "nothing": ("failed", "importances must hold real numbers, got NoneType"),
        "nan": ("failed", "importances has NaN or infinity for an interaction of the user"),
        "infinity": ("failed", "importances has NaN or infinity for an interaction of the user"),
        "hang": ("timeout", "(limits.seconds: 12)"),
        "eat": ("out_of_memory", "(limits.memory_gb: 1.2)"),
    }
    bad = [
        {"import": "bad_lab:Misbehaves", "label": how, "how": how, "user": BAD_USER}
        for how in [*said, "behave"]
    ]
    done = run(
        study(
            shop,
            explainers=[{"import": "my_lab:ByIndex"}, *bad],
            executor="process",
            workers=2,
            limits={"seconds": 12, "memory_gb": 1.2},
        ),
        out=tmp_path / "run",
    )
    cells, scores = by_explainer(done), done.scores
    assert done.exit_code == 1
    assert (cells["by-index"].status, cells["behave"].status) == ("ok", "ok")
    good = values(scores, explainer="by-index", metric="POS-P@3")
    assert values(scores, explainer="behave", metric="POS-P@3") == good
    for how, (status, reason) in said.items():
        assert cells[how].status == "partial", how
        assert cells[how].reason.startswith("1 of 4 chunks: ") and reason in cells[how].reason
        own = scores[scores["explainer"] == how]
        lost = own[own["status"] != "ok"]
        assert set(lost["status"]) == {status} and lost["value"].isna().all()
        assert lost["user"].nunique() == 10 and "one" in set(lost["user"])
        assert lost["item"].notna().all() and lost["rank"].notna().all()
        retained = values(own[own["status"] == "ok"], metric="POS-P@3")
        assert retained == {unit: good[unit] for unit in retained} and len(retained) + 29 == len(good) == 98
    assert not {"user_index", "items_index", "group"} & {*scores.columns}


@pytest.mark.slow
def test_explainers_that_never_return_are_ended(shop: Path, tmp_path: Path) -> None:
    done = run(
        study(
            shop,
            explainers=[{"import": "bad_lab:Misbehaves", "how": "hang"}, {"import": "my_lab:ByIndex"}],
            executor="process",
            workers=2,
            chunk=100,
            limits={"seconds": 4},
        ),
        out=tmp_path / "run",
    )
    cells = by_explainer(done)
    assert (cells["misbehaves"].status, cells["by-index"].status) == ("timeout", "ok")
    assert set(done.scores[done.scores["explainer"] == "misbehaves"]["status"]) == {"timeout"}


@pytest.mark.parametrize("settings", [{"verify": False}, {"verify": True}, {"verify": False, "prune": True}])
def test_invalid_counterfactuals_fail_with_a_reason(
    shop: Path, tmp_path: Path, settings: dict[str, bool]
) -> None:
    """Also where verification would have dropped the answer, or pruning the edit that is not allowed."""
    said = {
        "importances": "counterfactuals must return Edits, not ndarray",
        "fewer": "counterfactuals must give one edit for each target, for its user",
        "others": "counterfactuals must give one edit for each target, for its user",
        "disorder": "the rows of its edits must ascend from 0 to ",
        "beyond": "it edits item 1",
        "foreign": " edits (all, ",
        "absent": "removes an interaction that is not there: (",
        "twice": " twice",
        "float": "edge_items of its edits must be an array of whole numbers, not float64",
        "operation": "ops of its edits must be -1 (remove) or 1 (add)",
    }
    bad = [{"import": "bad_lab:Confused", "label": how, "how": how} for how in [*said, "well"]]
    protocol = {
        "k": [3],
        "level": ["item"],
        "format": ["explicit"],
        "users": 100,
        "postprocess": settings,
    }
    done = run(study(shop, explainers=bad, protocol=protocol, chunk=100), out=tmp_path / "run")
    cells = by_explainer(done)
    assert cells.pop("well").status == "ok"
    for how, cell in cells.items():
        assert cell.status == "failed" and said[how] in cell.reason, (how, cell.reason)


@pytest.mark.parametrize("settings", [{"verify": False}, {"verify": True}, {"verify": True, "prune": True}])
def test_an_answer_beyond_the_budget_fails_its_cell_and_derived_answers_keep_to_it(
    shop: Path, tmp_path: Path, settings: dict[str, bool]
) -> None:
    """Also where verification would have dropped the answer, or pruning what is too much of it."""
    explainers = [
        {"import": "bad_lab:Confused", "label": "everything", "how": "everything"},
        {"import": "my_lab:ByIndex"},
    ]
    protocol = {"k": [3], "level": ["item"], "format": ["explicit"], "users": 100, "postprocess": settings}
    unlimited = {**protocol, "max_edits": None}
    done = run(study(shop, explainers=explainers, protocol=unlimited), out=tmp_path / "unlimited")
    assert {cell.status for cell in done.cells()} == {"ok"}
    fits = num_edits(done, "everything").max() if "prune" in settings else 1  # once it is pruned
    assert num_edits(done, "by-index").max() >= 1 + ("prune" not in settings)
    limited = {**protocol, "max_edits": int(fits)}
    done = run(study(shop, explainers=explainers, protocol=limited), out=tmp_path / "limited")
    cells = by_explainer(done)
    assert cells["by-index"].status == "ok" and 1 <= num_edits(done, "by-index").max() <= fits
    assert cells["everything"].status == ("partial" if "prune" in settings else "failed")
    assert re.search(
        r"unit '\w+/i\d+' has \d+ edits, \(\w+, i\d+\) is one too many", cells["everything"].reason
    )


def test_budgets_are_an_axis_with_a_table_each(shop: Path, tmp_path: Path) -> None:
    protocol = {"k": [3], "level": ["item"], "users": 100, "max_edits": [1, None]}
    document = study(shop, explainers=[{"import": "my_lab:ByIndex"}], protocol=protocol)
    done = run({**document, "protocol": {**protocol, "postprocess": {"verify": False}}}, out=tmp_path / "run")
    assert [cell.labels["max_edits"] for cell in done.cells()] == ["-", "1", "any"]  # importances, edits
    sizes = done.scores[done.scores["metric"] == "#Perturb"].groupby("max_edits")["value"].max()
    assert sizes["1"] == 1 < sizes["any"]
    titles = " ".join(table.title for table in tables(done))
    assert "at most 1 edit" in titles and "any number of edits" in titles


def num_edits(done: Run, explainer: str) -> pd.Series:
    scores = done.scores
    return scores[(scores["explainer"] == explainer) & (scores["metric"] == "#Perturb")]["value"]


def test_a_pretrained_explainer_without_a_state_fails_with_a_reason(shop: Path, tmp_path: Path) -> None:
    explainers = [{"import": "bad_lab:PreparesNothing"}, {"import": "my_lab:NeedsTraining"}]
    cells = by_explainer(run(study(shop, explainers=explainers), out=tmp_path / "run"))
    assert cells["needs-training"].status == "ok" and cells["prepares-nothing"].status == "failed"
    assert "a state must be NumPy arrays by name, a dict" in cells["prepares-nothing"].reason


def test_recommenders_that_go_wrong_fail_their_cells_with_the_reason(shop: Path, tmp_path: Path) -> None:
    said = {
        "raise": ("failed", "RuntimeError: did not converge"),
        "nan": ("failed", "NaN"),
        "nan-for-short-profiles": ("failed", "NaN"),
        "hang": ("timeout", "(limits.seconds: 6)"),
    }
    bad = [{"import": "bad_lab:Unfit", "label": how, "how": how} for how in said]
    done = run(
        study(
            shop,
            recommenders=[{"import": "my_lab:CoOccurrence", "label": "co"}, *bad],
            executor="process",
            workers=2,
            limits={"seconds": 6},
        ),
        out=tmp_path / "run",
    )
    cells = {str(cell.labels["model"]): cell for cell in done.cells()}
    assert cells.pop("co").status == "ok" and done.exit_code == 1
    for how, cell in cells.items():
        assert cell.status == said[how][0] and said[how][1] in cell.reason, (how, cell.reason)
        assert "\n" not in cell.reason
        assert set(done.scores[done.scores["model"] == how]["status"]) == {cell.status}
    assert len(values(done.scores, model="co", metric="POS-P@3")) == 98
    assert set(done.quality["model"]) >= {"co"}
