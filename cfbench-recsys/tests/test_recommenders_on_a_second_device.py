"""Every recommender that is registered here scores on a second device as on the CPU, to the bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cfbench_core.devices.choice import CUDA
from cfbench_core.testing import Misbehaviour, NotApplicable
from cfbench_recsys import bipartite_graph
from cfbench_recsys.plugin import cfbench_recommenders
from cfbench_recsys.recommenders import lightgcn
from cfbench_recsys.testing import on_gpu
from cfbench_recsys.testing.on_gpu import scores_on_a_gpu_as_on_the_cpu
from cfbench_recsys.testing.second_device import DEVICE, SecondDeviceError
from cfbench_recsys.testing.simulated_gpu import simulated_gpu

SPECS = {spec.name: spec for spec in cfbench_recommenders()}
NO_DEVICE = {"als", "ease", "item-knn", "popularity"}
"""They compute on the CPU. A new recommender is checked, or is listed here."""

QUICK: dict[str, dict[str, Any]] = {
    "diffrec": {"hidden": 4, "epochs": 1},
    "gformer": {"epochs": 1},
    "lightgcn": {"dimensions": 4, "epochs": 1},
    "mf": {"dimensions": 4, "epochs": 1},
    "ncf": {"epochs": 1},
    "simgcl": {"dimensions": 4, "epochs": 1},
    "vae": {"epochs": 1},
}
"""Options of recommenders whose training takes long."""


@pytest.mark.parametrize("name", SPECS)
def test_scores_are_those_of_the_cpu(name: str) -> None:
    with simulated_gpu(SPECS[name], **QUICK.get(name, {})) as subject:
        if name in NO_DEVICE:
            with pytest.raises(NotApplicable, match="no option device"):
                scores_on_a_gpu_as_on_the_cpu(subject)
        else:
            scores_on_a_gpu_as_on_the_cpu(subject)


def test_without_a_gpu_the_kit_says_why_it_does_not_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "gpu_is_there", lambda: False)
    with pytest.raises(NotApplicable, match="there is no GPU here"):
        scores_on_a_gpu_as_on_the_cpu(on_gpu._subject("lightgcn"))


def test_other_scores_on_a_gpu_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lightgcn.LightGCN.score_edits

    def differing(self: Any, edits: Any) -> Any:
        return whole(self, edits) * (1 + 1e-9 * (self.device == DEVICE))

    monkeypatch.setattr(lightgcn.LightGCN, "score_edits", differing)
    with (
        simulated_gpu(SPECS["lightgcn"], **QUICK["lightgcn"]) as subject,
        pytest.raises(Misbehaviour, match="scores on a GPU differ from those on the CPU by"),
    ):
        scores_on_a_gpu_as_on_the_cpu(subject)


def test_tensors_of_the_cpu_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model does whose graph stays on the CPU."""
    made = bipartite_graph.sparse_tensor
    on_cpu = lambda matrix, dtype, device: made(matrix, dtype, torch.device("cpu"))  # noqa: E731
    monkeypatch.setattr(bipartite_graph, "sparse_tensor", on_cpu)
    with (
        simulated_gpu(SPECS["lightgcn"], **QUICK["lightgcn"]) as subject,
        pytest.raises(SecondDeviceError, match="mixes devices"),
    ):
        scores_on_a_gpu_as_on_the_cpu(subject)


def test_models_that_are_explained_are_on_the_second_device() -> None:
    with simulated_gpu(SPECS["lightgcn"], **QUICK["lightgcn"]):
        for name in on_gpu.MODELS:
            assert on_gpu._on(on_gpu._subject(name), CUDA) is not None
            model = on_gpu._restored(
                on_gpu._subject(name), CUDA, on_gpu._state(name), on_gpu.split().profiles
            )
            assert model.device == DEVICE
