"""The grid of a recommender study, and a whole run with a recommender and explainers that were never packaged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cfbench_core import analyse, run
from cfbench_core.api import execute, plan, prepare
from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(SAMPLES)


def study(**changes: Any) -> dict[str, Any]:
    return {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": [{"import": "my_lab:CoOccurrence", "label": "co"}],
        "explainers": [
            {"import": "my_lab:ByIndex"},
            {"import": "my_lab:TakesTheFirst"},
            {"import": "my_lab:NeedsTraining"},
        ],
        "protocol": {"k": [3], "users": 20},
        "executor": "inline",
        **changes,
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("suite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.chdir(SAMPLES)
        return run(study(), out=folder / "run")


@pytest.mark.parametrize("wrong", [0, -1, [-5, None, 2]])
def test_an_answer_may_be_limited_to_one_edit_or_more(wrong: Any) -> None:
    with pytest.raises(UserError, match=r"protocol.max_edits(\[0\])?: must be a whole number >= 1, got"):
        plan(study(protocol={"k": [3], "users": 20, "max_edits": wrong}))


def test_capabilities_follow_from_the_methods_of_a_class() -> None:
    cells = {cell.id: cell for cell in plan(study()).cells}
    assert len(cells) == 12  # 3 explainers, item and list, implicit and explicit
    skipped = {id: cell.skipped for id, cell in cells.items() if cell.skipped}
    assert skipped == {
        f"debian-python/co/takes-the-first/{level}/implicit/user-vector/remove/3/-": "no implicit format"
        for level in ("item", "list")
    }
    assert (
        "explainer"
        not in cells["debian-python/co/by-index/item/implicit/user-vector/remove/3/-"]
        .stages["explanations"]
        .inputs
    )
    assert (
        "explainer"
        in cells["debian-python/co/needs-training/item/implicit/user-vector/remove/3/-"]
        .stages["explanations"]
        .inputs
    )


def test_two_checkpoints_of_one_name_are_refused() -> None:
    protocol = {"users": 20, "checkpoints": {"training": [0.5, 0.50000001]}}
    with pytest.raises(UserError, match="two shares are called 50%"):
        plan(study(recommenders=["mf"], protocol=protocol))


def test_explainers_know_what_the_recommender_declares() -> None:
    recommenders = [{"import": "my_lab:CoOccurrence", "label": "co"}, "item-knn", "vae"]
    access = {
        str(cell.labels["model"]): cell.stages["explanations"].parameters["access"]
        for cell in plan(study(recommenders=recommenders, explainers=[{"import": "my_lab:ByIndex"}])).cells
    }
    assert access == {
        "co": ["scores", "weights"],
        "item-knn": ["gradients", "scores", "weights"],
        "vae": ["embeddings", "gradients", "scores"],
    }


def test_planning_computes_each_shared_stage_once() -> None:
    stages = plan(study()).stages()
    kinds = [stage.kind for stage in stages]
    assert (kinds.count("data"), kinds.count("split"), kinds.count("model")) == (1, 1, 1)
    assert kinds.count("units") == 2  # item and list
    # importances serve the implicit and the derived explicit answers
    importances = [
        stage
        for stage in stages
        if stage.kind == "explanations"
        and "explainer" in stage.parameters
        and stage.parameters["format"] == "implicit"
    ]
    assert len(importances) == 4


def test_graph_recommenders_are_skipped_for_users_outside_their_graph() -> None:
    cells = plan(study(recommenders=["lightgcn"], split={"kind": "per-user"})).cells
    assert all("users outside its graph" in cell.skipped for cell in cells)


def test_a_run_has_every_unit_and_metric(done: Run) -> None:
    assert {cell.status for cell in done.cells()} == {"ok", "skipped"}
    scores = done.scores
    item = scores[
        (scores["level"] == "item") & (scores["explainer"] == "by-index") & (scores["metric"] == "POS-P@3")
    ]
    assert len(item) == 60 and item["unit"].is_unique
    assert (item["unit"] == item["user"] + "/" + item["item"]).all()
    assert set(item["rank"]) == {1, 2, 3}
    assert done.quality["metric"].tolist()[:2] == ["HR@10", "NDCG@10"]


def test_details_and_model_queries_are_stored(tmp_path: Path, done: Run) -> None:
    details = done.details
    queries = details[details["name"] == "model queries"].groupby("cell")["value"].agg(["min", "max"])
    first = queries.loc["debian-python/co/takes-the-first/item/explicit/user-vector/remove/3/100"]
    assert tuple(first) == (1.0, 1.0)  # verified once; padding of blocks does not count
    assert queries.loc["debian-python/co/by-index/item/implicit/user-vector/remove/3/-", "max"] == 0.0

    telling = study(explainers=[{"import": "my_lab:TellsTheLength"}])
    again = run(telling, out=tmp_path / "run")
    lengths = again.details[again.details["name"] == "length"]
    assert len(lengths) == 60 + 20 and lengths["value"].min() >= 1  # item and list level
    assert "length" in set(analyse("details", again)["metric"])


def test_details_of_another_shape_are_refused(tmp_path: Path) -> None:
    wrong = study(explainers=[{"import": "my_lab:TellsTheLength", "damping": 0}])
    (cell, *_) = [c for c in run(wrong, out=tmp_path / "run").cells() if c.status != "skipped"]
    assert cell.status == "failed" and "detail 'length' has shape" in cell.reason


def test_an_explanation_in_words_is_true(done: Run) -> None:
    from cfbench_recsys.suite import RecsysSuite

    words = RecsysSuite().verbalize(done)
    match = re.fullmatch(
        r"(\S+) was recommended to (\S+) \(place (\d+)\) because it depends on (.+); without (it|these \w+) it would "
        r"fall to place (\d+) \(co, explained by ([a-z-]+)\)\.",
        words,
    )
    assert match, words
    item, user, place, removed, _, after, explainer = match.groups()
    unit = done.scores[
        (done.scores["explainer"] == explainer) & (done.scores["unit"] == f"{user}/{item}")
    ].drop_duplicates("metric")
    assert dict(zip(unit["metric"], unit["value"], strict=True))["Rank after"] == int(after)
    assert set(unit["rank"]) == {int(place)}
    edits = done.explanations
    edits = edits[(edits["explainer"] == explainer) & (edits["unit"] == f"{user}/{item}")]
    assert re.split(", | and ", removed) == edits[edits["format"] == "explicit"]["edge_item"].tolist()


def test_an_explanation_is_verbalized_without_the_data_too(
    done: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from cfbench_recsys.suite import RecsysSuite

    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "empty"))
    assert "because they interacted with python3-" in RecsysSuite().verbalize(done)


@pytest.mark.parametrize(("split", "said"), [("per-interaction", "20 users"), ("per-user", "up to 20 users")])
def test_the_head_line_shows_the_data_and_the_number_of_explained_users(split: str, said: str) -> None:
    known = {"users": 30, "text": "debian-python (30 packages)", "differences": []}
    prepared = prepare(study(split={"kind": split}))
    words = prepared.suite.describe_data(prepared.config, {"debian-python": known})
    assert words == f"debian-python (30 packages) · {said}"


def test_external_explanations_get_the_same_numbers(done: Run, tmp_path: Path) -> None:
    for suffix, write in {".parquet": pd.DataFrame.to_parquet, ".csv": pd.DataFrame.to_csv}.items():
        table = done.explanations[
            ["unit", "explainer", "level", "format", "edge_user", "edge_item", "op", "importance"]
        ]
        path = tmp_path / f"elsewhere{suffix}"
        write(table.sample(frac=1.0, random_state=1), path, index=False)
        scored = execute(prepare(study(), explanations=path), out=tmp_path / suffix)
        keys = ["cell", "metric", "unit"]
        theirs, ours = (
            r.scores[r.scores["status"] == "ok"].sort_values(keys).set_index(keys)["value"]
            for r in (scored, done)
        )
        pd.testing.assert_series_equal(theirs.loc[ours.index], ours, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"edge_item": "no-such-package"}, "edge_item 'no-such-package' is not in debian-python"),
        ({"op": "add"}, "adds an interaction that exists"),
        ({"edge_user": "another"}, "edge_user 'another' is not in debian-python"),
    ],
)
def test_explanations_that_do_not_fit_are_refused(
    done: Run, tmp_path: Path, change: dict[str, str], said: str
) -> None:
    table = done.explanations[done.explanations["explainer"] == "takes-the-first"].copy()
    table.loc[table.index[0], list(change)] = list(change.values())
    table.to_parquet(tmp_path / "wrong.parquet")
    scored = execute(prepare(study(), explanations=tmp_path / "wrong.parquet"), out=tmp_path / "run")
    reasons = [cell.reason for cell in scored.cells() if cell.problem]
    assert any(said in reason for reason in reasons), reasons


def test_a_word_that_is_no_operation_is_refused_when_planning(done: Run, tmp_path: Path) -> None:
    done.explanations.assign(op="burn").to_parquet(tmp_path / "wrong.parquet")
    with pytest.raises(UserError, match="row 1: op must be remove or add, got 'burn'"):
        prepare(study(), explanations=tmp_path / "wrong.parquet")


def test_a_table_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(UserError, match="not a Parquet file"):
        prepare(study(), explanations=tmp_path / "cut.parquet")
    with pytest.raises(UserError, match="no such file"):
        prepare(study(), explanations=tmp_path / "gone.parquet")


def test_weights_from_a_file_give_the_same_recommendations(done: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    trained = run(study(recommenders=["mf"]), out=tmp_path / "trained")
    from cfbench_core.store import Store

    stage = next(
        stage for stage in prepare(study(recommenders=["mf"])).plan.stages() if stage.kind == "model"
    )
    weights = Store().path("model", stage.key) / "state.safetensors"
    loaded = run(study(recommenders=[{"name": "mf", "weights": str(weights)}]), out=tmp_path / "loaded")
    columns = ["explainer", "level", "format", "metric", "unit", "value"]
    pd.testing.assert_frame_equal(trained.scores[columns], loaded.scores[columns])


def test_chosen_users_are_explained(tmp_path: Path, done: Run) -> None:
    (tmp_path / "users.csv").write_text("user\npython3-spyder\n")
    chosen = study(protocol={"k": [3], "users_file": str(tmp_path / "users.csv")})
    scores = run(chosen, out=tmp_path / "run").scores
    assert set(scores["user"]) == {"python3-spyder"}
    (tmp_path / "users.csv").write_text("user\npython3-spyderr\n")
    failed = run(chosen, out=tmp_path / "again", fresh=True)
    assert all(
        "'python3-spyderr' is not a user of debian-python" in c.reason for c in failed.cells() if c.problem
    )
    assert failed.exit_code == 1


def test_a_file_that_names_no_user_is_the_reason_of_every_cell(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user\n")
    failed = run(study(protocol={"k": [3], "users_file": str(tmp_path / "users.csv")}), out=tmp_path / "run")
    reasons = {cell.reason for cell in failed.cells() if cell.problem}
    assert reasons and all(reason.endswith("users.csv: names no user") for reason in reasons)


def test_chunks_change_no_rank_and_no_value(tmp_path: Path, done: Run) -> None:
    other = run(study(chunk=7), out=tmp_path / "run")
    keys = ["cell", "metric", "unit"]
    a, b = (r.scores.sort_values(keys).reset_index(drop=True)["value"].to_numpy() for r in (done, other))
    assert np.array_equal(a, b, equal_nan=True)
