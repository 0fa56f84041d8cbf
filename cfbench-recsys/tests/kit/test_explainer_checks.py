"""The conformance kit of explainers: a good one passes, and each check finds what it is for."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from checking import check, result

from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.targets import Context, Targets

ON_GPU = "explains-on-a-gpu-as-on-the-cpu"
"""Passed where there is a GPU, and not applicable elsewhere."""

SCORES = {"recommender": {"access": frozenset({"scores"})}}


class Good:
    """Removes the first interaction; and finds later interactions less important."""

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


class RemovingTwo(Good):
    """Removes each user's first two interactions, whatever the budget."""

    def counterfactuals(self, targets: Targets, context: Context) -> Edits:
        first = ~targets.padding & (np.arange(targets.history.shape[1]) < 2)
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
    """Uses an uncontrolled random stream."""

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
    others = [one.check for one in report.results if one.result != "passed"]
    assert [name for name in others if name != ON_GPU] == ["prepares-named-arrays"]


def test_a_good_pre_trained_explainer_passes_every_check_that_applies() -> None:
    report = check("explainer", Pretrained, {**ALL, "pretraining": {"yes"}}, SCORES)
    assert report.passed, str(report)
    assert {one.result for one in report.results if one.check != ON_GPU} == {"passed"}


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
        (Forgetful, "is-deterministic", "gives other explanations in a second call"),
        (InOrder, "is-independent-of-the-batch", "the order of the units matters"),
        (Averaging, "is-independent-of-the-batch", "its explanation alone differs"),
        (Wants, "explains-a-user-with-one-interaction", "ValueError: an unusual user"),
        (Wants, "explains-a-user-with-nearly-everything", "ValueError: an unusual user"),
        (SomebodyElses, "stays-in-scope", "outside its scope"),
        (Missing, "stays-in-scope", "removes an edge that does not exist"),
        (Adding, "stays-in-scope", "does not declare edit add"),
        (AddingAgain, "stays-in-scope", "adds an edge that exists"),
        (Twice, "stays-in-scope", "names an edge twice"),
        (Nowhere, "stays-in-scope", "names an edge that does not exist"),
        (RemovingTwo, "stays-within-the-budget", "answers with 2 edits where 'targets.max_edits' is 1"),
        (Removing, "says-none-when-nothing-helps", "names 1 edges for an item that they do not move"),
        (GivesUp, "says-none-when-nothing-helps", "RuntimeError: no counterfactual"),
        (Overwriting, "leaves-its-input-alone", "changes history"),
        (Sneaking, "learns-from-training-users-only", "uses the interactions of other users"),
    ],
)
def test_each_check_finds_the_explainer_it_is_for(broken: type, name: str, reason: str) -> None:
    outcome, message = result(check("explainer", broken, ALL, SCORES), name)
    assert outcome == "failed"
    assert reason in message


def test_a_pretrained_state_must_be_arrays() -> None:
    outcome, message = result(
        check("explainer", PreparesAList, {**ALL, "pretraining": {"yes"}}, SCORES), "prepares-named-arrays"
    )
    assert outcome == "failed"
    assert "a dictionary of NumPy arrays" in message


@pytest.mark.parametrize(
    ("provides", "reason"),
    [
        ({**ALL, "level": {"itme"}}, "declares level itme, which the suite does not know"),
        ({**ALL, "speed": {"fast"}}, "declares speed fast"),
        ({**ALL, "scope": set()}, "declares no scope"),
    ],
)
def test_capabilities_must_be_those_of_the_suite(provides: dict[str, set[str]], reason: str) -> None:
    outcome, message = result(check("explainer", Good, provides, SCORES), "declares-what-it-can")
    assert outcome == "failed"
    assert reason in message


def test_an_explainer_that_declares_additions_may_add_edges() -> None:
    report = check("explainer", Adding, {**ALL, "edit": {"remove", "add"}}, SCORES)
    assert result(report, "stays-in-scope") == ("passed", "")


def test_a_check_without_a_suitable_model_is_not_applicable() -> None:
    needs = {"recommender": {"access": frozenset({"training"})}}
    outcome, message = result(check("explainer", Good, ALL, needs), "is-deterministic")
    assert (outcome, message) == ("not applicable", "the kit has no recommender with access training")
