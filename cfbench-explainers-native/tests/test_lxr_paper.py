"""LXR as published, against its loss written out, PyTorch's initial weights and the authors' rule to stop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_explainers_native import lxr_paper
from cfbench_explainers_native.lxr import LXR, Config, hyperparameters
from cfbench_explainers_native.lxr_paper import PaperOptions
from cfbench_explainers_native.lxr_training import Lessons, loss

torch = pytest.importorskip("torch")

HISTORIES = [[0], [1, 5, 6], [2, 3, 4, 7, 8, 9]]


class Bent:
    """Scores tanh(x W) V, differentiable."""

    def __init__(self, items, link="sigmoid"):
        draw = np.random.default_rng(2)
        self.link = link
        self.W, self.V = (
            torch.from_numpy(draw.normal(size=(items, 5))),
            torch.from_numpy(draw.normal(size=(5, items))),
        )

    def score_dense(self, profiles):
        return torch.tanh(profiles @ self.W) @ self.V

    def score_profiles(self, profiles):
        return self.score_dense(torch.from_numpy(profiles.toarray().astype(float))).numpy()


def value(model, profile, item):
    scores = model.score_profiles(sparse.csr_matrix(profile[None]))[0]
    return (
        1 / (1 + np.exp(-scores[item]))
        if model.link == "sigmoid"
        else np.exp(scores[item]) / np.exp(scores).sum()
    )


@pytest.mark.parametrize("link", ["sigmoid", "softmax"])
def test_the_loss_is_that_of_the_paper(world, link):
    """Dense, as in a program for one batch: masks of whole profiles, means over users, one mean over all masks."""
    setting = world(Bent(14, link), HISTORIES, 14, HISTORIES)
    config = hyperparameters(
        Config(variant="paper", paper=PaperOptions(lambda_pos=3.0, lambda_neg=0.7, alpha=2.0))
    )
    arrays = lxr_paper.initial(14, 4, np.random.default_rng(0))
    arrays = {name: array.astype(float) for name, array in arrays.items()}
    lessons = Lessons.of(setting.context, np.arange(3), 1)
    network = {name: torch.from_numpy(array) for name, array in arrays.items()}
    found = float(loss(network, setting.model, lessons, np.arange(3), np.zeros(3, dtype=int), config))

    keep, lose, masks = [], [], []
    for user, history in enumerate(HISTORIES):
        profile = np.zeros(14)
        profile[history] = 1
        item = lessons.lists[user, 0]
        first = np.concatenate(
            [
                profile @ arrays["profile.weight"] + arrays["profile.bias"],
                arrays["item.weight"][item] + arrays["item.bias"],
            ]
        )
        hidden = np.tanh(np.tanh(first) @ arrays["hidden.weight"] + arrays["hidden.bias"])
        mask = 1 / (1 + np.exp(-(arrays["output.weight"] @ hidden + arrays["output.bias"])))
        keep.append(np.log(value(setting.model, profile * mask, item)))
        lose.append(np.log(value(setting.model, profile * (1 - mask), item)))
        masks += mask[history].tolist()
    assert found == pytest.approx(-3 * np.mean(keep) + 0.7 * np.mean(lose) + 2 * np.mean(masks), abs=1e-9)


def test_the_initial_weights_are_distributed_as_those_of_linear_layers_of_torch():
    found = lxr_paper.initial(400, 16, np.random.default_rng(0))
    layers = {"profile": (400, 16), "item": (400, 16), "hidden": (32, 16), "output": (16, 400)}
    for name, (inputs, outputs) in layers.items():
        layer = torch.nn.Linear(inputs, outputs)
        for part in ("weight", "bias"):
            wanted = getattr(layer, part).detach().numpy()
            assert found[f"{name}.{part}"].size == wanted.size
            assert np.abs(found[f"{name}.{part}"]).max() <= inputs**-0.5
        assert found[f"{name}.weight"].std() == pytest.approx(layer.weight.std().item(), rel=0.1)


def test_training_stops_when_both_measures_became_worse_three_times_in_a_row():
    pos, neg = [0.5, 0.4, 0.3, 0.31, 0.32, 0.33], [0.5, 0.6, 0.7, 0.69, 0.68, 0.67]
    evaluations = list(zip(range(1, 7), pos, neg, strict=True))
    assert lxr_paper.stops(evaluations)
    assert not lxr_paper.stops(evaluations[:5])
    assert not lxr_paper.stops([*evaluations[:5], (6, 0.33, 0.68)]), "NEG stayed"
    assert not lxr_paper.stops([*evaluations[:5], (6, 0.32, 0.67)]), "POS stayed"


def test_the_epoch_with_the_lowest_pos_is_selected(world):
    draw = np.random.default_rng(1)
    histories = [np.sort(draw.choice(30, 6, replace=False)) for _ in range(60)]
    setting = world(Bent(30), histories, 30, histories)
    state = LXR(Config(variant="paper", paper=PaperOptions(epochs=5, hidden=8), validation=0.3)).prepare(
        setting.context
    )
    epochs, pos = state["validation"][:, 0], state["validation"][:, 1]
    assert epochs.tolist() == [1, 2, 3, 4, 5]
    options = PaperOptions(hidden=8, epochs=int(epochs[pos.argmin()]))
    shorter = LXR(Config(variant="paper", paper=options, validation=0.3)).prepare(setting.context)
    assert np.array_equal(shorter["profile.weight"], state["profile.weight"])


def test_options_of_the_other_variant_are_refused():
    with pytest.raises(UserError, match="target: is an option of variant: cfbench"):
        Config(variant="paper", target="logit")
