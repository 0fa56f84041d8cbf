"""Products and scores of a unit have the same bits alone and in any batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.batch_products import column_product, columnwise_product, rows_product, scaled_columns
from cfbench_recsys.bipartite_graph import sparse_tensor
from cfbench_recsys.edits import Edits
from cfbench_recsys.graph_edits import distinct
from cfbench_recsys.recommenders import lightgcn, simgcl

MODELS = {"lightgcn": (lightgcn.LightGCN, lightgcn.Config), "simgcl": (simgcl.SimGCL, simgcl.Config)}


def test_products_are_those_of_torch_and_so_are_their_gradients() -> None:
    draw = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64, requires_grad=True)

    matrix, matrices = numbers(5, 7).detach(), numbers(3, 4, 4).detach()
    x, vectors, factors = numbers(7, 11), numbers(3, 4), numbers(11)
    transposed = matrices.mT.contiguous()
    across = matrix.T.contiguous()
    torch.testing.assert_close(column_product(matrix, x), matrix @ x)
    torch.testing.assert_close(column_product(matrix, x, across), matrix @ x)
    torch.testing.assert_close(
        rows_product(matrices, transposed, vectors), torch.einsum("bij,bj->bi", matrices, vectors)
    )
    torch.testing.assert_close(scaled_columns(x, factors), x * factors)
    assert torch.autograd.gradcheck(lambda x: column_product(matrix, x), (x,))
    assert torch.autograd.gradcheck(lambda x: column_product(matrix, x, across), (x,))
    assert torch.autograd.gradcheck(lambda v: rows_product(matrices, transposed, v), (vectors,))
    assert torch.autograd.gradcheck(scaled_columns, (x, factors))


@settings(deadline=None, max_examples=100)
@given(
    sides=st.tuples(st.integers(1, 700), st.integers(1, 700)),
    threads=st.sampled_from([1, 2]),
    lies=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_a_column_has_the_same_product_in_any_batch(
    sides: tuple[int, int], threads: int, lies: bool, seed: int
) -> None:
    """Matrices of any shape, contiguous or transposed, on one thread and on two; up to three blocks and a part of one."""
    draw = torch.Generator().manual_seed(seed)
    matrix = torch.randn(sides, generator=draw, dtype=torch.float64)
    matrix = matrix.T.contiguous().T if lies else matrix
    x = torch.randn(sides[1], 80, generator=draw, dtype=torch.float64)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        together = column_product(matrix, x)
        for count in (1, 7, 24, 25, 61):
            some = torch.randperm(80, generator=draw)[:count]
            assert torch.equal(column_product(matrix, x[:, some]), together[:, some])
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(together, matrix @ x)


@settings(deadline=None, max_examples=60)
@given(
    sides=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    density=st.floats(0.01, 0.5),
    threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**16),
)
def test_a_column_has_the_same_sparse_product_in_any_batch(
    sides: tuple[int, int], density: float, threads: int, seed: int
) -> None:
    """Any number of columns up to 40, among them those for which MKL has kernels of their own."""
    matrix = sparse.random(*sides, density, format="csr", random_state=seed)
    tensor = sparse_tensor(matrix, torch.float64, torch.device("cpu"))
    x = torch.randn(sides[1], 40, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        together = columnwise_product(tensor, x)
        for count in range(1, 40):
            assert torch.equal(columnwise_product(tensor, x[:, :count].contiguous()), together[:, :count])
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(together.numpy(), matrix @ x.numpy(), atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(data=st.data(), name=st.sampled_from(sorted(MODELS)), seed=st.integers(0, 2**16))
def test_scores_and_gradients_of_an_edited_graph_do_not_depend_on_the_batch(
    data: st.DataObject, name: str, seed: int
) -> None:
    """Random graphs, embeddings and fractional edits; a random part of the batch in random order, and each alone."""
    draw = np.random.default_rng(seed)
    shape = tuple(draw.integers(8, 120, size=2))
    dimensions = data.draw(st.sampled_from([3, 16, 64]))
    graph = sparse.csr_matrix((draw.random(shape) < 0.1).astype(float))
    graph[0, 0] = 1.0
    model_class, config = MODELS[name]
    model = model_class(config(device="cpu", layers=data.draw(st.integers(1, 3))))
    sides = {
        f"{side}_embedding.weight": draw.standard_normal((count, dimensions))
        for side, count in zip(("user", "item"), shape, strict=True)
    }
    model.load_state(sides, sparse.csr_matrix(graph))
    count = data.draw(st.sampled_from([3, 20, 30, 60]))
    users = draw.integers(0, shape[0], count)
    edges = [[draw.integers(0, side, draw.integers(1, 30)) for side in shape] for _ in range(count)]
    edges = [[pair[:, 0], pair[:, 1]] for pair in map(_distinct, edges)]
    deltas = [-draw.random(len(own[0])) for own in edges]

    def computed(which: list[int]) -> list[tuple[bytes, bytes]]:
        rows = np.repeat(np.arange(len(which)), [len(deltas[unit]) for unit in which])
        of_users, of_items = (np.concatenate([edges[unit][side] for unit in which]) for side in (0, 1))
        delta = torch.from_numpy(np.concatenate([deltas[unit] for unit in which])).requires_grad_()
        arrays = (torch.from_numpy(array) for array in (users[which], rows, of_users, of_items))
        scores = model.score_weighted(*arrays, delta)
        best = scores.topk(2, dim=1).values
        (gradient,) = torch.autograd.grad(torch.relu(scores[:, :5] - best[:, 1:]).sum(), delta)
        return [
            (scores[place].detach().numpy().tobytes(), gradient.numpy()[rows == place].tobytes())
            for place in range(len(which))
        ]

    together = computed(list(range(count)))
    some = data.draw(st.permutations(range(count)))[: data.draw(st.integers(1, count))]
    assert computed(some) == [together[unit] for unit in some]
    for unit in some[:4]:
        assert computed([unit]) == [together[unit]]


def _distinct(pair: list[np.ndarray]) -> np.ndarray:
    length = min(len(side) for side in pair)
    return np.unique(np.stack([side[:length] for side in pair], axis=1), axis=0)


def test_equal_edits_are_scored_once() -> None:
    """Different users, removed edges and kinds of edits are different; each gets the scores that it gets alone."""
    draw = np.random.default_rng(0)
    graph = sparse.csr_matrix((draw.random((50, 70)) < 0.2).astype(float))
    model = lightgcn.LightGCN(lightgcn.Config(device="cpu"))
    state = {"user_embedding.weight": (50, 64), "item_embedding.weight": (70, 64)}
    model.load_state({name: draw.standard_normal(shape) for name, shape in state.items()}, graph)
    users, items = (side[:3] for side in graph.nonzero())
    absent = int(np.flatnonzero(graph[0].toarray()[0] == 0)[0])
    one_of_each = Edits(
        np.array([0, 0, 7, 0, 0]),
        np.array([0, 1, 1, 2, 3]),
        np.array([users[0], users[0], users[1], users[0], 0]),
        np.array([items[0], items[0], items[1], items[0], absent]),
        np.array([-1, -1, -1, -1, 1], dtype=np.int8),
    )
    which = np.array([0, 1, 0, 4, 3, 2, 3, 3])
    repeated = one_of_each.choose(which)
    first, places = distinct(repeated, np.array([0, 1, 2, 4, 5, 6, 7]))
    assert first.tolist() == [0, 1, 4, 5]
    assert places.tolist() == [0, 1, 0, 2, 3, 2, 2]
    alone = [model.score_edits(one_of_each.take(place, place + 1))[0] for place in range(5)]
    assert (model.score_edits(repeated) == np.stack(alone)[which]).all()
    assert len(np.unique(np.stack(alone)[:4], axis=0)) == 4


@pytest.mark.parametrize("count", [1, 3, 25, 40])
def test_scores_of_the_untouched_graph_do_not_depend_on_the_batch(count: int) -> None:
    draw = np.random.default_rng(0)
    graph = sparse.csr_matrix((draw.random((50, 70)) < 0.1).astype(float))
    model = lightgcn.LightGCN(lightgcn.Config(device="cpu"))
    state = {"user_embedding.weight": (50, 64), "item_embedding.weight": (70, 64)}
    model.load_state({name: draw.standard_normal(shape) for name, shape in state.items()}, graph)
    together = model.score_edits(Edits.nothing(np.arange(count)))
    for user in range(count):
        assert (model.score_edits(Edits.nothing(np.array([user])))[0] == together[user]).all()
