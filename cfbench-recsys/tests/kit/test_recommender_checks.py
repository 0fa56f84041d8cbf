"""The conformance kit of recommenders: a good one passes, and each check finds what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from checking import check, result
from scipy import sparse

from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import check_component
from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.testing import checks
from cfbench_recsys.testing.models import GraphModel


class Neighbours:
    """Scores an item by the items of the profile that share users with it."""

    def __init__(self, config: None) -> None:
        self.similarity = np.empty((0, 0))

    def fit(self, parts: Any, generator: Any, report: Any) -> None:
        both = (parts.train.T @ parts.train).toarray()
        sizes = np.maximum(np.diag(both), 1.0)
        self.similarity = both / np.sqrt(sizes[:, None] * sizes[None, :]) * (1 - np.eye(len(both)))

    def state(self) -> Mapping[str, np.ndarray]:
        return {"similarity": self.similarity}

    def load_state(self, state: Mapping[str, np.ndarray], graph: sparse.csr_matrix) -> None:
        self.similarity = state["similarity"]

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        return profiles @ self.similarity

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.similarity[rows, columns]


class OnTheGraph:
    """The graph model of the kit, as something to fit."""

    def __init__(self, config: None) -> None:
        self.config = config

    def fit(self, parts: Any, generator: Any, report: Any) -> None:
        self.model = GraphModel.planted(parts.profiles)

    def state(self) -> Mapping[str, np.ndarray]:
        return {name: array for name, array in vars(self.model).items() if name != "graph"}

    def load_state(self, state: Mapping[str, np.ndarray], graph: sparse.csr_matrix) -> None:
        self.model = GraphModel(graph=graph.toarray(), **state)

    def score_edits(self, edits: Edits) -> FloatArray:
        return self.model.score_edits(edits)

    def score_weighted(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        return self.model.score_weighted(users, rows, edge_users, edge_items, delta)


class Misdeclared(Neighbours):
    link = "logistic"


class Chance(Neighbours):
    def fit(self, parts: Any, generator: Any, report: Any) -> None:
        self.similarity = generator("chance").normal(size=(parts.train.shape[1],) * 2)


class Wandering(Neighbours):
    def fit(self, parts: Any, generator: Any, report: Any) -> None:
        super().fit(parts, generator, report)
        self.similarity = self.similarity + np.random.normal(0, 1e-6, self.similarity.shape)


class Saturated(Neighbours):
    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        return super().score_profiles(profiles).astype(np.float32)


class Masking(Neighbours):
    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        return np.where(profiles.toarray() > 0, -np.inf, super().score_profiles(profiles))


class Normalising(Neighbours):
    """Subtracts the mean of the batch."""

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        scores = super().score_profiles(profiles)
        return scores - scores.mean()


class Losing(Neighbours):
    def state(self) -> Mapping[str, np.ndarray]:
        return {"similarity": self.similarity.astype(np.float32)}


class Frozen(OnTheGraph):
    """Forgets to look at the edit."""

    def score_edits(self, edits: Edits) -> FloatArray:
        return super().score_edits(Edits.nothing(edits.users))


class Idle(OnTheGraph):
    """Declares an attention that has no effect."""

    def with_uniform_attention(self) -> Idle:
        return self


class Ungraded:
    """A graph model that gives scores, no gradients."""

    score_edits = OnTheGraph.score_edits


class Detached(OnTheGraph):
    """Gradients twice as large as they are."""

    def score_weighted(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        return super().score_weighted(users, rows, edge_users, edge_items, 2 * delta - delta.detach())


class Differentiable(Neighbours):
    """Bent, with its gradients."""

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        return np.tanh(super().score_profiles(profiles))

    def score_dense(self, profiles: Any) -> Any:
        return torch.tanh(profiles @ torch.from_numpy(self.similarity))


class Stiff(Differentiable):
    """Gradients twice as large as they are."""

    def score_dense(self, profiles: Any) -> Any:
        return super().score_dense(2 * profiles - profiles.detach())


class Unlike(Differentiable):
    """Other scores with gradients than without."""

    def score_dense(self, profiles: Any) -> Any:
        return super().score_dense(profiles) + 1e-3


class SingleDense(Differentiable):
    def score_dense(self, profiles: Any) -> Any:
        return super().score_dense(profiles).float()


class Dividing(Neighbours):
    """Divides by the length of the profile, and has no gradient where there is none."""

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        return self.score_dense(torch.from_numpy(profiles.toarray())).numpy()

    def score_dense(self, profiles: Any) -> Any:
        length = (profiles**2).sum(1, keepdim=True).sqrt()
        return profiles @ torch.from_numpy(self.similarity) / torch.where(length > 0, length, 1.0)


class Bent(Neighbours):
    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        return np.tanh(super().score_profiles(profiles))


class Doubting(Neighbours):
    """Adds noise when it scores."""

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        noise = np.random.normal(0, 1e-14, (profiles.shape[0], profiles.shape[1]))
        return super().score_profiles(profiles) + noise


class Transposed(Neighbours):
    """Its weights are right on the diagonal of the requested block only: they do not broadcast."""

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.similarity[rows.ravel()][:, columns.ravel()]


class Binarising(Neighbours):
    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        scores = super().score_profiles(profiles)
        profiles.data[:] = 0.0
        return scores


class Scoreless:
    def __init__(self, config: None) -> None:
        self.config = config


LINEAR = {"access": {"scores", "weights"}, "scope": {"user-vector"}}
PROFILE = {"access": {"scores"}, "scope": {"user-vector"}}
DIFFERENTIABLE = {"access": {"scores", "gradients"}, "scope": {"user-vector"}}
GRAPH = {"access": {"scores", "gradients"}, "scope": {"user-only", "indirect", "k-hop", "full"}}
ATTENTIVE = {**GRAPH, "access": GRAPH["access"] | {"attention"}}


@pytest.mark.parametrize(
    ("good", "provides", "unasked"),
    [
        (Neighbours, LINEAR, "has-true-gradients"),
        (Differentiable, DIFFERENTIABLE, "is-as-linear-as-it-says"),
        (OnTheGraph, GRAPH, "is-as-linear-as-it-says"),
    ],
)
def test_a_good_recommender_passes_every_check_that_applies(
    good: type, provides: dict[str, set[str]], unasked: str
) -> None:
    report = check("recommender", good, provides)
    assert report.passed, str(report)
    others = [one.check for one in report.results if one.result != "passed"]
    assert others == [unasked, "depends-on-its-attention", "scores-on-a-gpu-as-on-the-cpu"]


def test_a_baseline_need_not_learn_preferences() -> None:
    capabilities = {axis: frozenset(values) for axis, values in PROFILE.items()}
    spec = ComponentSpec(
        id="recsys/recommender/chance",
        summary="An example",
        target=f"{__name__}:Chance",
        provides=capabilities,
        role="baseline",
    )
    report = check_component(spec, checks=checks["recommender"])
    assert result(report, "learns-the-planted-tastes")[0] == "not applicable"
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("broken", "provides", "name", "reason"),
    [
        (Scoreless, PROFILE, "declares-what-it-can", "neither score_profiles nor score_edits"),
        (Neighbours, GRAPH, "declares-what-it-can", "declares no scope user-vector"),
        (Ungraded, GRAPH, "declares-what-it-can", "declares gradients, has no score_weighted"),
        (Neighbours, DIFFERENTIABLE, "declares-what-it-can", "declares gradients, has no score_dense"),
        (OnTheGraph, ATTENTIVE, "declares-what-it-can", "declares attention, has no with_uniform_attention"),
        (Idle, ATTENTIVE, "depends-on-its-attention", "0% of the lists of 3 change; at least 10% must"),
        (Misdeclared, PROFILE, "declares-its-link", "declares the link 'logistic'"),
        (Saturated, PROFILE, "gives-scores-of-all-items", "float32, not float64"),
        (Masking, PROFILE, "gives-scores-of-all-items", "leave seen items in"),
        (Normalising, PROFILE, "is-independent-of-the-batch", "scores depend on the order"),
        (Wandering, PROFILE, "fits-the-same-under-a-seed", "fitting again gives another similarity"),
        (Losing, PROFILE, "restores-its-state", "scores change with storing"),
        (
            Doubting,
            PROFILE,
            "scores-deterministically",
            "the fitted model gives other scores in a second call",
        ),
        (Chance, PROFILE, "learns-the-planted-tastes", "chance reaches"),
        (Frozen, GRAPH, "follows-edits", "differ from the edited data's"),
        (Bent, LINEAR, "is-as-linear-as-it-says", "the score is not the sum of weights"),
        (Transposed, LINEAR, "is-as-linear-as-it-says", "weights of (2, 9, 1)"),
        (SingleDense, DIFFERENTIABLE, "has-true-gradients", "float32, not float64"),
        (Dividing, DIFFERENTIABLE, "has-true-gradients", "NaN or infinite"),
        (Detached, GRAPH, "has-true-gradients", "but a small change gives"),
        (Stiff, DIFFERENTIABLE, "has-true-gradients", "but a small change gives"),
        (Unlike, DIFFERENTIABLE, "has-true-gradients", "with and without gradients disagree"),
        (Binarising, PROFILE, "leaves-its-input-alone", "changes the profiles"),
    ],
)
def test_each_check_finds_the_recommender_it_is_for(
    broken: type, provides: dict[str, set[str]], name: str, reason: str
) -> None:
    outcome, message = result(check("recommender", broken, provides), name)
    assert outcome == "failed"
    assert reason in message
