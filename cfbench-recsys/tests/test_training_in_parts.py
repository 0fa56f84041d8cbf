"""Training where the memory of a device does not suffice for a batch. The oracle is the training that is not divided."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfbench_core import run
from cfbench_core.config.fields import fields_of
from cfbench_core.devices.batches import DeviceMemoryError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.run_directory import RunCell
from cfbench_core.specs import resolve
from cfbench_recsys.plugin import cfbench_recommenders
from cfbench_recsys.recommenders import diffrec, gformer, lightgcn, mf, ncf, simgcl, vae
from cfbench_recsys.testing.limited_memory import memory_for
from cfbench_recsys.testing.world import split, without_validation

SPECS = {spec.name: spec for spec in cfbench_recommenders()}
USERS, EDGES = {"batch": 32}, {"batch": 150, "dimensions": 8}
"""Options of recommenders whose batches are of users, of which there are 90, or of interactions. The last batch is smaller,
and its parts are not all of one size."""

CASES: dict[str, tuple[type[Any], Any]] = {
    "mf": (mf.MF, mf.Config(**USERS, dimensions=8)),
    "ncf": (ncf.NCF, ncf.Config(**USERS, dimensions=8, units=8)),
    "ncf, towers first alone": (ncf.NCF, ncf.Config(**USERS, dimensions=8, units=8, layers=2, pretraining=2)),
    "vae": (vae.VAE, vae.Config(**USERS, hidden=16, dimensions=8, anneal_epochs=2, beta=1.0)),
    "diffrec": (diffrec.DiffRec, diffrec.Config(**USERS, hidden=16)),
    "lightgcn": (lightgcn.LightGCN, lightgcn.Config(**EDGES, l2=0.1)),
    "simgcl": (simgcl.SimGCL, simgcl.Config(**EDGES, contrast=0.5)),
    "simgcl, some contrasted": (simgcl.SimGCL, simgcl.Config(**EDGES, contrast=0.5, contrasted=12)),
    "gformer": (gformer.GFormer, gformer.Config(**EDGES)),
    "gformer, with contrast": (gformer.GFormer, gformer.Config(**EDGES, independence=0.5)),
}
DATA = without_validation(split().train)

pytestmark = pytest.mark.filterwarnings("ignore::cfbench_core.errors.ResultWarning")


@pytest.fixture(autouse=True, scope="module")
def few_objects_to_collect() -> Iterator[None]:
    """Each shortage of memory collects garbage: only what these tests made is looked at."""
    gc.freeze()
    yield
    gc.unfreeze()


def trained(name: str, epochs: int) -> tuple[dict[str, np.ndarray], list[float]]:
    """What was learned, and the mean losses of the epochs that were evaluated."""
    kind, config = CASES[name]
    model = kind(type(config)(**{**vars(config), "epochs": epochs, "device": "cpu"}))
    summary = model.fit(DATA, generator)
    return model.state(), [look["loss"] for look in summary["history"]]


def test_every_recommender_that_learns_from_batches_is_tested() -> None:
    with_batches = {
        name
        for name, spec in SPECS.items()
        if spec.config and "batch" in {option.name for option in fields_of(resolve(spec.config))}
    }
    assert with_batches == {name.partition(",")[0] for name in CASES}


def assert_same(name: str, epochs: int, most: int) -> list[int]:
    """Up to the rounding of float32. Losses too: Adam's steps do not change with the scale of a loss. The sizes of parts."""
    weights, losses = trained(name, epochs)
    with memory_for(most) as sizes:
        in_parts, their_losses = trained(name, epochs)
    assert weights.keys() == in_parts.keys()
    for array, values in weights.items():
        np.testing.assert_allclose(in_parts[array], values, rtol=0, atol=1e-5, err_msg=array)
    np.testing.assert_allclose(their_losses, losses, rtol=1e-4)
    return sizes


@pytest.mark.parametrize("most", [20, 5])
@pytest.mark.parametrize("name", CASES)
def test_what_is_learned_is_that_of_whole_batches(name: str, most: int) -> None:
    epochs = 6 if most == 20 else 3
    sizes = assert_same(name, epochs, most)
    assert max(sizes) <= most
    members = DATA.train.nnz if CASES[name][1].batch == EDGES["batch"] else DATA.train.shape[0]
    assert sum(sizes) == epochs * members


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_down_to_single_members(name: str) -> None:
    assert set(assert_same(name, 1, 1)) == {1}


@pytest.mark.parametrize("name", CASES)
def test_less_memory_than_a_single_member_needs_says_what_to_make_smaller(name: str) -> None:
    with memory_for(0), pytest.raises(DeviceMemoryError, match="make ") as error:
        trained(name, 1)
    named = str(error.value).partition(": make ")[2].partition(" smaller")[0]
    assert set(named.replace(" or ", ", ").split(", ")) <= vars(CASES[name][1]).keys()


def cell_of_a_device(fits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunCell:
    """Of a whole run. MF is trained in batches of 16 users on a device with memory for ``fits``."""
    monkeypatch.chdir(Path(__file__).parent / "samples")
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    model = {"import": "small_device:SmallDevice", "fits": fits, "dimensions": 4, "epochs": 2, "batch": 16}
    study = {
        "suite": "recsys",
        "data": {"name": "synthetic", "users": 60, "items": 30, "interactions": 600},
        "recommenders": [model],
        "explainers": [{"import": "my_lab:ByIndex"}],
        "protocol": {"k": 3, "users": 5, "level": "item", "format": "implicit"},
        "executor": "inline",
    }
    (cell,) = run(study, out=tmp_path / "run").cells()
    return cell


@pytest.mark.parametrize("fits", [8, 16])
def test_results_of_a_model_that_was_trained_in_parts_say_so(
    fits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = cell_of_a_device(fits, tmp_path, monkeypatch)
    assert cell.status == "ok", cell.reason
    said = "training mf: the memory of the device did not suffice for a batch of 16, so it was computed 8 at a time"
    assert (said in cell.reason) == (fits < 16)


def test_less_memory_than_a_single_member_needs_is_an_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = cell_of_a_device(0, tmp_path, monkeypatch)
    assert cell.status == "out_of_memory"
    assert "does not suffice for a batch of one: make dimensions smaller (CUDA out of memory." in cell.reason
