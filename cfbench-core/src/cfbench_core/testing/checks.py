"""What the conformance kit consists of: subjects, checks, and how a check ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from cfbench_core.specs import ComponentSpec, resolve

Result = Literal["passed", "failed", "waived", "not applicable"]


class Misbehaviour(AssertionError):  # noqa: N818 (it says what happened)
    """A component fails a check. The message is for the component's author."""


class NotApplicable(Exception):  # noqa: N818 (no error)
    """Raised by a check that does not apply to this component, with the reason."""


def require(condition: bool, message: str) -> None:
    """Raises :class:`Misbehaviour` unless ``condition`` holds (and does so under ``python -O`` too)."""
    if not condition:
        raise Misbehaviour(message)


@dataclass(frozen=True)
class Subject:
    """A component under test.

    Attributes:
        spec: what its plugin says of it.
        options: an instance of its configuration; its defaults when None.
        memory: what checks want to compute once for this subject, for example a fitted model.
    """

    spec: ComponentSpec
    options: Any = None
    memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def create(self) -> Any:
        """A fresh instance."""
        if self.spec.kind == "suite":
            return resolve(self.spec.target)()
        return resolve(self.spec.target)(self.configuration())

    def configuration(self) -> Any:
        """Its options; None if it has no configuration."""
        if self.options is None and self.spec.config is not None:
            return resolve(self.spec.config)()
        return self.options


@dataclass(frozen=True)
class Check:
    """One question to a component; ``run`` raises :class:`Misbehaviour`, or anything, when it is no."""

    name: str
    question: str
    run: Callable[[Subject], None] = field(repr=False)

    def __str__(self) -> str:
        return self.name


def checks_of(*functions: Callable[[Subject], None]) -> tuple[Check, ...]:
    """Checks named after their functions ("stays-in-scope" is ``stays_in_scope``), with their docstrings."""
    return tuple(
        Check(name, (function.__doc__ or name).strip().splitlines()[0], function)
        for function in functions
        for name in [function.__name__.replace("_", "-")]
    )


@dataclass(frozen=True)
class CheckResult:
    """How one check went. ``reason`` says why, unless it passed; ``traceback`` is set for a failure."""

    check: str
    question: str
    result: Result
    reason: str = ""
    traceback: str = field(default="", repr=False)


@dataclass(frozen=True)
class Report:
    """How a component did."""

    component: str
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """No check failed; waived ones do not count, they are there to be read."""
        return not self.failures

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if result.result == "failed")

    def __str__(self) -> str:
        width = max((len(result.check) for result in self.results), default=0)
        lines = [self.component]
        for result in self.results:
            text = result.question if result.result == "passed" else result.reason
            lines.append(f"  {result.result:14}  {result.check:{width}}  {text}")
        counts = Counter(result.result for result in self.results)
        lines.append(", ".join(f"{count} {result}" for result, count in counts.items()))
        return "\n".join(lines)
