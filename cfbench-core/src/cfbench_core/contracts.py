"""Contracts: what the components of each kind must offer, as protocols, and how an implementation is verified.

A suite says in ``contracts`` what it requires of each kind::

    contracts = {
        "metric": Contract(protocol=Metric),
        "explainer": Contract(
            any_of=(ImplicitExplainer, ExplicitExplainer),
            provides={"level": {"item", "list"}},
            implied={"importances": {"format": {"implicit"}}, "counterfactuals": {"format": {"explicit"}}},
        ),
    }

Classes that a configuration names with ``import:`` and the conformance kit are verified against these. The protocols
below are the parts that all suites share; a suite states its own with its types. This module imports neither NumPy
nor pandas at run time.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from cfbench_core.specs import Capabilities, merged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cfbench_core.data_files import DataAccess, Source
    from cfbench_core.plan import Column

    FloatArray = NDArray[np.float64]

Point = Mapping[str, str | int]
"""A point of the protocol: ``{"k": 5, "level": "item"}``; empty where a suite has no axes."""

Data_co = TypeVar("Data_co", covariant=True)
Observed_contra = TypeVar("Observed_contra", contravariant=True)


class Dataset(Protocol[Data_co]):
    """A data set without files, for example a synthetic one."""

    def load(self) -> Data_co:
        """The data."""


class FileDataset(Protocol[Data_co]):
    """A data set that is read from files."""

    def find(self, access: DataAccess) -> Source:
        """Locates the files, and downloads them if ``access`` permits it. Their digests are part of the cache key."""

    def load(self, source: Source | Mapping[str, Any]) -> Data_co:
        """The data in the files that :meth:`find` located, or in those that its JSON parameters describe."""


class Persistent(Protocol):
    """A model or an explainer that can be trained: how its parameters are stored."""

    def state(self) -> Mapping[str, NDArray[Any]]:
        """All learned parameters as named arrays; stored as safetensors."""

    def load_state(self, state: Mapping[str, NDArray[Any]], data: Any) -> None:
        """Restores what :meth:`state` returned; ``data`` is what the model was trained on."""


class Metric(Protocol[Observed_contra]):
    """A metric: which columns it fills, and their values."""

    def columns(self, point: Point) -> Sequence[Column]:
        """The columns that it reports at a point of the protocol."""

    def compute(self, observed: Observed_contra) -> Mapping[str, FloatArray]:
        """A value per unit for each column, shape ``(units,)``; NaN where the metric is undefined."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What a suite requires of one kind of component.

    Attributes:
        protocol: the methods that every implementation must have.
        any_of: protocols of which an implementation must satisfy at least one.
        together: methods of which an implementation has all or none, for example those of training.
        provides: capabilities of a class that is named with ``import:`` and declares none.
        implied: further capabilities that such a class has if it has a method, by the method's name.
        optional: protocols of such methods; a method counts only if it takes the arguments of its protocol.
        needs: what such a class needs of its partners.
    """

    protocol: type | None = None
    any_of: tuple[type, ...] = ()
    together: tuple[str, ...] = ()
    provides: Capabilities = field(default_factory=lambda: _NOTHING)
    implied: Mapping[str, Capabilities] = field(default_factory=lambda: _NOTHING)
    optional: tuple[type, ...] = ()
    needs: Mapping[str, Capabilities] = field(default_factory=lambda: _NOTHING)

    def problem(self, implementation: Any, kind: str) -> str:
        """Why an implementation does not fulfil the contract; empty if it does.

        ``"a metric needs compute(observed), which is missing"``. A method that cannot be called with the arguments
        of the protocol counts as missing. ``implementation`` is a class, or an instance, whose attributes are
        verified too.
        """
        lacking = _lacking(implementation, self.protocol) if self.protocol is not None else []
        alternatives = [_lacking(implementation, protocol) for protocol in self.any_of]
        others = ""
        if alternatives and all(alternatives):
            nearest = min(alternatives, key=len)
            lacking += [name for name in nearest if name not in lacking]
            if len({len(names) for names in alternatives}) == 1 and len(alternatives) > 1:
                choices = " or ".join(" and ".join(names) for names in alternatives)
                also = (
                    f"; it also needs {' and '.join(lacking[: -len(nearest)])}" if lacking != nearest else ""
                )
                return f"{_article(kind)} needs {choices}, and has neither{also}"
            protocols = [
                p for p, names in zip(self.any_of, alternatives, strict=True) if names is not nearest
            ]
            others = "".join(f"; or it has {' and '.join(_signatures(other))}" for other in protocols)
        present = [name for name in self.together if callable(getattr(implementation, name, None))]
        if not lacking and present and len(present) < len(self.together):
            absent = " and ".join(name for name in self.together if name not in present)
            return f"{_article(kind)} with {' and '.join(present)} also needs {absent}"
        if not lacking:
            return ""
        verb = "which is missing" if len(lacking) == 1 else "which are missing"
        return f"{_article(kind)} needs {' and '.join(lacking)}, {verb}{others}"

    def capabilities(self, implementation: type) -> Capabilities:
        """What a class that declares no capabilities provides, derived from its methods."""
        implied = [values for method, values in self.implied.items() if self._has(implementation, method)]
        return merged(self.provides, *implied)

    def _has(self, implementation: type, name: str) -> bool:
        """Whether a class has the method that a protocol means by this name: an attribute that holds data is none."""
        found = getattr(implementation, name, None)
        methods = [method for protocol in self.optional for own, method in _members(protocol) if own == name]
        return callable(found) and all(
            _accepts(implementation, name, found, len(_arguments(method))) for method in methods
        )


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _members(protocol: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a protocol and its bases with their functions, then its attributes with None."""
    seen: set[str] = set()
    bases = [base for base in protocol.__mro__ if base not in (object, Protocol, Generic)]
    for base in bases:
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in seen and callable(value):
                seen.add(name)
                yield name, value
    for base in bases:
        for name in vars(base).get("__annotations__", {}):
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, None


def _signatures(protocol: type) -> list[str]:
    return [_signature(name, method) for name, method in _members(protocol)]


def _signature(name: str, method: Any) -> str:
    """ "compute(observed)"."""
    return name if method is None else f"{name}({', '.join(_arguments(method))})"


def _arguments(method: Any) -> list[str]:
    """The arguments that a caller must give: without ``self`` and those with a default."""
    parameters = [*inspect.signature(method).parameters.values()][1:]
    return [
        p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]


def _lacking(implementation: Any, protocol: type) -> list[str]:
    """The members of a protocol that an implementation does not have."""
    missing = []
    for name, method in _members(protocol):
        if method is None:
            fulfilled = isinstance(implementation, type) or hasattr(implementation, name)
        else:
            found = getattr(implementation, name, None)
            fulfilled = callable(found) and _accepts(implementation, name, found, len(_arguments(method)))
        if not fulfilled:
            missing.append(_signature(name, method))
    return missing


def _accepts(implementation: Any, name: str, found: Any, arguments: int) -> bool:
    """Whether a method can be called with so many positional arguments, as the protocol's callers do."""
    bound = not isinstance(implementation, type) or isinstance(
        inspect.getattr_static(implementation, name), (staticmethod, classmethod)
    )
    try:
        inspect.signature(found).bind(*[None] * (arguments + (not bound)))
    except TypeError:
        return False
    except ValueError:  # a built-in without a signature
        return True
    return True
