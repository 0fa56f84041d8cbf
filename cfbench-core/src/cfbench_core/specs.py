"""What a plugin says about its components: plain data, so that listing them imports nothing heavy."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

KINDS = (
    "suite",
    "dataset",
    "recommender",
    "classifier",
    "explainer",
    "metric",
    "analysis",
    "replication",
    "viewer",
    "executor",
    "store",
)
"""Kinds of component in the order in which they are listed. A suite may have others."""

CORE = "core"
"""The suite of components that every suite uses."""

CORE_KINDS = frozenset({"executor", "store"})
"""Kinds whose components belong to no suite, but to :data:`CORE`."""

ROLES = ("certified", "reference", "baseline")
"""The roles of controls; see :class:`ComponentSpec`."""

Capabilities = Mapping[str, AbstractSet[str]]
"""An axis (``"level"``) and its values (``{"item", "list"}``)."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class ComponentSpec:
    """One data set, recommender, explainer, metric, ... as its plugin announces it.

    Attributes:
        id: ``suite/kind/name``, for example ``recsys/explainer/lime-rs``.
        summary: one line for ``cfbench list``.
        target: the implementation, ``"package.module:Name"``; imported when first used.
        config: its configuration, a frozen dataclass, ``"package.module:Name"``. Importing that module must not
            import torch or pandas. None: there is nothing to set.
        provides: what it can do, along the capability axes of its suite.
        needs: what it needs of its partners: ``{"recommender": {"access": {"gradients"}}}``.
        papers: the publications that it implements or comes from: keys of its package's ``papers.toml``.
        version: raise it when results change; results cached under another version are not used.
        role: of a control that does not compete with the others: ``"baseline"``, what every method should beat;
            ``"reference"``, a strong search without proof; ``"certified"``, a search that proves for each answer, with
            every configuration, how far it is optimal. Else empty.
        certificate: of a certified control: exactly what is proven, within which limits, and where a run shows it.
        presets: named options that were found by a search, ``"package:folder/file.yaml"`` (see ``presets.py``).
        details: whatever else its suite wants to know before importing it. ``"default": False``: a run without a
            configuration leaves it out, for example because it takes long.
    """

    id: str
    summary: str
    target: str
    config: str | None = None
    provides: Capabilities = field(default_factory=lambda: _NOTHING)
    needs: Mapping[str, Capabilities] = field(default_factory=lambda: _NOTHING)
    papers: tuple[str, ...] = ()
    version: str = "1"
    role: str = ""
    certificate: str = ""
    presets: str | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        if self.id.count("/") != 2 or not all(self.id.split("/")):
            raise ValueError(f"component id {self.id!r}: must be 'suite/kind/name'")
        for reference in (self.target, self.config):
            if reference is not None and reference.count(":") != 1:
                raise ValueError(f"component {self.id}: {reference!r} must be 'package.module:Name'")
        if self.role not in ("", *ROLES):
            raise ValueError(
                f"component {self.id}: role must be one of {', '.join(ROLES)}, not {self.role!r}"
            )
        if (self.role == "certified") != bool(self.certificate):
            raise ValueError(
                f"component {self.id}: 'certificate' must say what is proven, with the role certified and with no other"
            )
        papers: object = self.papers
        if isinstance(papers, str):
            raise ValueError(
                f"component {self.id}: papers must be a tuple of keys, not the string {self.papers!r}"
            )
        object.__setattr__(self, "papers", tuple(self.papers))
        object.__setattr__(self, "provides", _frozen(self.provides))
        object.__setattr__(self, "needs", {kind: _frozen(axes) for kind, axes in self.needs.items()})

    @property
    def suite(self) -> str:
        return self.id.split("/")[0]

    @property
    def kind(self) -> str:
        return self.id.split("/")[1]

    @property
    def name(self) -> str:
        return self.id.split("/")[2]


def merged(*capabilities: Capabilities) -> Capabilities:
    """All values of several capabilities, axis by axis."""
    found: dict[str, frozenset[str]] = {}
    for one in capabilities:
        for axis, values in one.items():
            found[axis] = found.get(axis, frozenset()) | frozenset(values)
    return found


def _frozen(capabilities: Capabilities) -> Capabilities:
    return {axis: frozenset(values) for axis, values in capabilities.items()}


def plural(noun: str) -> str:
    """ "explainers", "analyses", "queries"."""
    if noun.endswith("is"):
        return f"{noun[:-2]}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def resolve(reference: str) -> Any:
    """The object that ``"package.module:Name"`` names."""
    module, _, name = reference.partition(":")
    value = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def lacking(needed: Capabilities, provided: Capabilities) -> str:
    """Why ``provided`` does not suffice: ``"access gradients"``, or an empty string when it does."""
    gaps = [
        f"{axis} {value}"
        for axis, values in needed.items()
        for value in sorted(values - provided.get(axis, frozenset()))
    ]
    return ", ".join(gaps)
