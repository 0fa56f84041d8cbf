"""A run in other tools: the numbers, labels and states that their own clients read back are those of the run."""

from __future__ import annotations

import csv
import math
import shutil
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from made_up_run import write_run
from small_disk import small_disk

from cfbench_core import owners
from cfbench_core.checksums import write_checksums
from cfbench_core.cli.root import cli
from cfbench_core.errors import UserError
from cfbench_core.exports import FORMATS, export
from cfbench_core.exports.shared import metrics_of, plain_name
from cfbench_core.run_directory import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(write_run(tmp_path_factory.mktemp("export") / "run"))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def expected_means(run: Run) -> dict[tuple[str, str], float]:
    rows = run.summary.dropna(subset=["mean"]).to_dict("records")
    return {(row["cell"], plain_name(row["metric"])): row["mean"] for row in rows}


def test_csv_files_hold_every_row_of_every_table(run: Run) -> None:
    export(run, "csv", "tables")
    for table in run.table_names:
        with Path(f"tables/{table}.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        stored = pq.read_table(run.directory / f"{table}.parquet")
        assert (header, len(rows)) == (stored.column_names, stored.num_rows)
    with Path("tables/summary.csv").open(newline="", encoding="utf-8") as file:
        means = {(row["cell"], row["metric"]): row["mean"] for row in csv.DictReader(file)}
    for row in run.summary.dropna(subset=["mean"]).to_dict("records"):
        assert math.isclose(float(means[row["cell"], row["metric"]]), row["mean"], rel_tol=1e-5)


@pytest.mark.parametrize("to", ["csv", "huggingface"])
def test_a_file_that_changed_since_the_run_is_not_exported(to: str, tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    Run(directory).summary.to_csv(directory / "summary.csv", index=False)
    write_checksums(directory)
    (directory / "summary.csv").write_text("cell,metric\n")
    with pytest.raises(UserError, match=r"summary\.csv: has changed since the run wrote it"):
        export(Run(directory), to, "tables")


def test_a_dataset_of_hugging_face_has_a_configuration_for_each_table_with_rows(run: Run) -> None:
    datasets = pytest.importorskip(
        "datasets", reason="the package datasets is not installed (nox -s exports)"
    )
    export(run, "huggingface", "published")
    names = datasets.get_dataset_config_names(str(Path("published").resolve()))
    filled = {name for name in run.table_names if run.to_arrow(name).num_rows}
    assert set(names) == filled
    for name in names:
        loaded = datasets.load_dataset(
            str(Path("published").resolve()), name, split="train", cache_dir="cache"
        )
        assert loaded.num_rows == run.to_arrow(name).num_rows
        assert loaded.column_names == run.to_arrow(name).column_names


def test_the_client_of_mlflow_reads_each_cell_with_its_labels_status_and_means(run: Run) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the package mlflow is not installed (nox -s exports)")
    export(run, "mlflow", f"sqlite:///{Path('store.db').resolve()}")
    found = mlflow.search_runs(search_all_experiments=True, output_format="list")
    by_name = {one.info.run_name: one for one in found}
    assert set(by_name) == {run.directory.name, *(cell.id for cell in run.cells())}
    means = expected_means(run)
    assert means
    for (cell, metric), mean in means.items():
        assert math.isclose(by_name[cell].data.metrics[metric], mean, rel_tol=1e-12)
    for cell in run.cells():
        stored = by_name[cell.id].data
        assert stored.tags["cfbench.status"] == cell.status
        assert {name: stored.params[name] for name in cell.labels} == {
            k: str(v) for k, v in cell.labels.items()
        }
        assert bool(stored.metrics) == any(of == cell.id for of, _ in means)


def test_weights_and_biases_stores_the_run_offline(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="the package wandb is not installed (nox -s exports)")
    monkeypatch.setenv("WANDB_MODE", "offline")
    sentence = export(run, "wandb", "my-project", name="first")
    assert "offline" in sentence and "my-project" in sentence
    (stored,) = Path("wandb").glob("offline-run-*/run-*.wandb")
    cell, metric = next(iter(expected_means(run)))
    deadline = time.monotonic() + 30  # its service writes the end of the file after the run has ended
    while f"{cell}/{metric}".encode() not in stored.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert f"{cell}/{metric}".encode() in stored.read_bytes()


def test_metrics_have_the_means_and_intervals_of_the_summary(run: Run) -> None:
    for cell, metrics in metrics_of(run).items():
        rows = run.summary[run.summary["cell"] == cell].dropna(subset=["mean"])
        for row in rows.to_dict("records"):
            assert metrics[plain_name(row["metric"])] == row["mean"]
            assert metrics[f"{plain_name(row['metric'])}.n"] == row["n"]


@pytest.mark.parametrize(
    ("metric", "name"),
    [("PN-S@5", "PN-S_at_5"), ("#Perturb given success@3", "num Perturb given success_at_3")],
)
def test_names_of_metrics_are_those_that_clients_accept(metric: str, name: str) -> None:
    assert plain_name(metric) == name


def test_what_cannot_be_exported_is_one_line(run: Run) -> None:
    with pytest.raises(UserError, match=r"cannot export to .mlfow.\..*Did you mean .mlflow."):
        export(run, "mlfow")
    Path("taken").mkdir()
    Path("taken/file").touch()
    with pytest.raises(UserError, match="taken: is not empty"):
        export(run, "csv", "taken")
    with pytest.raises(UserError, match="no such directory"):
        export("nowhere", "csv")


@pytest.mark.parametrize("to", ["csv", "huggingface"])
def test_an_export_to_a_full_disk_leaves_nothing_in_the_way_of_the_next(
    run: Run, tmp_path: Path, to: str
) -> None:
    with small_disk(tmp_path) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(disk).free - 3 * 4096))
        with pytest.raises(UserError, match="the disk is full"):
            export(run, to, str(disk / "out"))
        assert list((disk / "out").iterdir()) == []
        ballast.unlink()
        killed = disk / "out" / f".unfinished.{owners.space()}-999999999-1-{'a' * 16}.tmp"
        killed.mkdir()
        (killed / "scores.csv").touch()
        export(run, to, str(disk / "out"))
        assert not killed.exists() and (disk / "out" / "summary.csv").exists()


def test_a_client_that_is_missing_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    original = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name.partition(".")[0] in ("mlflow", "wandb"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr("importlib.import_module", lambda name: without(name))
    for to in ("mlflow", "wandb"):
        monkeypatch.setattr("cfbench_core.exports.resolve", lambda target: _resolved(target))
        with pytest.raises(UserError, match=f"{to} is not installed: pip install {to}"):
            export(run, to)


def _resolved(target: str) -> object:
    import sys

    module, _, name = target.partition(":")
    __import__(module)
    return getattr(sys.modules[module], name)


@pytest.mark.parametrize("to", FORMATS)
def test_the_command_names_every_format(to: str) -> None:
    help_text = CliRunner().invoke(cli, ["export", "--help"]).output
    assert f"--to {to}" in help_text


def test_the_command_exports(run: Run) -> None:
    result = CliRunner().invoke(cli, ["export", str(run.directory), "--to", "csv", "--destination", "out"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("wrote ") and Path("out/scores.csv").is_file()
