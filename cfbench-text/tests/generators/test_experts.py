import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs cfbench-text[torch]")

from cfbench_text.generators.experts import adapted, gates, mixture  # noqa: E402


def drawn(experts=3, seed=0):
    """Weights that are all at random."""
    torch.manual_seed(seed)
    weights = mixture(4, 6, experts)
    with torch.no_grad():
        for values in weights.values():
            values.normal_()
    return weights


X = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))


def test_one_expert_is_a_linear_map_of_what_is_left_of_its_offset():
    weights = drawn(experts=1).eval()
    expected = (X - weights["offset"][0]) @ weights["weight"][0]
    assert torch.allclose(adapted(weights, X, 0.5), expected, atol=1e-5)


def test_each_expert_has_the_weight_of_its_gate():
    weights = drawn().eval()
    with torch.no_grad():
        w = {name: value.numpy().astype(np.float64) for name, value in weights.items()}
        x, expected = X.numpy().astype(np.float64), np.zeros((5, 6))
        for row in range(5):
            scores = np.exp(x[row] @ w["gate"])
            for k in range(3):
                expected[row] += scores[k] / scores.sum() * ((x[row] - w["offset"][k]) @ w["weight"][k])
        np.testing.assert_allclose(adapted(weights, X, 0.2).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("learning", [True, False])
def test_gates_are_shares(learning):
    found = gates(drawn().train(learning), X)
    assert found.shape == (5, 3) and (found > 0).all()
    assert torch.allclose(found.sum(dim=1), torch.ones(5))


def test_noise_and_dropout_are_there_only_while_it_learns():
    weights = drawn()
    for learning in (True, False):
        weights.train(learning)
        assert torch.equal(gates(weights, X), gates(weights, X)) != learning
        assert torch.equal(adapted(weights, X, 0.3), adapted(weights, X, 0.3)) != learning


def test_noise_has_the_width_that_is_learned():
    """The logits less their clean values, of many draws: softplus(x S) + 0.01."""
    weights = drawn()
    x = X[:1].repeat(20_000, 1)
    with torch.no_grad():
        logits = gates(weights, x).log()
        clean = (X[0] @ weights["gate"]).log_softmax(dim=0)
        width = torch.nn.functional.softplus(X[0] @ weights["noise"]) + 0.01
        differences = (logits[:, 0] - logits[:, 1]) - (clean[0] - clean[1])
        assert float(differences.std()) == pytest.approx(
            float((width[0] ** 2 + width[1] ** 2).sqrt()), rel=0.05
        )
        assert float(differences.mean()) == pytest.approx(0, abs=0.1)


def test_at_first_all_experts_have_the_same_share():
    torch.manual_seed(0)
    found = gates(mixture(4, 6, 8).eval(), X)
    assert torch.allclose(found, torch.full((5, 8), 1 / 8))


def test_all_that_is_learned_has_a_gradient():
    weights = drawn().train()
    adapted(weights, X, 0.2).square().sum().backward()
    assert all(value.grad is not None and value.grad.abs().sum() > 0 for value in weights.values())
