"""Whole runs on a GPU: repeated, divided among workers, short of memory, and compared with runs on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cfbench_core import run
from cfbench_core.devices.gpus import SHARE, visible_gpus
from cfbench_core.run_directory import Run

pytestmark = pytest.mark.filterwarnings("ignore::cfbench_core.errors.ResultWarning")

SYNTHETIC = {"name": "synthetic", "users": 300, "items": 120, "interactions": 4000}
GRAPH = {
    "suite": "recsys",
    "data": SYNTHETIC,
    "recommenders": [{"name": "lightgcn", "layers": 3, "epochs": 5}],
    "explainers": [
        "random-edges",
        "one-gradient",
        "gradient-greedy",
        "grease",
        "cf-gnnexplainer",
        {"name": "cf-gnnexplainer", "variant": "paper", "paper": {"steps": 20}},
        "cf2",
        {"name": "cf2", "variant": "paper", "paper": {"steps": 20}},
        "c2explainer",
        {"name": "c2explainer", "variant": "paper", "paper": {"steps": 20}},
        "unr-explainer",
        {"name": "clear", "steps": 5},
    ],
    "protocol": {"users": 10, "k": 5, "level": "item", "format": "explicit", "scope": [{"k-hop": 3}]},
}
NATIVE = {
    "suite": "recsys",
    "data": SYNTHETIC,
    "recommenders": [{"name": name, "epochs": 5} for name in ("mf", "ncf", "vae", "diffrec")],
    "explainers": [
        "lime-rs",
        "shap",
        {"name": "lxr", "epochs": 5},
        "spinrec",
        "accent",
        "grease",
        "cosine",
        "greedy",
    ],
    "protocol": {"users": 10, "k": 5, "level": "item"},
}
STUDIES = {"graph": GRAPH, "native": NATIVE}


def computed(study: dict[str, Any], folder: Path, device: str, cache: str = "", **options: Any) -> Run:
    """A run on a device, from an empty cache of its own unless ``cache`` names one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / f"cache-{device}{cache}"))
        found = run({**study, "device": device}, out=folder / f"run-{device}{cache}", **options)
    problems = [(cell.id, cell.status, cell.reason) for cell in found.cells() if cell.problem]
    assert not problems
    return found


def means(found: Run) -> pd.Series:
    """Means of the metrics that are no times, by explainer, format and metric."""
    summary = found.summary
    summary = summary[~summary["metric"].str.contains("time|seconds", case=False)]
    return summary.set_index(["model", "explainer", "format", "metric"])["mean"]


@pytest.fixture(scope="module", params=STUDIES)
def on_gpu(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Run, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    study = STUDIES[request.param]
    return study, computed(study, folder, "auto", executor="inline"), folder


def test_auto_means_the_gpu(on_gpu: tuple[dict[str, Any], Run, Path]) -> None:
    _, found, _ = on_gpu
    assert found.config["device"] == "cuda"
    assert found.environment["hardware"]["gpus"]


def test_a_second_run_has_the_same_numbers(on_gpu: tuple[dict[str, Any], Run, Path]) -> None:
    study, first, folder = on_gpu
    second = computed(study, folder, "cuda", executor="inline")
    pd.testing.assert_series_equal(means(second), means(first), check_exact=True)


def test_workers_share_a_gpu(on_gpu: tuple[dict[str, Any], Run, Path]) -> None:
    study, first, folder = on_gpu
    shared = computed(
        {**study, "limits": {"gpu_memory_gb": 8}}, folder, "cuda", "-shared", executor="process", workers=4
    )
    pd.testing.assert_series_equal(means(shared), means(first), check_exact=True)


def test_means_are_close_to_those_of_the_cpu(on_gpu: tuple[dict[str, Any], Run, Path]) -> None:
    """Training in float32 rounds differently, so single answers may differ."""
    study, first, folder = on_gpu
    on_cpu = means(computed(study, folder, "cpu", executor="inline"))
    there = means(first)
    assert list(on_cpu.index) == list(there.index)
    bounded = on_cpu.index.get_level_values("metric").str.contains("PN-|POS-P|NEG-P|INS|DEL")
    gaps = (on_cpu - there).abs()[bounded]
    print(pd.concat({"cpu": on_cpu, "gpu": there}, axis=1)[bounded].to_string())
    assert np.nanmean(gaps) <= 0.05


@pytest.mark.parametrize("on_gpu", ["graph"], indirect=True)
def test_answers_do_not_depend_on_what_fits(
    on_gpu: tuple[dict[str, Any], Run, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a share of the memory in which the first batch does not fit, or hardly."""
    study, first, folder = on_gpu
    import torch

    megabytes = 160
    monkeypatch.setenv(SHARE, repr(megabytes * 2**20 / visible_gpus()[0].memory_bytes))
    torch.cuda.empty_cache()
    try:
        limited = computed(study, folder, "cuda", "-limited", executor="inline")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    pd.testing.assert_series_equal(means(limited), means(first), check_exact=True)
