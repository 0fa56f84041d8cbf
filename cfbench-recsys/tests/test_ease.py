"""EASE: by hand, against the paper's formula, and against the ridge regressions that it solves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from cfbench_core import api, usable_memory
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.usable_memory import UsableMemory
from cfbench_recsys.quality import evaluate
from cfbench_recsys.recommenders.ease import EASE, GRID, Config
from cfbench_recsys.splits import Holdout, Split
from cfbench_recsys.testing.world import split

no_users = Holdout(np.empty(0, dtype=np.int64), sparse.csr_matrix((0, 2)), sparse.csr_matrix((0, 2)))


def fitted(interactions: Any, l2: float | None) -> EASE:
    train = sparse.csr_matrix(np.asarray(interactions, dtype=float))
    model = EASE(Config(l2=l2))
    model.fit(Split(train, train, no_users, no_users, np.arange(train.shape[0])), generator)
    return model


def test_two_items_by_hand() -> None:
    """X^T X + I = [[3, 1], [1, 2]], its inverse [[2, -1], [-1, 3]] / 5; B[i, j] = -P[i, j] / P[j, j]."""
    weight = fitted([[1, 1], [1, 0]], l2=1.0).state()["weight"]
    np.testing.assert_allclose(weight, [[0, 1 / 3], [1 / 2, 0]], atol=1e-15)


binary = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 6)),
    elements=st.sampled_from([0.0, 1.0]),
)


@settings(deadline=None)
@given(binary, st.sampled_from([0.5, 3.0, 100.0]))
def test_each_column_is_the_ridge_regression_of_an_item_on_the_others(x: np.ndarray, l2: float) -> None:
    weight = fitted(x, l2).state()["weight"]
    for item in range(x.shape[1]):
        others = [other for other in range(x.shape[1]) if other != item]
        gram = x[:, others].T @ x[:, others] + l2 * np.eye(len(others))
        expected = np.linalg.solve(gram, x[:, others].T @ x[:, item])
        np.testing.assert_allclose(weight[others, item], expected, atol=1e-10)
        assert weight[item, item] == 0.0


@settings(deadline=None)
@given(binary)
def test_scores_are_the_sum_of_the_weights(x: np.ndarray) -> None:
    model = fitted(x, 2.0)
    scores = model.score_profiles(sparse.csr_matrix(x))
    items = np.arange(x.shape[1])
    np.testing.assert_allclose(scores, x @ model.weights(items[:, None], items[None, :]), atol=1e-12)
    assert scores.dtype == np.float64


def test_gradients_of_dense_profiles_are_the_weights() -> None:
    model = fitted([[1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 1]], 2.0)
    profiles = torch.full((1, 4), 0.5, dtype=torch.float64, requires_grad=True)
    scores = model.score_dense(profiles)[0]
    gradients = torch.cat([torch.autograd.grad(score, profiles, retain_graph=True)[0] for score in scores])
    items = np.arange(4)
    np.testing.assert_allclose(gradients.T, model.weights(items[:, None], items[None, :]), rtol=1e-12)


def test_a_users_scores_do_not_depend_on_the_batch() -> None:
    data = split()
    model = EASE(Config(l2=10.0))
    model.fit(data, generator)
    together = model.score_profiles(data.profiles)
    alone = np.vstack([model.score_profiles(data.profiles[[user]]) for user in range(data.profiles.shape[0])])
    assert np.array_equal(together, alone)


def test_l2_is_chosen_by_ndcg_on_validation() -> None:
    data = split()
    model = EASE(Config())
    summary = model.fit(data, generator)
    ndcg = {}
    for l2 in GRID:
        candidate = EASE(Config(l2=l2))
        candidate.fit(data, generator)
        ndcg[l2] = evaluate(candidate, data.validation, data.profiles)["NDCG@10"]
    assert summary["l2"] == max(ndcg, key=lambda l2: ndcg[l2])
    assert summary["validation"]["NDCG@10"] == pytest.approx(max(ndcg.values()))
    assert len({round(value, 6) for value in ndcg.values()}) > 1


def test_a_loaded_model_scores_as_the_fitted_one() -> None:
    data = split()
    model, loaded = EASE(Config(l2=10.0)), EASE(Config())
    model.fit(data, generator)
    loaded.load_state(model.state(), data.profiles)
    assert np.array_equal(model.score_profiles(data.profiles), loaded.score_profiles(data.profiles))


def test_an_empty_profile_scores_nothing_anywhere() -> None:
    model = fitted([[1, 1, 0], [0, 1, 1]], 1.0)
    assert np.array_equal(model.score_profiles(sparse.csr_matrix((1, 3))), np.zeros((1, 3)))


# Low rank


def of_rank(interactions: np.ndarray, l2: float, rank: int) -> EASE:
    train = sparse.csr_matrix(interactions)
    model = EASE(Config(l2=l2, rank=rank))
    model.fit(Split(train, train, no_users, no_users, np.arange(train.shape[0])), generator)
    return model


@settings(deadline=None)
@given(binary, st.sampled_from([0.5, 3.0, 100.0]))
def test_at_full_rank_it_is_ease(x: np.ndarray, l2: float) -> None:
    """Against the exact solution, for more users than items and the other way round."""
    items = np.arange(x.shape[1])
    everything = (items[:, None], items[None, :])
    exact, low = fitted(x, l2), of_rank(x, l2, rank=min(x.shape))
    np.testing.assert_allclose(low.weights(*everything), exact.weights(*everything), atol=1e-7)
    np.testing.assert_allclose(
        low.score_profiles(sparse.csr_matrix(x)), exact.score_profiles(sparse.csr_matrix(x)), atol=1e-7
    )


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
@pytest.mark.parametrize("rank", [1, 5])
def test_at_a_low_rank_it_is_ease_of_the_truncated_matrix(shape: tuple[int, int], rank: int) -> None:
    """Against the paper's formula with a dense inverse, on what a dense decomposition leaves of the interactions."""
    x = (np.random.default_rng(3).random(shape) < 0.3).astype(float)
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    inverse = np.linalg.inv(vt[:rank].T @ np.diag(s[:rank] ** 2) @ vt[:rank] + 2.0 * np.eye(shape[1]))
    expected = -inverse / np.diag(inverse)
    np.fill_diagonal(expected, 0.0)
    model = of_rank(x, 2.0, rank)
    items = np.arange(shape[1])
    np.testing.assert_allclose(model.weights(items[:, None], items[None, :]), expected, atol=1e-12)
    profiles = sparse.csr_matrix(x)
    np.testing.assert_allclose(model.score_profiles(profiles), x @ expected, atol=1e-12)
    dense = torch.from_numpy(x).requires_grad_()
    scores = model.score_dense(dense)
    np.testing.assert_allclose(scores.detach().numpy(), x @ expected, atol=1e-12)
    (gradient,) = torch.autograd.grad(scores[0, 3], dense)
    np.testing.assert_allclose(gradient[0].numpy(), expected[:, 3], atol=1e-12)
    again = EASE(Config(rank=rank))
    again.load_state(model.state(), profiles)
    assert (again.score_profiles(profiles) == model.score_profiles(profiles)).all()
    assert model.state()["vectors"].shape == (shape[1], rank)


def test_the_same_stream_gives_the_same_vectors() -> None:
    x = (np.random.default_rng(3).random((30, 12)) < 0.3).astype(float)
    first, second = (of_rank(x, 2.0, 4).state() for _ in range(2))
    assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize(("l2", "copies"), [(1.0, 1), (None, 3)])
def test_more_items_than_memory_has_room_for_are_refused_with_what_to_do_instead(
    l2: float | None, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = copies * 8 * 3**2
    monkeypatch.setattr(
        usable_memory, "usable_memory", lambda: UsableMemory(needed, "this machine has little")
    )
    fitted(np.eye(3), l2)
    monkeypatch.setattr(
        usable_memory, "usable_memory", lambda: UsableMemory(needed - 1, "this machine has little")
    )
    with pytest.raises(UserError, match=r"ease: .*3 items need .*has little.*'rank'.*item-knn or als"):
        fitted(np.eye(3), l2)


@pytest.mark.slow
@pytest.mark.parametrize(("l2", "copies"), [(100.0, 1), (None, 3)])
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak cannot be measured")
def test_fitting_takes_the_memory_that_is_required(l2: float | None, copies: int) -> None:
    """In a process of its own, whose high-water mark is set back before the fit; libraries and results take the rest."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK.format(items=2500, l2=l2)], capture_output=True, text=True, check=True
    )
    assert copies - 0.2 < float(done.stdout) < copies + 0.7


PEAK = """
from pathlib import Path
import numpy as np, psutil
from scipy import linalg, sparse
from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.recommenders.ease import EASE, Config
from cfbench_recsys.splits import Holdout, Split
items = {items}
x = sparse.random(2000, items, density=0.005, random_state=1, format="csr")
held_out = Holdout(np.arange(50), x[:50], x[:50])
split = Split(x, x, held_out, held_out, np.arange(9))
before = psutil.Process().memory_info().rss
Path("/proc/self/clear_refs").write_text("5")
EASE(Config(l2={l2})).fit(split, generator)
status = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
print((peak - before) / (8 * items**2))
"""


def test_a_run_with_a_small_memory_limit_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(Path(__file__).parent / "samples")  # where my_lab is found
    study = {
        "suite": "recsys",
        "data": [{"name": "synthetic", "users": 50, "items": 6000}],
        "recommenders": ["ease"],
        "explainers": [{"import": "my_lab:ByIndex"}],
        "protocol": {"users": 2},
        "limits": {"memory_gb": 0.8},
    }
    run = api.run(study, out=tmp_path / "run", workers=1)
    (reason,) = {cell.reason for cell in run.cells()}
    assert "ease: while it is fitted, 6,000 items need 0.9 GB, and limits.memory_gb allows 0.8 GB" in reason
    assert "set its option 'rank'" in reason
