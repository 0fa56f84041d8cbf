"""SimGCL: its encoder and its noisy views, by hand and against the paper's equations on the whole matrix.

What holds for every graph recommender is in ``test_graph_recommenders.py``; the losses in
``test_ranking_loss.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.edits import Edits
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS, Training
from cfbench_recsys.recommenders.simgcl import Config, SimGCL, view_noise
from cfbench_recsys.testing.world import split

DENSE = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 0]], dtype=float)
GRAPH = sparse.csr_matrix(DENSE)
USER_COUNT = len(DENSE)


class Recorder:
    """A random stream that remembers what it drew."""

    def __init__(self, seed: int) -> None:
        self.random_stream, self.drawn = np.random.default_rng(seed), []

    def random(self, size: Any, dtype: Any) -> np.ndarray:
        self.drawn.append(self.random_stream.random(size, dtype=dtype))
        return self.drawn[-1].copy()


def whole_graph() -> np.ndarray:
    """Ã over users and items."""
    nodes = sum(DENSE.shape)
    adjacency = np.zeros((nodes, nodes))
    adjacency[:USER_COUNT, USER_COUNT:] = DENSE
    adjacency += adjacency.T
    roots = adjacency.sum(axis=1) ** -0.5
    return np.asarray(roots[:, None] * adjacency * roots)


def training_of(config: Config) -> Training:
    return Training(GRAPH, config, SimGCL(config).layer_weights(), generator("simgcl", "test"))


def test_one_layer_by_hand() -> None:
    """Users 0: {0, 1}, 1: {1}. One layer, so F is Ã E, and E itself is no part of it.

    F_user0 = 10/sqrt(2) + 100/2, F_item0 = 1/sqrt(2).
    """
    model = SimGCL(Config(layers=1, device="cpu"))
    state = {
        USERS: np.array([[1.0], [2.0]], dtype=np.float32),
        ITEMS: np.array([[10.0], [100.0]], dtype=np.float32),
    }
    model.load_state(state, sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]]))
    scores = model.score_edits(Edits.nothing(np.array([0])))
    assert scores[0, 0] == pytest.approx((10 / 2**0.5 + 50) / 2**0.5, rel=1e-12)


def test_who_has_no_edge_left_scores_nothing() -> None:
    """Without layer 0 nothing is left of a user without interactions: every logit is 0."""
    model = SimGCL(Config(layers=2, device="cpu"))
    draw = np.random.default_rng(0)
    state = {name: draw.normal(size=(n, 3)) for name, n in zip((USERS, ITEMS), DENSE.shape, strict=True)}
    empty = DENSE.copy()
    empty[1] = 0
    model.load_state(state, sparse.csr_matrix(empty))
    assert np.array_equal(model.score_edits(Edits.nothing(np.array([1]))), np.zeros((1, 4)))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_views_follow_the_papers_recursion(layers: int) -> None:
    """V_l = Ã V_{l-1} + noise_l with the signs of Ã V_{l-1}: on every layer, from the very numbers drawn."""
    training = training_of(Config(layers=layers, dimensions=6, device="cpu"))
    recorder = Recorder(1)
    of_layers = training.layers()[1:]
    noise = torch.cat(view_noise(of_layers, training.step, 0.3, recorder)).numpy()
    final = np.vstack(training.final_embeddings())

    step = whole_graph()
    view = np.vstack([training.users.detach().numpy(), training.items.detach().numpy()]).astype(float)
    mean = np.zeros_like(view)
    assert len(recorder.drawn) == 2 * layers  # users and items, each layer anew
    for users, items in zip(recorder.drawn[::2], recorder.drawn[1::2], strict=True):
        view = step @ view
        drawn = np.vstack([users, items]).astype(float)
        added = 0.3 * drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * np.sign(view)
        np.testing.assert_allclose(np.linalg.norm(added, axis=1), 0.3)
        view = view + added
        mean += view / layers
    np.testing.assert_allclose(final + noise, mean, rtol=1e-5, atol=1e-6)


def test_noise_of_any_layer_reaches_the_view() -> None:
    """What is drawn for one layer alone moves every node's view: no layer's noise is lost."""
    training = training_of(Config(layers=3, dimensions=6, device="cpu"))
    of_layers = training.layers()[1:]
    plain = Recorder(2)
    before = torch.cat(view_noise(of_layers, training.step, 0.3, plain))
    for layer in range(3):

        class Altered:
            def __init__(self, changed: int) -> None:
                self.call, self.changed = 0, changed

            def random(self, size: Any, dtype: Any) -> np.ndarray:
                drawn = plain.drawn[self.call].copy()
                self.call += 1
                return drawn[:, ::-1].copy() if (self.call - 1) // 2 == self.changed else drawn

        after = torch.cat(view_noise(of_layers, training.step, 0.3, Altered(layer)))
        assert ((after - before).abs().sum(1) > 1e-4).all()


def test_the_loss_is_that_of_the_paper() -> None:
    """BPR + contrast (InfoNCE of users + InfoNCE of items) + L2, from the views of the recursion."""
    config = Config(
        layers=2, dimensions=5, contrast=0.7, noise=0.4, temperature=0.3, negatives=4, device="cpu", l2=0.01
    )
    model, users, items = SimGCL(config), np.array([0, 0, 1, 2]), np.array([0, 1, 2, 1])
    ours = model.loss(training_of(config), users, items)(slice(0, len(users)))

    again = training_of(config)  # the same streams: first the negatives, then a view after the other
    assert sorted(again.random.choice(4, size=4, replace=False)) == [0, 1, 2, 3]
    final = [torch.from_numpy(side) for side in again.final_embeddings()]
    margins = [
        final[0][u] @ (final[1][i] - final[1][j]) if DENSE[u, j] == 0 else torch.tensor(torch.inf)
        for u, i in zip(users, items, strict=True)
        for j in range(4)
    ]
    expected = -torch.nn.functional.logsigmoid(torch.stack([m.double() for m in margins])).mean()
    e_users, e_items = (side.detach().double() for side in (again.users, again.items))
    squares = (e_users[users] ** 2).sum(1).mean() + (e_items[items] ** 2).sum(1).mean()
    expected = expected + 0.01 / 2 * (squares + (e_items**2).sum(1).mean())
    of_layers = again.layers()[1:]
    views = [view_noise(of_layers, again.step, 0.4, again.random) for _ in range(2)]
    for side, nodes in enumerate(([0, 1, 2], [0, 1, 2])):
        first, second = ((final[side] + view[side].double())[nodes] for view in views)
        for a in range(3):
            cosines = torch.nn.functional.cosine_similarity(first[a], second) / 0.3
            expected = expected - 0.7 * torch.log_softmax(cosines, 0)[a] / 3
    assert float(ours.detach()) == pytest.approx(float(expected), rel=1e-5)


def test_the_contrast_pulls_on_the_embeddings() -> None:
    """With it the gradient is another one; with weight 0 it is that of BPR alone, and no noise is drawn."""
    users, items = GRAPH.nonzero()

    def gradient(contrast: float) -> torch.Tensor:
        config = Config(dimensions=6, contrast=contrast, device="cpu")
        training = training_of(config)
        SimGCL(config).loss(training, users, items)(slice(0, len(users))).backward()
        return torch.cat([training.users.grad, training.items.grad])

    with_contrast, without = gradient(0.5), gradient(0.0)
    assert ((with_contrast - without).abs().sum(1) > 1e-4).all()


def test_of_a_large_batch_a_bounded_part_is_contrasted() -> None:
    """2 of 3 users, 2 of 4 items: two views of two nodes each have a loss of log 2 for an endless temperature."""
    config = Config(
        dimensions=6, contrast=1.0, contrasted=2, temperature=1e9, l2=0.0, negatives=1, device="cpu"
    )
    users, items = GRAPH.nonzero()
    with_contrast = SimGCL(config).loss(training_of(config), users, items)(slice(0, len(users)))
    plain = Config(dimensions=6, contrast=0.0, l2=0.0, negatives=1, device="cpu")
    without = SimGCL(plain).loss(training_of(plain), users, items)(slice(0, len(users)))
    assert float((with_contrast - without).detach()) == pytest.approx(2 * np.log(2), rel=1e-4)


def test_there_is_no_noise_after_training() -> None:
    data = split()
    model = SimGCL(Config(dimensions=4, epochs=4, device="cpu"))
    model.fit(data, generator)
    users = Edits.nothing(np.arange(20))
    assert np.array_equal(model.score_edits(users), model.score_edits(users))
    expected = model.user_embeddings()[:20] @ model.item_embeddings().T
    np.testing.assert_allclose(model.score_edits(users), expected, rtol=1e-12)
