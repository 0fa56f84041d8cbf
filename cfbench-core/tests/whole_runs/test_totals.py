"""How many tasks a run has: an estimate until all units are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toy_runs import configuration

from cfbench_core.api import execute, prepare
from cfbench_core.outcomes import Total
from cfbench_core.registry import Registry


class Totals:
    """An observer that collects how many tasks have ended, of how many."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Total]] = []

    def started(self, task: Any) -> None: ...

    def progress(self, task: Any, done: int, total: int) -> None: ...

    def finished(self, task: Any, outcome: Any, done: int, total: Total) -> None:
        self.seen.append((done, total))


def test_the_total_is_marked_as_an_estimate_until_the_units_are_known(
    registry: Registry, tmp_path: Path
) -> None:
    observer = Totals()
    execute(prepare(configuration(), registry=registry), out=tmp_path / "run", observer=observer)
    done, totals = zip(*observer.seen, strict=True)
    assert done == tuple(range(1, len(done) + 1))
    assert str(totals[0]).startswith("~") and not totals[0].exact
    known = [total for total in totals if total.exact]
    assert set(known) == {Total(len(done))}  # it does not change any more
    assert totals[-len(known) :] == tuple(known)
