"""Implementations are verified against the protocols of their kind; what is missing is named."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from cfbench_core.contracts import Contract, Dataset, FileDataset, Metric

METRIC = Contract(protocol=Metric)
DATASET = Contract(any_of=(Dataset, FileDataset))


class Complete:
    def columns(self, point: Any) -> list[Any]:
        return []

    def compute(self, observed: Any, scale: float = 1.0) -> dict[str, Any]:
        return {}


class WithoutCompute:
    def columns(self, point: Any) -> list[Any]:
        return []


class WithoutArguments:
    def columns(self, *point: Any) -> list[Any]:
        return []

    def compute(self) -> dict[str, Any]:
        return {}


class AttributeInPlaceOfMethod:
    columns = ("a", "b")

    @staticmethod
    def compute(observed: Any) -> dict[str, Any]:
        return {}


class OfFiles:
    def find(self, access: Any) -> Any: ...

    def load(self, source: Any) -> Any: ...


class OfFilesWithoutFind:
    def load(self, source: Any) -> Any: ...


class Synthetic:
    def load(self) -> Any: ...


class First(Protocol):
    def importances(self, targets: Any, context: Any) -> Any: ...


class Second(Protocol):
    def counterfactuals(self, targets: Any, context: Any) -> Any: ...


@pytest.mark.parametrize(
    ("implementation", "problem"),
    [
        (Complete, ""),
        (Complete(), ""),
        (WithoutCompute, "a metric needs compute(observed), which is missing"),
        (WithoutCompute(), "a metric needs compute(observed), which is missing"),
        (WithoutArguments, "a metric needs compute(observed), which is missing"),
        (AttributeInPlaceOfMethod, "a metric needs columns(point), which is missing"),
        (object, "a metric needs columns(point) and compute(observed), which are missing"),
    ],
)
def test_missing_methods_are_named_with_their_arguments(implementation: Any, problem: str) -> None:
    assert METRIC.problem(implementation, "metric") == problem


@pytest.mark.parametrize(
    ("implementation", "problem"),
    [
        (OfFiles, ""),
        (Synthetic, ""),
        (OfFilesWithoutFind, "a dataset needs load() or find(access), and has neither"),
        (object, "a dataset needs load(), which is missing; or it has find(access) and load(source)"),
    ],
)
def test_one_of_several_protocols_is_enough(implementation: Any, problem: str) -> None:
    assert DATASET.problem(implementation, "dataset") == problem


def test_alternatives_of_equal_size_are_all_named() -> None:
    contract = Contract(any_of=(First, Second))

    assert contract.problem(object, "explainer") == (
        "an explainer needs importances(targets, context) or counterfactuals(targets, context), and has neither"
    )


def test_attributes_are_required_of_instances_only() -> None:
    class WithConfig(Protocol):
        config: type

    contract = Contract(protocol=WithConfig)

    assert contract.problem(Complete, "suite") == ""  # an instance may set it in __init__
    assert contract.problem(Complete(), "suite") == "a suite needs config, which is missing"


def test_capabilities_follow_from_methods() -> None:
    contract = Contract(
        any_of=(First, Second),
        provides={"level": {"item"}},
        implied={"importances": {"format": {"implicit"}}, "prepare": {"pretraining": {"yes"}}},
    )

    class Ours:
        def importances(self, targets: Any, context: Any) -> Any: ...

    assert contract.capabilities(Ours) == {"level": {"item"}, "format": {"implicit"}}


def test_data_and_other_methods_of_that_name_imply_nothing() -> None:
    class Linear(Protocol):
        def weights(self, rows: Any, columns: Any, /) -> Any: ...

    contract = Contract(implied={"weights": {"access": {"weights"}}}, optional=(Linear,))

    class Declares:
        def weights(self, i: Any, j: Any) -> Any: ...

    class HoldsData:
        weights = (1.0, 2.0)

    class ReturnsThem:
        @property
        def weights(self) -> Any: ...

    class TakesNoPlaces:
        def weights(self) -> Any: ...

    assert contract.capabilities(Declares) == {"access": {"weights"}}
    assert [contract.capabilities(cls) for cls in (HoldsData, ReturnsThem, TakesNoPlaces)] == [{}, {}, {}]


def test_some_methods_are_required_together_or_not_at_all() -> None:
    contract = Contract(any_of=(First,), together=("fit", "state", "load_state"))

    class Trained(OfFiles):
        def importances(self, targets: Any, context: Any) -> Any: ...

        def fit(self) -> Any: ...

        def state(self) -> Any: ...

    assert contract.problem(Trained, "model") == "a model with fit and state also needs load_state"
    assert contract.problem(type("Fixed", (), {"importances": Trained.importances}), "model") == ""
