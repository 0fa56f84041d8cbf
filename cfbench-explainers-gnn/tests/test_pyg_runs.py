"""Modules and algorithms of PyTorch Geometric in whole runs, where models are wrapped, cached and restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import cfbench_core
from cfbench_core.data_files import DataAccess
from cfbench_core.run_directory import Run
from cfbench_recsys.datasets.synthetic import Config, Synthetic

GCN: dict[str, Any] = {
    "name": "pyg", "factory": "torch_geometric.nn.models:GCN", "options": {"hidden_channels": 4, "num_layers": 2},
    "features": 4, "epochs": 1,
}  # fmt: skip
GAT = {**GCN, "factory": "torch_geometric.nn.models:GAT"}
DATA = {"name": "synthetic", "users": 30, "items": 20, "interactions": 200, "clusters": 2}


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recommender: dict[str, Any], *explainers: Any
) -> Run:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    study = {
        "suite": "recsys",
        "data": DATA,
        "recommenders": [recommender],
        "explainers": list(explainers),
        "protocol": {"k": 3, "level": "item", "format": "explicit", "scope": "user-only", "users": 4},
        "metrics": ["pn-s"],
        "executor": "inline",
    }
    return cfbench_core.run(study, out=tmp_path / "run")


@pytest.mark.parametrize(("module", "names"), [(GAT, ["attention"]), (GCN, ["gnnexplainer", "pgexplainer"])])
def test_each_algorithm_explains_a_module_in_a_run(
    module: dict[str, Any], names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainers = [{"name": "pyg", "algorithm": name, "label": name} for name in names]
    run = done(tmp_path, monkeypatch, module, *explainers)
    assert run.exit_code == 0
    scores = run.scores[run.scores["metric"].str.startswith("PN-S")]
    assert scores.groupby("explainer")["value"].count().to_dict() == dict.fromkeys(names, 12)
    assert (scores["value"] > 0).any()


def test_weights_of_a_module_may_have_any_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyg_example_modules import Padded

    data = Synthetic(Config(users=30, items=20, interactions=200, clusters=2))
    nodes = sum(data.load(data.find(DataAccess())).matrix.shape)
    torch.manual_seed(0)
    torch.save(Padded(nodes).state_dict(), tmp_path / "padded.pt")
    given = {"name": "pyg", "factory": "pyg_example_modules:Padded", "weights": str(tmp_path / "padded.pt")}
    run = done(tmp_path / "given", monkeypatch, given, "random-edges")
    assert run.exit_code == 0 and len(run.scores)


def test_a_module_that_cannot_be_trained_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = done(
        tmp_path, monkeypatch, {"name": "pyg", "factory": "pyg_example_modules:Constant"}, "random-edges"
    )
    (cell,) = run.cells()
    assert "do not depend on its parameters; give its weights" in cell.reason
