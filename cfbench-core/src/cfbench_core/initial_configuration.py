"""A commented configuration to start from, for a suite or for a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.registry import Registry, installation_advice, installed
from cfbench_core.specs import resolve


def initial_configuration(
    suite: str | None = None,
    csv: str | Path | None = None,
    target: str | None = None,
    encoding: str | None = None,
    registry: Registry | None = None,
) -> str:
    """A commented configuration in YAML, to store and to change.

    Args:
        suite: None stands for the first that is installed.
        csv: a table for which a schema is drafted, too; of a suite that reads tables.
        target: of this table the column with the classes; None stands for the last.
        encoding: of the file of the table; None to detect it.

    Raises:
        UserError: if no such suite is installed, or the table cannot be read.
    """
    registry = registry or installed()
    if csv is not None:
        return str(_reader_of_csv(suite, registry).csv_document(Path(csv), target, registry, encoding))
    if target is not None or encoding is not None:
        option = "target: names a column" if target is not None else "encoding: is that"
        raise UserError(f"{option} of a CSV file; name that file as well (--csv FILE)")
    return str(_suite(suite, registry).example_document(registry))


def _reader_of_csv(name: str | None, registry: Registry) -> Any:
    """The suite of that name, or the first that is installed, which can draft a configuration for a CSV file."""
    names = [name] if name is not None else registry.suites()
    for suite in (_suite(name, registry) for name in names):
        if hasattr(suite, "csv_document"):
            return suite
    which = f"the suite {name} does not read" if name is not None else "no installed suite reads"
    raise UserError(f"{which} CSV files (cfbench list suites)")


def _suite(name: str | None, registry: Registry) -> Any:
    """The suite that was named, or the first that is installed."""
    if name is None:
        suites = registry.suites()
        if not suites:
            raise UserError(f"no suite is installed. Try: {installation_advice()}")
        name = next(iter(registry.suites_to_run()), suites[0])
    return resolve(registry.find(name, "suite", name).spec.target)()
