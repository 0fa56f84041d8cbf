"""Any torch module: what it returns, its gradient, its weights."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.testing import example_data, fitted

torch = pytest.importorskip("torch")

from cfbench_tabular.classifiers.mlp import MLP  # noqa: E402
from cfbench_tabular.classifiers.mlp import Config as MLPConfig  # noqa: E402
from cfbench_tabular.classifiers.torch import Config, Torch  # noqa: E402


class Linear(torch.nn.Module):
    """Weights 0, 1, ..., as one logit, two logits, one probability or two."""

    def __init__(self, kind="one", inputs=7):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.arange(inputs, dtype=torch.float64) / 10)
        self.kind = kind

    def forward(self, rows):
        logit = rows @ self.weights
        one = torch.sigmoid(logit)
        return {
            "one": logit,
            "column": logit[:, None],
            "two": torch.stack([-logit / 3, logit * 2 / 3], dim=1),
            "probability": one,
            "probabilities": torch.stack([1 - one, one], dim=1),
            "three": torch.zeros((len(rows), 3)) + logit[:, None],
        }[self.kind]


@pytest.fixture
def lab(monkeypatch):
    """A module ``lab`` with what the configurations name."""
    module = types.ModuleType("lab")
    for kind in ("one", "column", "two", "probability", "probabilities", "three"):
        setattr(module, kind, lambda kind=kind: Linear(kind))
    module.sized = lambda inputs: torch.nn.Linear(inputs, 2)
    module.nothing = lambda: "no module"
    monkeypatch.setitem(sys.modules, "lab", module)
    return module


@pytest.fixture
def made(tmp_path, lab):
    """``made(kind)``: the module of that kind with its own weights from a file."""

    def make(kind, outputs="logits"):
        torch.save(Linear(kind).state_dict(), tmp_path / "weights.pt")
        config = Config(factory=f"lab:{kind}", weights=str(tmp_path / "weights.pt"), outputs=outputs)
        return fitted(Torch(config), example_data())

    return make


@pytest.mark.parametrize("kind", ["one", "column", "two"])
def test_logits_become_probabilities(made, kind):
    vectors = example_data().vectors
    expected = 1 / (1 + np.exp(-vectors @ np.arange(7) / 10))
    found = made(kind).predict_proba(vectors)
    assert np.allclose(found[:, 1], expected, atol=1e-12) and np.allclose(found.sum(axis=1), 1.0)
    assert np.allclose(made(kind).log_odds_gradient(vectors), np.arange(7) / 10, atol=1e-12)


@pytest.mark.parametrize("kind", ["probability", "probabilities"])
def test_probabilities_stay_what_they_are(made, kind):
    vectors = example_data().vectors
    model = made(kind, outputs="probabilities")
    assert np.allclose(model.predict_proba(vectors)[:, 1], 1 / (1 + np.exp(-vectors @ np.arange(7) / 10)))
    assert np.allclose(model.log_odds_gradient(vectors), np.arange(7) / 10, atol=1e-9)


def test_predictions_and_gradients_equal_those_of_the_mlp_with_the_same_weights(tmp_path, monkeypatch):
    data = example_data()
    ours = fitted(MLP(MLPConfig(hidden=5)), data)
    names = {"0.weight": "W1", "0.bias": "b1", "2.weight": "W2", "2.bias": "b2"}
    tensors = {name: torch.tensor(ours.weights[own].T) for name, own in names.items()}
    torch.save(tensors, tmp_path / "net.pth")
    module = types.ModuleType("nets")

    def network(inputs):
        return torch.nn.Sequential(
            torch.nn.Linear(inputs, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)
        ).double()

    module.network = network
    monkeypatch.setitem(sys.modules, "nets", module)
    theirs = fitted(Torch(Config(factory="nets:network", weights=str(tmp_path / "net.pth"))), data)
    assert np.allclose(theirs.predict_proba(data.vectors), ours.predict_proba(data.vectors), atol=1e-12)
    slopes = theirs.log_odds_gradient(data.vectors)
    assert np.allclose(slopes, ours.log_odds_gradient(data.vectors), atol=1e-12)


def test_weights_in_safetensors_do_as_well(tmp_path, lab):
    from safetensors.torch import save_file

    save_file(lab.sized(7).state_dict(), tmp_path / "net.safetensors")
    model = fitted(
        Torch(Config(factory="lab:sized", weights=str(tmp_path / "net.safetensors"))), example_data()
    )
    assert model.predict_proba(example_data().vectors).dtype == np.float64


def test_without_weights_it_learns_and_leaves_torchs_random_numbers_alone():
    data = example_data()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    model = fitted(Torch(Config()), data)
    assert torch.equal(torch.rand(3), expected)
    vectors, labels = data.sample("test")
    assert (predicted_classes(model, vectors) == labels).mean() > 0.85


def test_what_is_wrong_is_reported_in_a_line(tmp_path, lab):
    data = example_data()
    torch.save({"other": torch.zeros(3)}, tmp_path / "other.pt")
    (tmp_path / "text.pt").write_text("no tensors")
    torch.save(torch.nn.Linear(7, 2), tmp_path / "pickled.pt")
    for options, message in (
        ({"factory": "lab:one", "weights": str(tmp_path / "other.pt")}, "does not fit lab:one"),
        (
            {"factory": "lab:one", "weights": str(tmp_path / "text.pt")},
            "is not a state dict that can be read safely",
        ),
        (
            {"factory": "lab:sized", "weights": str(tmp_path / "pickled.pt")},
            "is not a state dict that can be read",
        ),
        ({"factory": "lab:nothing"}, "returned str, not a torch module"),
        ({"factory": "lab:three"}, r"returned shape \(1, 3\) for 1 rows|returned shape \(\d+, 3\)"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            fitted(Torch(Config(**options)), data)
        assert "\n" not in str(caught.value)
