"""NCF: by hand, the forward pass and the loss written literally, its gradients, and what training may see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import check_component
from cfbench_recsys.plugin import cfbench_recommenders
from cfbench_recsys.recommenders.ncf import NCF, Config
from cfbench_recsys.testing import checks
from cfbench_recsys.testing.world import split, without_validation

SMALL = Config(dimensions=8, units=8, layers=2, learning_rate=0.01, device="cpu")
State = dict[str, np.ndarray]


def random_state(items: int, dimensions: int, widths: list[int], seed: int) -> State:
    draw = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "gmf.profile.weight": (dimensions, items),
        "gmf.profile.bias": (dimensions,),
        "gmf.item.weight": (dimensions, items),
        "mlp.profile.weight": (widths[0], items),
        "mlp.profile.bias": (widths[0],),
        "mlp.item.weight": (widths[0], items),
        "head.weight": (dimensions + widths[-1],),
        "head.bias": (2,),
    }
    for layer, width in enumerate(widths, start=1):
        shapes[f"mlp.{layer}.weight"] = (width, 2 * widths[0] if layer == 1 else widths[layer - 2])
        shapes[f"mlp.{layer}.bias"] = (width,)
    return {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def loaded(state: State, **options: Any) -> NCF:
    model = NCF(Config(device="cpu", **options))
    model.load_state(state, sparse.csr_matrix((1, state["gmf.item.weight"].shape[1])))
    return model


def literal_logits(state: State, profile: np.ndarray) -> np.ndarray:
    """NeuMF pair by pair, with the concatenation of the paper."""
    w = {name: array.astype(np.float64) for name, array in state.items()}
    p = w["gmf.profile.weight"] @ profile + w["gmf.profile.bias"]
    p_mlp = w["mlp.profile.weight"] @ profile + w["mlp.profile.bias"]
    logits = []
    for q, q_mlp in zip(w["gmf.item.weight"].T, w["mlp.item.weight"].T, strict=True):
        z, layer = np.concatenate([p_mlp, q_mlp]), 1
        while f"mlp.{layer}.weight" in w:
            z = np.maximum(0.0, w[f"mlp.{layer}.weight"] @ z + w[f"mlp.{layer}.bias"])
            layer += 1
        logits.append(w["head.weight"] @ np.concatenate([p * q, z]) + w["head.bias"].sum())
    return np.array(logits)


def fitted(train: sparse.csr_matrix, **options: Any) -> State:
    model = NCF(Config(device="cpu", **options))
    model.fit(without_validation(train), generator)
    return model.state()


def test_one_unit_in_each_tower_by_hand() -> None:
    """Profile {0, 2}: p = 2 + 3 + 1 = 6, p' = 1 + 1 = 2; items q = (1, 2, 3), q' = (0, -1, -2).

    z = relu(3 * 2 + 4 * q' - 1) = (5, 1, 0); s = 10 p q + 7 z + 0.5 - 0.25.
    """
    values = {
        "gmf.profile.weight": [[2.0, 9.0, 3.0]],
        "gmf.profile.bias": [1.0],
        "gmf.item.weight": [[1.0, 2.0, 3.0]],
        "mlp.profile.weight": [[1.0, 9.0, 1.0]],
        "mlp.profile.bias": [0.0],
        "mlp.item.weight": [[0.0, -1.0, -2.0]],
        "mlp.1.weight": [[3.0, 4.0]],
        "mlp.1.bias": [-1.0],
        "head.weight": [10.0, 7.0],
        "head.bias": [0.5, -0.25],
    }
    model = loaded({name: np.array(value, dtype=np.float32) for name, value in values.items()})
    scores = model.score_profiles(sparse.csr_matrix([[1.0, 0.0, 1.0]]))
    assert scores.tolist() == [[60 + 35 + 0.25, 120 + 7 + 0.25, 180 + 0.25]]


sizes = st.tuples(
    st.integers(1, 8),
    st.integers(1, 5),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
)


@settings(deadline=None, max_examples=40)
@given(sizes, st.integers(0, 70))
def test_scores_are_those_of_the_formula(size: tuple[int, int, list[int], int], count: int) -> None:
    state = random_state(*size)
    profiles = np.random.default_rng(size[-1]).integers(0, 2, (count, size[0])).astype(float)
    scores = loaded(state).score_profiles(sparse.csr_matrix(profiles))
    expected = [literal_logits(state, profile) for profile in profiles]
    np.testing.assert_allclose(scores, np.reshape(expected, scores.shape), rtol=1e-10, atol=1e-10)
    assert scores.dtype == np.float64


def test_empty_and_full_profiles_have_finite_scores_of_the_formula() -> None:
    state = random_state(7, 3, [5, 2], seed=1)
    profiles = np.array([np.zeros(7), np.ones(7)])
    scores = loaded(state).score_profiles(sparse.csr_matrix(profiles))
    np.testing.assert_allclose(scores, [literal_logits(state, p) for p in profiles], atol=1e-10)
    assert np.isfinite(scores).all()


def test_scores_are_to_the_bit_the_same_in_any_batch() -> None:
    model = loaded(random_state(300, 16, [8, 4], seed=2))
    profiles = sparse.random(150, 300, density=0.05, random_state=0, format="csr")
    profiles.data[:] = 1.0
    together = model.score_profiles(profiles)
    order = np.random.default_rng(1).permutation(150)
    assert np.array_equal(model.score_profiles(profiles[order]), together[order])
    for row in (0, 77, 149):
        assert np.array_equal(model.score_profiles(profiles[row]), together[row : row + 1])


def test_differentiable_scores_are_the_same_and_their_slopes_are_true() -> None:
    state = random_state(8, 3, [6, 3], seed=3)
    model, draw = loaded(state), np.random.default_rng(4)
    binary = draw.integers(0, 2, (5, 8)).astype(float)
    binary[0] = 0.0
    same = model.score_dense(torch.from_numpy(binary))
    assert same.dtype == torch.float64
    np.testing.assert_allclose(same.numpy(), model.score_profiles(sparse.csr_matrix(binary)), atol=1e-12)

    inside = torch.from_numpy(draw.uniform(0.1, 0.9, (3, 8))).requires_grad_()
    np.testing.assert_allclose(
        model.score_dense(inside).detach().numpy(),
        [literal_logits(state, row) for row in inside.detach().numpy()],
        atol=1e-10,
    )
    assert torch.autograd.gradcheck(model.score_dense, inside, eps=1e-7)


def literal_loss(state: State, profiles: np.ndarray, held: list[int], negatives: float) -> float:
    """Mean over the users of the log loss: one item held out of each profile, all unseen items negatives."""
    total = 0.0
    for profile, out in zip(profiles, held, strict=True):
        rest = profile.copy()
        rest[out] = 0.0
        probability = 1 / (1 + np.exp(-literal_logits(state, rest)))
        total += -np.log(probability[out]) - negatives * np.log(1 - probability[profile == 0]).mean()
    return total / len(profiles)


def test_the_loss_is_the_log_loss_of_an_item_held_out_given_the_rest() -> None:
    """A training step that changes nothing (a learning rate of nearly 0): its loss is reported.

    Of each user one item of two is held out, so it is the loss of one of eight choices.
    """
    profiles = np.kron([[1, 0, 1], [0, 1, 1], [1, 1, 0]], [1.0, 0.0, 0.0])
    config = Config(
        dimensions=3, units=4, layers=2, negatives=3.0, epochs=1, learning_rate=1e-12, device="cpu"
    )
    losses = set()
    for seed in range(8):
        model = NCF(config)
        summary = model.fit(
            without_validation(sparse.csr_matrix(profiles)), lambda *names, seed=seed: generator(seed, *names)
        )
        pairs = [np.flatnonzero(profile) for profile in profiles]
        choices = [[int(pair[bits >> user & 1]) for user, pair in enumerate(pairs)] for bits in range(8)]
        possible = [literal_loss(model.state(), profiles, choice, 3.0) for choice in choices]
        gaps = np.abs(np.array(possible) - summary["history"][0]["loss"])
        assert gaps.min() < 1e-5
        assert np.partition(gaps, 1)[1] > 1e-4, "the choices can be distinguished"
        losses.add(int(gaps.argmin()))
    assert len(losses) > 1


class Chooses:
    """A stream that draws the given items whenever items are to be drawn; else as any."""

    def __init__(self, items: list[int]) -> None:
        self.items, self.draw = np.array(items), np.random.default_rng(0)

    def choice(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self.items

    def __getattr__(self, name: str) -> Any:
        return getattr(self.draw, name)


def test_the_loss_over_drawn_items_is_that_over_all_of_them_in_expectation() -> None:
    """The mean over each single item drawn in turn is the loss with all six drawn."""
    train = sparse.csr_matrix([[1.0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1]])

    def loss(drawn: list[int]) -> float:
        config = Config(dimensions=3, units=4, layers=2, sampled=len(drawn), epochs=1, learning_rate=1e-12)
        summary = NCF(config).fit(without_validation(train), lambda *names: Chooses(drawn))  # type: ignore[arg-type, return-value]
        reported: float = summary["history"][0]["loss"]
        return reported

    assert np.mean([loss([item]) for item in range(6)]) == pytest.approx(loss(list(range(6))), rel=1e-5)


def test_a_positive_is_not_part_of_its_own_input() -> None:
    """Users with one interaction: it is the positive, so nothing ever enters the user towers.

    Were it left in the input, its column of the profile weights would be trained to recommend it.
    """
    train = sparse.csr_matrix(np.eye(6)[np.arange(40) % 6])
    early = fitted(train, dimensions=4, units=4, layers=2, epochs=1)
    late = fitted(train, dimensions=4, units=4, layers=2, epochs=5)
    for tower in ("gmf", "mlp"):
        assert np.array_equal(early[f"{tower}.profile.weight"], late[f"{tower}.profile.weight"])
        assert not np.array_equal(early[f"{tower}.item.weight"], late[f"{tower}.item.weight"])


def test_an_item_predicts_its_partner_and_not_itself() -> None:
    """Pairs (0, 1), (2, 3), ...: no user has one without the other."""
    train = sparse.csr_matrix(np.kron(np.eye(5), [1.0, 1.0])[np.arange(60) % 5])
    model = loaded(fitted(train, dimensions=16, units=16, layers=2, epochs=80, learning_rate=0.01))
    scores = model.score_profiles(sparse.csr_matrix(np.eye(10)))
    scores[np.arange(10), np.arange(10)] = -np.inf
    assert scores.argmax(axis=1).tolist() == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]


def test_towers_that_learn_alone_do_not_learn_from_each_other() -> None:
    """While they do, another perceptron changes nothing of the product; afterwards it does."""
    train = split().train

    def product(epochs: int, negatives_of_perceptron: int) -> np.ndarray:
        class Stream:
            """Draws as any; the first numbers of the perceptron's layers are other ones."""

            def __init__(self) -> None:
                self.draw = np.random.default_rng(0)

            def random(self, size: Any, dtype: Any = float) -> np.ndarray:
                drawn: np.ndarray = self.draw.random(size, dtype=dtype)
                another = isinstance(size, tuple) and len(size) == 2 and negatives_of_perceptron
                return 1 - drawn if another else drawn

            def __getattr__(self, name: str) -> Any:
                return getattr(self.draw, name)

        config = Config(dimensions=3, units=4, layers=2, pretraining=3, epochs=epochs, device="cpu")
        model = NCF(config)
        model.fit(without_validation(train), lambda *names: Stream())  # type: ignore[arg-type, return-value]
        return model.state()["gmf.item.weight"]

    assert np.array_equal(product(3, 0), product(3, 1))
    assert not np.array_equal(product(4, 0), product(4, 1))


def test_joined_towers_start_as_the_mean_of_the_two() -> None:
    """The epoch after the pretraining stands still (it is not run): its state is that before, head halved."""
    train = split().train
    options = {"dimensions": 3, "units": 4, "layers": 2, "epochs": 2}
    alone, joined = fitted(train, pretraining=5, **options), fitted(train, pretraining=2, **options)
    for name in alone:
        np.testing.assert_array_equal(alone[name], joined[name])


def test_equal_seeds_give_equal_weights_and_others_give_others() -> None:
    def state(seed: str) -> State:
        model = NCF(Config(dimensions=4, units=4, layers=2, epochs=3, pretraining=1, device="cpu"))
        model.fit(split(), lambda *names: generator(seed, *names))
        return model.state()

    first, again, other = state("a"), state("a"), state("b")
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["gmf.item.weight"], other["gmf.item.weight"])


def test_users_without_interactions_or_with_all_of_them_do_no_harm() -> None:
    train = np.zeros((4, 3))
    train[1], train[2, 0] = 1.0, 1.0
    state = fitted(sparse.csr_matrix(train), dimensions=2, units=3, layers=3, epochs=3)
    assert all(np.isfinite(array).all() for array in state.values())


def test_a_training_that_diverges_is_reported() -> None:
    with pytest.raises(UserError, match="learning_rate"):
        fitted(split().train, learning_rate=1e30, epochs=20)


def test_weights_of_other_items_or_without_a_part_are_refused_with_their_names() -> None:
    state = random_state(5, 2, [4, 2], seed=0)
    with pytest.raises(UserError, match=r"gmf\.item\.weight must be \(2, 4\), is \(2, 5\)"):
        NCF(Config()).load_state(state, sparse.csr_matrix((1, 4)))
    del state["mlp.2.weight"]
    with pytest.raises(UserError, match=r"mlp\.2\.weight \(2, 4\) is missing"):
        NCF(Config()).load_state(state, sparse.csr_matrix((1, 5)))


def test_it_passes_the_conformance_kit() -> None:
    (spec,) = [one for one in cfbench_recommenders() if one.id == "recsys/recommender/ncf"]
    report = check_component(spec, options=SMALL, checks=checks["recommender"])
    assert report.passed, str(report)
