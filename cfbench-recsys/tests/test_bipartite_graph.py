from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.bipartite_graph import _all_scaled, _scaling, _TouchedScaled


@given(
    nodes=st.integers(1, 12), graphs=st.integers(1, 5), edges=st.integers(0, 60), seed=st.integers(0, 2**16)
)
@settings(max_examples=200, deadline=None)
def test_scaling_is_that_of_each_edited_graph(nodes: int, graphs: int, edges: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    degrees = torch.randint(0, 4, (nodes,), generator=generator).double()
    touched = torch.randint(0, nodes, (edges,), generator=generator)
    rows = torch.randint(0, graphs, (edges,), generator=generator)
    delta = torch.rand(edges, generator=generator).double() - 0.3
    values = torch.rand(nodes, graphs, generator=generator).double()

    found = []
    for make in (_all_scaled, _TouchedScaled, _scaling):
        weights = delta.clone().requires_grad_()
        scaled = make(degrees, graphs, touched, rows, weights)(values)
        scaled.sum().backward()
        found.append((scaled.detach(), weights.grad))
    for scaled, gradient in found[1:]:
        assert torch.equal(scaled, found[0][0])
        assert torch.equal(gradient, found[0][1])

    expected = torch.zeros_like(values)
    for graph in range(graphs):
        for node in range(nodes):
            own = (touched == node) & (rows == graph)
            degree = float(degrees[node]) + float(delta[own].sum())
            expected[node, graph] = values[node, graph] * degree**-0.5 if degree > 1e-9 else 0.0
    assert torch.allclose(found[0][0], expected, atol=1e-9)
