"""The presets that are shipped: for data sets that there are, found as they say, and worth what they say."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from cfbench_core import run
from cfbench_core.api import prepare
from cfbench_core.presets import Preset, presets_of, search_problem
from cfbench_core.registry import installed
from cfbench_core.run_directory import Run
from cfbench_core.store import Store

DATA = Path(os.environ.get("CFBENCH_DATA_DIR", Path(__file__).parents[3] / "shared" / "data"))
AMAZON = DATA / "recsys" / "amazon-fashion.csv"

SHIPPED = [
    (component.spec, preset)
    for component in installed().components("recommender", "recsys")
    for preset in presets_of(component.spec).values()
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def study(recommender: dict[str, Any]) -> dict[str, Any]:
    return {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": [recommender],
        "explainers": [{"import": "my_lab:ByIndex"}],
        "protocol": {"k": 3, "users": 2, "level": "item", "format": "implicit"},
        "executor": "inline",
    }


def test_presets_are_shipped() -> None:
    assert {spec.name for spec, _ in SHIPPED} >= {"ease", "mf", "vae"}


@pytest.mark.parametrize(("spec", "preset"), SHIPPED, ids=[f"{spec.name}-{p.name}" for spec, p in SHIPPED])
def test_a_preset_documents_its_search(spec: Any, preset: Preset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent / "samples")
    assert preset.name in installed().names("recsys", "dataset")
    search = preset.search
    assert search_problem(preset) == ""
    assert set(search["space"]) <= set(preset.options)
    words = shlex.split(search["command"])
    assert words[:2] == ["cfbench", "tune"]
    assert words[words.index("--component") + 1] == f"recommender/{spec.name}"
    assert f"data={preset.name}" in words
    (reference,) = prepare(study({"name": spec.name, "preset": preset.name})).config.recommenders
    assert {name: getattr(reference.options, name) for name in preset.options} == dict(preset.options)


TRAINED = [
    pytest.param(spec.name, preset.name, 0.02, marks=pytest.mark.slow)
    for spec, preset in SHIPPED
    if spec.name != "ease" and preset.name != "ml-1m"
]
"""Of a training in epochs the last digits depend on the machine."""


@pytest.mark.parametrize(
    ("name", "data", "tolerance"),
    [("ease", "debian-python", 1e-4), *TRAINED],
)
def test_a_preset_reaches_its_documented_score(
    name: str, data: str, tolerance: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if data == "amazon-fashion" and not AMAZON.exists():
        pytest.skip("no amazon-fashion.csv in the data folder (CFBENCH_DATA_DIR)")
    monkeypatch.chdir(Path(__file__).parent / "samples")
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(DATA))
    done: Run = run({**study({"name": name, "preset": data}), "data": data}, out=tmp_path / "run")
    assert done.exit_code == 0
    (model,) = [entry for entry in Store().entries() if entry.kind == "model"]
    summary = model.manifest["summary"]
    promised = next(p.search for spec, p in SHIPPED if (spec.name, p.name) == (name, data))
    assert summary["fit"]["validation"]["NDCG@10"] == pytest.approx(promised["value"], rel=tolerance)
    found = summary["quality"]["NDCG@10"]["value"]
    assert found == pytest.approx(promised["held_out"]["value"], rel=tolerance)
