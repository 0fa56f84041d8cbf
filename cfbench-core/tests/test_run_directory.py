from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from made_up_run import write_run

from cfbench_core.errors import UserError
from cfbench_core.run_directory import Run, write_summary


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def directory(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "run")


def test_a_run_is_read_as_it_was_written(directory: Path) -> None:
    run = Run(str(directory))
    assert run.suite == "shop"
    assert run.layout.by == ("dataset", "model", "level", "k")
    assert run.config["protocol"] == {"k": [5]}
    assert run.environment["packages"]["numpy"] == "2.4.6"
    assert [column.name for column in run.columns] == ["POS-P@5", "NEG-P@5", "gini"]
    assert run.columns[0].range == (0.0, 1.0)
    assert {"user", "rank", "value", "status"} <= set(run.scores.columns)
    assert run.explanations["op"].eq("remove").all()
    assert run.quality.set_index(["model", "metric"])["value"]["mf", "HR@10"] == 0.49
    assert (run.costs["elapsed_seconds"] > 0).all()


def test_cells_have_the_status_in_which_they_ended(directory: Path) -> None:
    run = Run(directory)
    assert len(run.cells()) == 24
    (failed,) = run.cells("failed")
    assert failed.labels == {
        "dataset": "toy-shop",
        "model": "lightgcn",
        "explainer": "cosine",
        "level": "list",
        "k": 5,
    }
    assert failed.reason.startswith("ValueError") and failed.problem
    assert [cell.role for cell in run.cells("skipped")] == ["certified", "certified"]
    assert {cell.status for cell in run.cells() if cell.problem} == {"partial", "timeout", "failed"}


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["ok", "cached", "skipped"], 0),
        (["ok", "failed"], 1),
        (["ok", "partial"], 1),
        (["ok", "planned"], 1),
        (["skipped", "skipped"], 3),
        ([], 3),
    ],
)
def test_the_exit_code_follows_the_outcomes(directory: Path, statuses: list[str], code: int) -> None:
    plan = json.loads((directory / "plan.json").read_text())
    plan["cells"] = [
        {**cell, "status": status} for cell, status in zip(plan["cells"], statuses, strict=False)
    ]
    (directory / "plan.json").write_text(json.dumps(plan))
    assert Run(directory).exit_code == code


def test_the_summary_has_a_row_for_each_cell_and_metric_that_was_to_run(directory: Path) -> None:
    run = Run(directory)
    assert write_summary(run) == directory / "summary.csv"
    summary = pd.read_csv(directory / "summary.csv").set_index(["cell", "metric"])
    assert len(summary) == 22 * 3 + 20  # two cells are skipped; two that were to run have no times
    scores = pd.read_parquet(directory / "scores.parquet").groupby(["cell", "metric"])["value"]
    pd.testing.assert_series_equal(
        summary["mean"].drop("time", level="metric").dropna().sort_index(),
        scores.mean().dropna().rename("mean"),
        rtol=1e-9,
    )
    assert summary.loc[("toy-shop/mf/slow & careful_1/item/5", "gini"), ["n", "n_missing"]].tolist() == [
        100,
        200,
    ]
    assert summary.loc[("toy-shop/lightgcn/cosine/list/5", "gini"), ["n", "n_missing"]].tolist() == [0, 60]
    assert summary.loc[("toy-shop/lightgcn/cosine/list/5", "gini"), "status"] == "failed"
    costs = pd.read_parquet(directory / "costs.parquet")
    mine = costs[costs["cell"] == "toy-shop/mf/shap/list/5"]["elapsed_seconds"]
    assert summary.loc[("toy-shop/mf/shap/list/5", "time"), "mean"] == pytest.approx(mine.mean())
    assert run.summary["mean"].notna().sum() == summary["mean"].notna().sum()


def test_intervals_of_a_run_resample_users(directory: Path) -> None:
    """Five similar items of a user say hardly more than one: the interval is that of the users' means."""
    summary = Run(directory).summary.set_index(["cell", "metric"])
    row = summary.loc[("toy-shop/mf/shap/item/5", "POS-P@5")]
    half_width = (row["ci_high"] - row["ci_low"]) / 2
    as_if_independent = 1.96 * row["std"] / row["n"] ** 0.5
    assert half_width > 1.8 * as_if_independent


def test_times_shared_by_a_batch_count_as_one_measurement(directory: Path) -> None:
    costs = pd.read_parquet(directory / "costs.parquet")
    mine = costs["cell"] == "toy-shop/mf/shap/list/5"
    costs.loc[mine, "elapsed_seconds"] = [0.010] * 30 + [0.012] * 30
    costs.loc[costs["cell"] == "toy-shop/mf/cosine/list/5", "elapsed_seconds"] = 0.001
    costs.to_parquet(directory / "costs.parquet")
    summary = Run(directory).summary.set_index(["cell", "metric"])
    two_batches = summary.loc[("toy-shop/mf/shap/list/5", "time")]
    assert two_batches[["mean", "ci_low", "ci_high"]].tolist() == pytest.approx([0.011, 0.010, 0.012])
    one_batch = summary.loc[("toy-shop/mf/cosine/list/5", "time")]
    assert one_batch["mean"] == pytest.approx(0.001)
    assert pd.isna(one_batch["ci_low"]) and pd.isna(one_batch["ci_high"])


def test_the_layout_may_name_another_column_that_units_share(directory: Path) -> None:
    scores = pd.read_parquet(directory / "scores.parquet").rename(columns={"user": "household"})
    scores.to_parquet(directory / "scores.parquet")
    independent = Run(directory).summary.set_index(["cell", "metric"])
    plan = json.loads((directory / "plan.json").read_text())
    plan["layout"]["cluster"] = "household"
    (directory / "plan.json").write_text(json.dumps(plan))
    clustered = Run(directory).summary.set_index(["cell", "metric"])
    key = ("toy-shop/mf/shap/item/5", "POS-P@5")
    widths = [float(s.loc[key, "ci_high"] - s.loc[key, "ci_low"]) for s in (independent, clustered)]
    assert widths[1] > 1.8 * widths[0]


def test_how_each_piece_of_work_ended_is_read_but_not_the_half_line_of_a_kill(directory: Path) -> None:
    whole = {"key": "a", "kind": "data", "status": "ok", "elapsed_seconds": 1.5, "peak_memory_bytes": 1}
    lines = [
        json.dumps(whole),
        '{"key": "b", "sta',
        "",
        "[1]",
        '{"key": 3}',
        json.dumps(whole | {"key": "c"}),
    ]
    (directory / "outcomes.jsonl").write_text("\n".join(lines) + "\n")
    found = Run(directory).outcomes
    assert [line["key"] for line in found] == ["a", "c"] and found[0]["elapsed_seconds"] == 1.5


def test_a_run_where_all_is_skipped_has_empty_tables(directory: Path) -> None:
    plan = json.loads((directory / "plan.json").read_text())
    for cell in plan["cells"]:
        cell |= {"status": "skipped", "reason": "no list level", "metrics": []}
    (directory / "plan.json").write_text(json.dumps(plan))
    for name in ("scores.parquet", "explanations.parquet", "costs.parquet"):
        (directory / name).unlink()
    run = Run(directory)
    assert run.scores.empty and run.explanations.empty and run.costs.empty
    write_summary(run)
    assert run.summary.empty


READ: dict[str, Callable[[Run], object]] = {
    "plan.json": lambda run: run.plan,
    "config.yaml": lambda run: run.config,
    "environment.json": lambda run: run.environment,
    "scores.parquet": lambda run: run.scores,
    "explanations.parquet": lambda run: run.explanations,
    "costs.parquet": lambda run: run.costs,
    "quality.csv": lambda run: run.quality,
}


@pytest.mark.parametrize("name", READ)
def test_a_missing_file_is_one_line(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(UserError) as caught:
        READ[name](Run(directory))
    assert name in str(caught.value) and str(directory) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [*READ, "summary.csv"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff{[not what it says"])
def test_a_damaged_file_is_one_line(directory: Path, name: str, content: bytes) -> None:
    write_summary(Run(directory))
    (directory / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        READ.get(name, lambda run: run.summary)(Run(directory))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["scores.parquet", "costs.parquet", "explanations.parquet"])
def test_a_truncated_parquet_file_is_one_line(directory: Path, name: str) -> None:
    whole = (directory / name).read_bytes()
    (directory / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="cannot be read") as caught:
        READ[name](Run(directory))
    assert "\n" not in str(caught.value)


def test_a_table_without_its_columns_is_one_line(directory: Path) -> None:
    pd.read_parquet(directory / "scores.parquet").drop(columns="value").to_parquet(
        directory / "scores.parquet"
    )
    with pytest.raises(UserError, match="has no column value"):
        _ = Run(directory).scores


def test_what_is_no_run_directory_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such directory"):
        Run(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"no plan\.json"):
        Run(tmp_path)


def test_explanations_of_a_cell_are_the_same_however_large_the_table_is(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Run(directory)
    monkeypatch.setattr("cfbench_core.run_directory._SMALL", 0)
    large = Run(directory)
    cells = list(small.explanations["cell"].unique())
    assert len(cells) > 3
    for cell in [*cells, "no such cell"]:
        expected = small.explanations[small.explanations["cell"] == cell].reset_index(drop=True)
        pd.testing.assert_frame_equal(small.explanations_of(cell), expected)
        pd.testing.assert_frame_equal(large.explanations_of(cell), expected)
