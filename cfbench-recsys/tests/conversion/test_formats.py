"""Models of other libraries give the same scores after the conversion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cfbench_core.errors import UserError
from cfbench_recsys.conversion import Conversion, convert
from cfbench_recsys.interactions import Interactions

Recommender = Callable[[Conversion, Any], Any]
SAMPLES = Path(__file__).parent.parent / "samples" / "recbole"


@pytest.mark.parametrize("name", ["LightGCN", "MultiVAE", "EASE", "ItemKNN"])
def test_models_of_recbole_have_the_scores_that_recbole_computed(
    check_recbole: Callable[[Path, str], None], name: str
) -> None:
    check_recbole(SAMPLES, name)


def test_the_two_towers_of_lxr(data: Interactions, tmp_path: Path, recommender: Recommender) -> None:
    torch.manual_seed(0)
    profile, item = nn.Linear(4, 3), nn.Linear(4, 3)
    towers = nn.ModuleDict({"users_fc": profile, "items_fc": item})
    torch.save(towers.state_dict(), tmp_path / "mlp.pt")

    model = recommender(convert(tmp_path / "mlp.pt", data, tmp_path / "w.safetensors"), data.matrix)

    profiles = torch.from_numpy(data.matrix.toarray()).float()
    expected = profile(profiles) @ item(torch.eye(4)).T
    np.testing.assert_allclose(model.score_profiles(data.matrix), expected.detach().numpy(), atol=1e-6)


def test_the_two_towers_of_cfexprec(data: Interactions, tmp_path: Path, recommender: Recommender) -> None:
    torch.manual_seed(0)
    profile, item, bias = nn.Linear(4, 3), nn.Embedding(4, 3), torch.randn(3)
    state = {**nn.ModuleDict({"users_fc": profile, "item_fc": item}).state_dict(), "item_bias": bias}
    torch.save(state, tmp_path / "MF.pth")

    model = recommender(convert(tmp_path / "MF.pth", data, tmp_path / "w.safetensors"), data.matrix)

    profiles = torch.from_numpy(data.matrix.toarray()).float()
    expected = profile(profiles) @ (item.weight + bias).T
    np.testing.assert_allclose(model.score_profiles(data.matrix), expected.detach().numpy(), atol=1e-6)


def test_the_autoencoder_of_lxr(data: Interactions, tmp_path: Path, recommender: Recommender) -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 6))
    decoder = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4))
    torch.save(nn.ModuleDict({"encoder": encoder, "decoder": decoder}).state_dict(), tmp_path / "VAE.pt")

    conversion = convert(tmp_path / "VAE.pt", data, tmp_path / "w.safetensors")
    model = recommender(conversion, data.matrix)

    profiles = torch.nn.functional.normalize(torch.from_numpy(data.matrix.toarray()).float())
    expected = decoder(encoder(profiles)[:, :3])
    assert conversion.options == {"activation": "relu"}
    np.testing.assert_allclose(model.score_profiles(data.matrix), expected.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize(("name", "powers"), [("lightgcn", (0, 1, 2, 3)), ("simgcl", (1,))])
def test_the_graph_models_of_cfexprec(
    data: Interactions, tmp_path: Path, recommender: Recommender, name: str, powers: tuple[int, ...]
) -> None:
    """LightGCN is the mean of the layers 0 to 3; SimGCL recommends by the first layer alone."""
    embeddings = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    torch.save({"E0.weight": embeddings}, tmp_path / "E0.pth")
    out = tmp_path / "w.safetensors"
    with pytest.raises(UserError, match="may be several models; name the recommender: lightgcn or simgcl"):
        convert(tmp_path / "E0.pth", data, out)

    model = recommender(convert(tmp_path / "E0.pth", data, out, recommender=name), data.matrix)

    graph = np.zeros((7, 7))
    graph[:3, 3:] = data.matrix.toarray()
    graph += graph.T
    degrees = graph.sum(1)
    normalised = graph / np.sqrt(np.outer(degrees, degrees))
    layers = [np.linalg.matrix_power(normalised, power) @ embeddings.numpy() for power in powers]
    final = np.mean(layers, axis=0)
    np.testing.assert_allclose(
        model.user_embeddings() @ model.item_embeddings().T, final[:3] @ final[3:].T, atol=1e-6
    )
