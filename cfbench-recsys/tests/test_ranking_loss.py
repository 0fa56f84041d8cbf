"""BPR and InfoNCE: by hand, against their formulas written as loops, and their gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cfbench_recsys.ranking_loss import BLOCK, bpr, info_nce


def literal_bpr(
    users: Tensor, items: Tensor, user: list[int], item: list[int], negative: list[int], seen: set
) -> Tensor:
    """One term after the other; autograd does the rest."""
    total = 0.0 * users.sum() + 0.0 * items.sum()
    for u, i in zip(user, item, strict=True):
        for j in negative:
            if (u, j) not in seen:
                total = total - torch.nn.functional.logsigmoid(users[u] @ items[i] - users[u] @ items[j])
    return total / (len(user) * len(negative))


def places(seen: set[tuple[int, int]], negative: list[int]) -> tuple[Tensor, Tensor]:
    found = [(u, place) for u, j in seen for place, own in enumerate(negative) if own == j]
    users, columns = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return torch.from_numpy(users.copy()), torch.from_numpy(columns.copy())


def test_one_pair_and_two_negatives_by_hand() -> None:
    """s(u) = 2, 1, 5 for items 0, 1, 2: -log sigmoid(2 - 1) and -log sigmoid(2 - 5), their mean."""
    users, items = torch.tensor([[1.0]]), torch.tensor([[2.0], [1.0], [5.0]])
    zero, negative = torch.tensor([0]), torch.tensor([1, 2])
    no_users = (torch.tensor([], dtype=torch.int64),) * 2
    expected = (math.log1p(math.exp(-1)) + math.log1p(math.exp(3))) / 2
    assert float(bpr(users, items, zero, zero, negative, no_users)) == pytest.approx(expected)
    seen = (torch.tensor([0]), torch.tensor([1]))  # item 2, the second negative, is one of the user's own
    assert float(bpr(users, items, zero, zero, negative, seen)) == pytest.approx(math.log1p(math.exp(-1)) / 2)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_loss_and_gradient_are_those_of_the_formula(data: st.DataObject) -> None:
    """Users and items that come up often or never, negatives that are positives of others."""
    user_count, item_count = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    pair = st.tuples(st.integers(0, user_count - 1), st.integers(0, item_count - 1))
    user, item = zip(*data.draw(st.lists(pair, min_size=1, max_size=8)), strict=True)
    negative = data.draw(st.lists(st.integers(0, item_count - 1), min_size=1, unique=True))
    seen = data.draw(st.sets(pair)) | set(zip(user, item, strict=True))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    users, items = (
        torch.from_numpy(draw.normal(size=(count, 3))).requires_grad_() for count in (user_count, item_count)
    )
    expected = literal_bpr(users, items, list(user), list(item), negative, seen)
    wanted = torch.autograd.grad(3 * expected, (users, items))
    ours = bpr(users, items, *map(torch.tensor, (user, item, negative)), places(seen, negative))
    found = torch.autograd.grad(3 * ours, (users, items))
    assert float(ours.detach()) == pytest.approx(float(expected.detach()), rel=1e-10)
    for gradient, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, other)


def test_more_pairs_than_fit_into_one_block() -> None:
    draw = np.random.default_rng(0)
    users, items = (torch.from_numpy(draw.normal(size=(n, 4))).requires_grad_() for n in (30, 20))
    user, item = (torch.from_numpy(draw.integers(0, n, 2 * BLOCK + 7)) for n in (30, 20))
    negative = torch.arange(0, 20, 3)
    margins = (users[user] * items[item]).sum(1, keepdim=True) - users[user] @ items[negative].T
    expected = -torch.nn.functional.logsigmoid(margins).mean()
    no_users = (torch.tensor([], dtype=torch.int64),) * 2
    ours = bpr(users, items, user, item, negative, no_users)
    torch.testing.assert_close(ours, expected)
    for found, wanted in zip(
        torch.autograd.grad(ours, (users, items)),
        torch.autograd.grad(expected, (users, items)),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_a_hopeless_pair_has_a_finite_loss() -> None:
    users, items = torch.tensor([[1e4]]).requires_grad_(), torch.tensor([[-1.0], [1.0]])
    no_users = (torch.tensor([], dtype=torch.int64),) * 2
    loss = bpr(users, items, torch.tensor([0]), torch.tensor([0]), torch.tensor([1]), no_users)
    assert float(loss.detach()) == pytest.approx(2e4)
    (gradient,) = torch.autograd.grad(loss, users)
    assert float(gradient) == pytest.approx(2.0)


def test_contrast_of_two_nodes_by_hand() -> None:
    """Cosines 1 with oneself and 0 with the other, temperature 0.5: -log(e^2 / (e^2 + 1)), lengths ignored."""
    first = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    second = torch.tensor([[5.0, 0.0], [0.0, 0.1]])
    expected = -math.log(math.exp(2) / (math.exp(2) + 1))
    assert float(info_nce(first, second, 0.5)) == pytest.approx(expected)


def test_contrast_is_the_formula() -> None:
    draw = np.random.default_rng(1)
    first, second = draw.normal(size=(2, 7, 3))
    total = 0.0
    for a in range(7):
        cosines = [
            first[a] @ second[b] / np.linalg.norm(first[a]) / np.linalg.norm(second[b]) for b in range(7)
        ]
        total -= math.log(math.exp(cosines[a] / 0.2) / sum(math.exp(cosine / 0.2) for cosine in cosines))
    ours = info_nce(torch.from_numpy(first), torch.from_numpy(second), 0.2)
    assert float(ours) == pytest.approx(total / 7)
