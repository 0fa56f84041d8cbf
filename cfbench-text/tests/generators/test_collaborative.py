import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs cfbench-text[torch]")

from cfbench_text.generators.collaborative import (  # noqa: E402
    Seen,
    Settings,
    bpr,
    graph_of,
    learned_vectors,
    propagated,
    step_loss,
)

PAIRS = np.array([[0, 0], [0, 1], [1, 1], [2, 2], [0, 0]])
FEW = Settings(dimensions=4, layers=2, epochs=60, learning_rate=0.05, patience=100, batch=4)


def drawn_pairs(users=12, items=9, seed=0):
    draw = np.random.default_rng(seed)
    return np.argwhere(draw.random((users, items)) < 0.4)


def dense_graph(pairs, users, items):
    """D^-1/2 A D^-1/2 with everything written out."""
    a = np.zeros((users + items, users + items))
    for user, item in pairs:
        a[user, users + item] = a[users + item, user] = 1
    scale = np.diag([1 / np.sqrt(d) if d else 0 for d in a.sum(axis=1)])
    return scale @ a @ scale


def test_the_smallest_graph():
    """User 0 has two items, item 1 two users; the review that is there twice counts once."""
    found = graph_of(Seen.of(PAIRS, 3, 3), "cpu").to_dense().numpy()
    assert found[0, 3] == pytest.approx(1 / np.sqrt(2)) and found[0, 4] == pytest.approx(1 / 2)
    assert found[2, 5] == 1 and found[0, 5] == 0 and not found[:3, :3].any()


@pytest.mark.parametrize("layers", [0, 1, 2, 4])
def test_propagation_is_the_mean_of_the_powers_of_the_graph(layers):
    pairs = drawn_pairs()
    first = torch.randn(21, 5, generator=torch.Generator().manual_seed(0))
    dense = dense_graph(pairs, 12, 9)
    expected = sum(np.linalg.matrix_power(dense, n) for n in range(layers + 1)) / (layers + 1) @ first.numpy()
    found = propagated(graph_of(Seen.of(pairs, 12, 9), "cpu"), first, layers)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_the_loss_is_that_of_the_paper():
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((6, 3))
    pairs, others = np.array([[0, 0], [1, 2]]), np.array([2, 1])
    expected = [
        -np.log(1 / (1 + np.exp(-(vectors[u] @ vectors[3 + i] - vectors[u] @ vectors[3 + j]))))
        for (u, i), j in zip(pairs, others, strict=True)
    ]
    found = bpr(torch.from_numpy(vectors), Seen.of(PAIRS, 3, 3), pairs, others)
    assert float(found) == pytest.approx(np.mean(expected))


def test_negative_items_are_drawn_uniformly():
    seen = Seen.of(PAIRS, 3, 4)
    found = seen.draw(np.repeat([0, 1, 2], 3000), np.random.default_rng(0))
    for user, theirs in ((0, {0, 1}), (1, {1}), (2, {2})):
        items, counts = np.unique(found[user * 3000 : (user + 1) * 3000], return_counts=True)
        assert set(items) == set(range(4)) - theirs
        assert counts == pytest.approx(3000 / len(items), rel=0.1)


def test_a_user_who_has_reviewed_everything_has_nothing_to_draw_and_stops_nothing():
    pairs = np.array([[0, 0], [0, 1], [1, 0]])
    assert Seen.of(pairs, 2, 2).with_others(pairs).tolist() == [[1, 0]]
    users, items = vectors_of(pairs, (2, 2))
    assert torch.isfinite(users).all() and torch.isfinite(items).all()


def vectors_of(pairs, shape, validation=(), settings=FEW, seed=0, report=lambda loss: None):
    torch.manual_seed(seed)
    validation = np.array(validation, dtype=np.int64).reshape(-1, 2)
    return learned_vectors(pairs, validation, shape, settings, np.random.default_rng(seed), "cpu", report)


def test_two_separate_groups_are_distinguished():
    pairs = np.array([(u, i) for u in range(8) for i in range(8) if u % 2 == i % 2 and u != i])
    users, items = vectors_of(pairs, (8, 8))
    scores = (users @ items.T).numpy()
    own = np.array([[u % 2 == i % 2 for i in range(8)] for u in range(8)])
    assert scores[own].min() > scores[~own].max()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_and_another_seed_does_not():
    pairs = drawn_pairs()
    first, again, other = (vectors_of(pairs, (12, 9), seed=seed)[0] for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_evaluation_with_the_lowest_validation_loss_is_selected():
    """Pairs at random teach nothing about each other, so what is learned longest knows the others worst."""
    pairs, others = drawn_pairs(), drawn_pairs(seed=1)
    looks: list[float] = []
    kept = vectors_of(pairs, (12, 9), others, report=looks.append)[0]
    best = int(np.argmin(looks))
    assert len(looks) == 12 and best < 10
    until = dataclasses.replace(FEW, epochs=5 * (best + 1))
    assert torch.equal(kept, vectors_of(pairs, (12, 9), others, until)[0])
    impatient: list[float] = []
    settings = dataclasses.replace(FEW, patience=2)
    vectors_of(pairs, (12, 9), others, settings, report=impatient.append)
    assert impatient == looks[: best + 3]


def test_without_validation_pairs_the_last_epoch_is_used():
    assert not torch.equal(
        *(vectors_of(drawn_pairs(), (12, 9), (), dataclasses.replace(FEW, epochs=n))[0] for n in (9, 10))
    )


def test_sum_and_l2_as_published():
    """XRec's encoder: the sum of the layers, and the squares of the propagated vectors of the batch, undivided."""
    pairs = drawn_pairs()
    seen = Seen.of(pairs, 12, 9)
    first = torch.randn(21, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    graph = graph_of(seen, "cpu").double()
    chosen, others = pairs[:5], np.array([0, 3, 8, 2, 1])
    settings = dataclasses.replace(FEW, l2=0.3, published=True)
    found = float(step_loss(first, graph, seen, chosen, others, settings))

    dense = dense_graph(pairs, 12, 9)
    vectors = sum(np.linalg.matrix_power(dense, power) for power in range(3)) @ first.numpy()
    terms, squares = [], 0.0
    for (user, item), other in zip(chosen, others, strict=True):
        u, i, j = vectors[user], vectors[12 + item], vectors[12 + other]
        terms.append(np.log1p(np.exp(-(u @ i - u @ j))))
        squares += u @ u + i @ i + j @ j
    assert found == pytest.approx(np.mean(terms) + 0.3 * squares)


def test_vectors_as_published_start_uniformly_in_the_range_of_each_side():
    settings = dataclasses.replace(FEW, dimensions=64, layers=0, epochs=1, learning_rate=0.0, published=True)
    torch.manual_seed(0)
    pairs = drawn_pairs(users=60, items=9)
    sides = learned_vectors(pairs, pairs[:0], (60, 9), settings, np.random.default_rng(0), "cpu")
    for side, count in zip(sides, (60, 9), strict=True):
        bound = np.sqrt(6 / (count + 64))
        assert 0.95 * bound < float(side.abs().max()) <= bound + 1e-6
        assert float(side.var()) == pytest.approx(bound**2 / 3, rel=0.1)
