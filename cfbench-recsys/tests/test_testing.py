"""The recommender suite's conformance kit: a good component passes, and each check finds what it is for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import Report, check_component
from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.targets import Context, Targets
from cfbench_recsys.testing import checks
from cfbench_recsys.testing.models import GraphModel, kit_models
from cfbench_recsys.testing.world import NEARLY_ALL, ONE_INTERACTION, OTHER_TWIN, TWIN, interactions, split

SCORES = {"recommender": {"access": frozenset({"scores"})}}


def check(
    kind: str, cls: type, provides: Mapping[str, Any], needs: Mapping[str, Any] | None = None
) -> Report:
    spec = ComponentSpec(
        id=f"recsys/{kind}/{cls.__name__.lower()}",
        summary="An example",
        target=f"{__name__}:{cls.__name__}",
        provides={axis: frozenset(values) for axis, values in provides.items()},
        needs=needs or {},
    )
    return check_component(spec, checks=checks[kind])


def result(report: Report, name: str) -> tuple[str, str]:
    (found,) = [one for one in report.results if one.check == name]
    return found.result, found.reason


# The world


def test_the_planted_data_has_the_users_that_explainers_stumble_over() -> None:
    graph = interactions()
    assert graph[ONE_INTERACTION].nnz == 1
    assert graph[NEARLY_ALL].nnz == graph.shape[1] - 5
    assert (graph[TWIN] != graph[OTHER_TWIN]).nnz == 0
    assert np.diff(graph.indptr).min() == 1


def test_what_is_kept_back_is_not_in_the_training_data() -> None:
    parts = split()
    for part in (parts.validation, parts.test):
        assert (np.diff(part.targets.indptr) == 1).all()
        assert part.targets.multiply(parts.train[part.users]).nnz == 0
        assert (part.inputs != parts.train[part.users]).nnz == 0


def test_the_favoured_item_of_a_kit_model_is_first_for_everybody() -> None:
    graph = interactions()
    everybody = Edits.nothing(np.arange(graph.shape[0]))
    for model in kit_models(graph):
        favouring = model.recommender.favouring(5)
        scores = (
            favouring.score_edits(everybody)
            if isinstance(favouring, GraphModel)
            else favouring.score_profiles(graph)
        )
        assert (scores.argmax(axis=1) == 5).all()


def test_the_embeddings_of_the_kits_graph_model_give_its_scores() -> None:
    graph = interactions()
    model = kit_models(graph)[1].recommender
    scores = model.score_edits(Edits.nothing(np.arange(graph.shape[0])))
    assert np.allclose(model.user_embeddings() @ model.item_embeddings().T, scores, atol=1e-12)


# Explainers


class Good:
    """Removes whatever it looks at first; and finds later interactions less important."""

    def __init__(self, config: None) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        position = np.arange(targets.history.shape[1], dtype=np.float64)
        return np.broadcast_to(-position, targets.history.shape).copy()

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        return Edits.nothing(targets.users)


class Removing(Good):
    """Removes each user's first interaction, whether that helps or not."""

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        first = np.zeros(targets.history.shape, dtype=bool)
        first[:, 0] = True
        return Edits.removals(targets.users, targets.history, first)


class NoMethods:
    def __init__(self, config: None) -> None:
        self.config = config


class WrongShape(Good):
    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return super().importances(targets, context).T


class Single(Good):
    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return super().importances(targets, context).astype(np.float32)


class Undefined(Good):
    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return np.full(targets.history.shape, np.nan)


class TooFew(Good):
    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        return Edits.nothing(targets.users[1:])


class Unordered(Removing):
    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        edits = super().counterfactuals(targets, context)
        return dataclasses.replace(edits, rows=edits.rows[::-1])


class Forgetful(Good):
    """Uses a random stream that nobody controls."""

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return np.random.random(targets.history.shape)


class InOrder(Good):
    """Its numbers hang on the place in the batch."""

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return context.generator("in order").random(targets.history.shape)


class Averaging(Good):
    """Its numbers hang on who else is in the batch, whatever the order."""

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return super().importances(targets, context) + targets.users.mean()


class Wants(Good):
    """Cannot explain a user with fewer than two interactions, or with more than ten."""

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        lengths = (~targets.padding).sum(axis=1)
        if lengths.min() < 2 or lengths.max() > 10:
            raise ValueError("an unusual user")
        return super().importances(targets, context)


class Edges(Good):
    """Names one edge for each unit; subclasses say which."""

    def edge(self, targets: Targets, context: Context, unit: int) -> list[tuple[int, int, int]]:
        raise NotImplementedError

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        named = [(unit, *edge) for unit in range(len(targets)) for edge in self.edge(targets, context, unit)]
        rows, users, items, ops = np.array(named, dtype=np.int64).T
        return Edits(targets.users, rows, users, items, ops.astype(np.int8))


class SomebodyElses(Edges):
    def edge(self, targets: Targets, context: Context, unit: int) -> list[tuple[int, int, int]]:
        other = 20
        return [(other, int(context.interactions[other].indices[0]), -1)]


class Missing(Edges):
    def edge(self, targets: Targets, context: Context, unit: int) -> list[tuple[int, int, int]]:
        return [(int(targets.users[unit]), int(targets.items[unit, 0]), -1)]


class Adding(Edges):
    def edge(self, targets: Targets, context: Context, unit: int) -> list[tuple[int, int, int]]:
        return [(int(targets.users[unit]), int(targets.items[unit, 0]), 1)]


class AddingAgain(Edges):
    def edge(self, targets: Targets, context: Context, unit: int) -> list[tuple[int, int, int]]:
        return [(int(targets.users[unit]), int(targets.history[unit, 0]), 1)]


class Twice(Edges):
    def edge(self, targets: Targets, context: Context, unit: int) -> list[tuple[int, int, int]]:
        return [(int(targets.users[unit]), int(targets.history[unit, 0]), -1)] * 2


class Nowhere(Edges):
    def edge(self, targets: Targets, context: Context, unit: int) -> list[tuple[int, int, int]]:
        return [(int(targets.users[unit]), 1000, -1)]


class GivesUp(Good):
    """Raises when an item stays, whatever is removed."""

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        if context.model.bias.max() > 100:
            raise RuntimeError("no counterfactual")
        return super().counterfactuals(targets, context)


class Overwriting(Good):
    def importances(self, targets: Targets, context: Context) -> FloatArray:
        targets.history[targets.padding] = -1
        context.interactions.data *= 1.0
        return super().importances(targets, context)


class Sneaking(Good):
    """Counts users of an item among all users, explained ones too."""

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return np.asarray(context.interactions.sum(axis=0)).ravel()[targets.history]


class Pretrained(Good):
    """Learns the popularity of items beforehand."""

    def prepare(self, context: Context) -> dict[str, Any]:
        return {"users": np.asarray(context.training.sum(axis=0)).ravel()}

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        assert context.state is not None
        return context.state["users"][targets.history]


class PreparesAList(Pretrained):
    def prepare(self, context: Context) -> dict[str, Any]:
        return {"users": super().prepare(context)["users"].tolist()}

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        return Good.importances(self, targets, context)


ALL = {
    "format": {"implicit", "explicit"},
    "level": {"item", "list"},
    "scope": {"user-vector", "user-only", "full"},
    "edit": {"remove"},
}


def test_a_good_explainer_passes_every_check_that_applies() -> None:
    report = check("explainer", Good, ALL, SCORES)
    assert report.passed, str(report)
    assert [one.check for one in report.results if one.result != "passed"] == ["prepares-named-arrays"]


def test_a_good_pre_trained_explainer_passes_every_check_that_applies() -> None:
    report = check("explainer", Pretrained, {**ALL, "pretraining": {"yes"}}, SCORES)
    assert report.passed, str(report)
    assert {one.result for one in report.results} == {"passed"}


@pytest.mark.parametrize(
    ("broken", "name", "reason"),
    [
        (NoMethods, "declares-what-it-can", "has no method importances"),
        (Pretrained, "declares-what-it-can", "a method prepare and pretraining: yes go together"),
        (WrongShape, "answers-are-well-formed", "importances are ("),
        (Single, "answers-are-well-formed", "float32, not float64"),
        (Undefined, "answers-are-well-formed", "NaN or infinite"),
        (TooFew, "answers-are-well-formed", "edits for"),
        (Unordered, "answers-are-well-formed", "rows must ascend"),
        (Forgetful, "is-deterministic", "answers differently when asked again"),
        (InOrder, "is-independent-of-the-batch", "the order of the units matters"),
        (Averaging, "is-independent-of-the-batch", "alone it gets another answer"),
        (Wants, "explains-a-user-with-one-interaction", "ValueError: an unusual user"),
        (Wants, "explains-a-user-with-nearly-everything", "ValueError: an unusual user"),
        (SomebodyElses, "stays-in-scope", "outside its scope"),
        (Missing, "stays-in-scope", "removes an edge that does not exist"),
        (Adding, "stays-in-scope", "does not declare edit add"),
        (AddingAgain, "stays-in-scope", "adds an edge that exists"),
        (Twice, "stays-in-scope", "names an edge twice"),
        (Nowhere, "stays-in-scope", "names an edge of nobody"),
        (Removing, "says-none-when-nothing-helps", "names 1 edges for an item that they do not move"),
        (GivesUp, "says-none-when-nothing-helps", "RuntimeError: no counterfactual"),
        (Overwriting, "leaves-its-input-alone", "changes history"),
        (Sneaking, "learns-from-training-users-only", "looks at the interactions of other users"),
    ],
)
def test_each_check_finds_the_explainer_it_is_for(broken: type, name: str, reason: str) -> None:
    outcome, told = result(check("explainer", broken, ALL, SCORES), name)
    assert outcome == "failed"
    assert reason in told


def test_what_is_learned_beforehand_must_be_arrays() -> None:
    outcome, told = result(
        check("explainer", PreparesAList, {**ALL, "pretraining": {"yes"}}, SCORES), "prepares-named-arrays"
    )
    assert outcome == "failed"
    assert "a dictionary of NumPy arrays" in told


@pytest.mark.parametrize(
    ("provides", "reason"),
    [
        ({**ALL, "level": {"itme"}}, "declares level itme, which the suite does not know"),
        ({**ALL, "speed": {"fast"}}, "declares speed fast"),
        ({**ALL, "scope": set()}, "declares no scope"),
    ],
)
def test_capabilities_must_be_those_of_the_suite(provides: dict[str, set[str]], reason: str) -> None:
    outcome, told = result(check("explainer", Good, provides, SCORES), "declares-what-it-can")
    assert outcome == "failed"
    assert reason in told


def test_an_explainer_that_adds_edges_and_says_so_is_in_scope() -> None:
    report = check("explainer", Adding, {**ALL, "edit": {"remove", "add"}}, SCORES)
    assert result(report, "stays-in-scope") == ("passed", "")


def test_what_the_kit_cannot_offer_is_said_and_not_passed() -> None:
    needs = {"recommender": {"access": frozenset({"training"})}}
    outcome, told = result(check("explainer", Good, ALL, needs), "is-deterministic")
    assert (outcome, told) == ("not applicable", "the kit has no recommender with access training")


# Recommenders


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
    """Adds noise when it is asked."""

    def score_profiles(self, profiles: sparse.csr_matrix) -> FloatArray:
        noise = np.random.normal(0, 1e-14, (profiles.shape[0], profiles.shape[1]))
        return super().score_profiles(profiles) + noise


class Transposed(Neighbours):
    """Its weights are right on the diagonal of what is asked only: they do not broadcast."""

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
    assert [one.check for one in report.results if one.result != "passed"] == [unasked]


def test_of_a_floor_nobody_asks_that_it_knows_tastes() -> None:
    capabilities = {axis: frozenset(values) for axis, values in PROFILE.items()}
    spec = ComponentSpec(
        id="recsys/recommender/chance",
        summary="An example",
        target=f"{__name__}:Chance",
        provides=capabilities,
        role="floor",
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
        (Saturated, PROFILE, "gives-logits-of-all-items", "float32, not float64"),
        (Masking, PROFILE, "gives-logits-of-all-items", "leave seen items in"),
        (Normalising, PROFILE, "is-independent-of-the-batch", "scores depend on the order"),
        (Wandering, PROFILE, "fits-the-same-under-a-seed", "fitting again gives another similarity"),
        (Losing, PROFILE, "keeps-what-it-learned", "scores change with storing"),
        (Doubting, PROFILE, "answers-the-same-again", "the fitted model gives other scores when asked again"),
        (Chance, PROFILE, "learns-the-planted-tastes", "chance reaches"),
        (Frozen, GRAPH, "follows-edits", "differ from the edited data's"),
        (Bent, LINEAR, "is-as-linear-as-it-says", "the logit is not the sum of weights"),
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
    outcome, told = result(check("recommender", broken, provides), name)
    assert outcome == "failed"
    assert reason in told
