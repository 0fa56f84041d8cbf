"""``protocol: paper`` from a configuration to the tables of a run."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml

import cfbench_core
from cfbench_core import api
from cfbench_core.errors import UserError

PAPER = {
    "suite": "tabular",
    "data": ["iris", "tic-tac-toe"],
    "classifiers": ["study-network"],
    "explainers": ["nearest-enemy"],
    "metrics": ["validity", "l2"],
    "executor": "inline",
    "protocol": "paper",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """No data directory, and a cache of its own."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CFBENCH_DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(study, here):
    """A copy of CF-tabular's folder with two data sets."""
    for name in ("onehot_layout.json", "var_types.json"):
        shutil.copy(study.data / name, here / name)
    for kind in ("datasets", "splits", "scalers", "factuals", "models"):
        for file in (study.data / kind).iterdir():
            if file.name.startswith(("Iris", "TicTacToe")):
                (here / kind).mkdir(exist_ok=True)
                shutil.copy(file, here / kind)
    return here


def reasons(config):
    return {cell.id: cell.skipped for cell in api.plan(config).cells}


def test_the_study_is_found_in_a_data_directory_and_repeated(study, here, monkeypatch):
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(study.data.parent))
    run = cfbench_core.run(PAPER, out=here / "run")
    assert run.exit_code == 0
    published = pd.read_csv(study.reference / "paper_tableA1.csv").set_index("Dataset")
    quality = run.quality.pivot(index="dataset", columns="metric", values="value")
    for dataset, name in (("iris", "Iris"), ("tic-tac-toe", "TicTacToe")):
        assert quality.loc[dataset, "accuracy"] == pytest.approx(published.loc[name, "Acc_test"], abs=0.00501)
        assert quality.loc[dataset, "AUC"] == pytest.approx(published.loc[name, "AUC_test"], abs=0.00501)
    assert run.scores.groupby("dataset")["unit"].nunique().to_dict() == {"iris": 150, "tic-tac-toe": 200}
    units = [pd.read_parquet(file) for file in (here / "cache").rglob("units.parquet")]
    classes = {len(table): table["factual_class"].tolist() for table in units}
    assert classes == {150: [0] * 97 + [1] * 53, 200: [0] * 100 + [1] * 100}


def test_another_classifier_explains_the_same_rows(folder):
    config = {
        **PAPER,
        "data": ["iris"],
        "protocol": {"study": "paper", "folder": str(folder), "factuals": 10},
    }
    config["classifiers"] = ["study-network", "logistic-regression"]
    run = cfbench_core.run(config, out=folder / "run")
    rows = {model: set(scores["unit"]) for model, scores in run.scores.groupby("model")}
    assert rows["study-network"] == rows["logistic-regression"] and len(rows["study-network"]) == 20


def test_missing_files_skip_only_their_own_cells(folder):
    (folder / "datasets" / "Iris.csv.gz").unlink()
    (folder / "models" / "TicTacToe.npz").unlink()
    config = {
        **PAPER,
        "data": ["iris", "tic-tac-toe", "breast-cancer"],
        "classifiers": ["study-network", "mlp"],
    }
    config["protocol"] = {"study": "paper", "folder": str(folder)}
    found = reasons(config)
    assert found["iris/mlp/nearest-enemy"] == f"{folder} has no datasets/Iris.csv.gz"
    assert found["tic-tac-toe/study-network/nearest-enemy"].endswith("has no models/TicTacToe.npz")
    assert found["tic-tac-toe/mlp/nearest-enemy"] == ""
    assert (
        "breast-cancer is not one of the 22 data sets of CF-tabular"
        in found["breast-cancer/mlp/nearest-enemy"]
    )
    targeted = reasons({**config, "data": [{"name": "tic-tac-toe", "target": "negative"}]})
    assert all("remove the option 'target'" in reason for reason in targeted.values())


def test_a_missing_folder_is_reported_with_the_searched_places(here):
    with pytest.raises(UserError, match=r"no folder with onehot_layout.json \(searched data/tabular, "):
        api.plan(PAPER)


def test_the_published_network_needs_the_published_encoding():
    found = reasons({**PAPER, "protocol": {}})
    assert found["iris/study-network/nearest-enemy"].startswith("study-network needs 'protocol: paper'")


def test_the_short_form_is_the_long_one_and_a_wrong_one_is_reported(study, monkeypatch):
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(study.data.parent))
    prepared = cfbench_core.prepare(PAPER)
    assert prepared.config.protocol.study == "paper"
    with pytest.raises(
        UserError, match=r"protocol.study: must be one of paper, got 'papr'. Did you mean 'paper'"
    ):
        cfbench_core.prepare(yaml.safe_load(yaml.safe_dump({**PAPER, "protocol": "papr"})))


def test_a_factual_that_is_no_row_is_left_out_and_counted(folder):
    with np.load(folder / "factuals" / "Iris.npz") as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    arrays["X0"][0] += 0.5
    np.savez(folder / "factuals" / "Iris.npz", **arrays)
    config = {**PAPER, "data": ["iris"], "protocol": {"study": "paper", "folder": str(folder)}}
    run = cfbench_core.run(config, out=folder / "run")
    assert run.scores["unit"].nunique() == 149


def test_a_decision_threshold_applies_to_the_published_networks_too(study, here, monkeypatch):
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(study.data.parent))
    protocol = {"study": "paper", "decision_threshold": 0.8}
    run = cfbench_core.run({**PAPER, "data": ["iris"], "protocol": protocol}, out=here / "run")
    assert set(run.explanations["wanted_class"]) == {
        "virginica with a probability of at most 80%",
        "virginica with a probability above 80%",
    }


def test_counterfactuals_are_scored_without_the_rows_of_the_data_set(study, folder):
    """As for ISOLET, whose rows are not published: network, factuals and scales suffice for these metrics."""
    for file in [*(folder / "datasets").iterdir(), *(folder / "splits").iterdir()]:
        file.unlink()
    scaler = json.loads((folder / "scalers" / "Iris.json").read_text())
    mean, scale = np.array(scaler["mean"]), np.array(scaler["scale"])
    numbers = np.concatenate([study.factuals("Iris", label) for label in (0, 1)])
    draw = np.random.default_rng(0)
    moved = numbers + draw.normal(0, 1.5, numbers.shape) * (draw.random(numbers.shape) < 0.5)
    raw = moved * scale + mean
    lines = [
        f"iris,{unit},{column},{float(raw[unit, column])!r}"
        for unit in range(len(numbers))
        for column in range(4)
        if moved[unit, column] != numbers[unit, column]
    ]
    squares = np.concatenate([study.factuals("TicTacToe", label) for label in (0, 1)])
    lines += [f"tic-tac-toe,{unit},0,{level}" for unit, level in ((0, "x"), (1, "b"), (100, "o"))]
    (folder / "theirs.csv").write_text("dataset,unit,column,value\n" + "\n".join(lines) + "\n")
    config = {**PAPER, "protocol": {"study": "paper", "folder": str(folder)}, "metrics": None}
    run = cfbench_core.run(config, out=folder / "run", explanations=folder / "theirs.csv")
    assert run.exit_code == 0
    assert {column.name for column in run.columns} == {
        "validity",
        "coverage",
        "sparsity",
        "raw sparsity",
        "L2",
    }
    assert "the rows of the data set are missing" in (folder / "run" / "plan.json").read_text()
    found = run.scores.query("dataset == 'iris'").pivot(index="unit", columns="metric", values="value")
    found = found.loc[[str(unit) for unit in range(len(numbers))]]
    network = study.network("Iris")
    own, other = (network.predict_proba(rows).argmax(axis=1) for rows in (numbers, moved))
    changed = (moved != numbers).any(axis=1)
    valid = changed & (own != other)
    assert 20 < valid.sum() < changed.sum()
    assert (found["validity"].to_numpy() == valid).all()
    distance = np.where(valid, np.linalg.norm(moved - numbers, axis=1), np.nan)
    assert np.allclose(found["L2"], distance, atol=1e-9, equal_nan=True)
    same = np.where(valid, (moved == numbers).mean(axis=1), np.nan)
    assert np.allclose(found["sparsity"], same, equal_nan=True)
    game = run.scores.query("dataset == 'tic-tac-toe' and metric == 'coverage'").set_index("unit")["value"]
    assert len(squares) == len(game) == 200 and 1 <= game.sum() <= 3


def test_without_the_rows_nothing_is_explained(folder):
    (folder / "datasets" / "Iris.csv.gz").unlink()
    config = {**PAPER, "protocol": {"study": "paper", "folder": str(folder)}}
    assert "has no datasets/Iris.csv.gz" in reasons(config)["iris/study-network/nearest-enemy"]
