"""Arguments and options that several commands share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from cfbench_core.cli import completions

F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = click.Path(path_type=Path, file_okay=False)

data_dir = click.option(
    "--data-dir", metavar="DIR", type=_FOLDER, help="Look for data files (or put them) here first."
)


def configuration(required: bool) -> Callable[[F], F]:
    """The argument CONFIG, a YAML file."""
    return click.argument("config", required=required, type=click.Path(path_type=Path))


def run_directory(name: str = "directory") -> Callable[[F], F]:
    """The argument DIR, a run directory."""
    return click.argument(name, metavar="DIR", type=_FOLDER)


def reading(function: F) -> F:
    """The options of every command that reads a configuration."""
    return _with(
        function,
        click.option(
            "--set",
            "changes",
            metavar="KEY=VALUE",
            multiple=True,
            help="Change the configuration: protocol.k=[3,5].",
        ),
        click.option(
            "--suite", metavar="S", shell_complete=completions.suites, help="Without CONFIG: whose default."
        ),
        data_dir,
        click.option(
            "--allow-env",
            metavar="NAME",
            multiple=True,
            help="Environment variable that 'key' may name; *_API_KEY always may.",
        ),
        click.option("--offline", is_flag=True, help="Never download; report what is missing."),
    )


def executing(function: F) -> F:
    """The options of every command that computes."""
    return _with(
        function,
        click.option(
            "--out", metavar="DIR", type=_FOLDER, help="The run directory; a new one in runs/ unless given."
        ),
        click.option(
            "--executor",
            metavar="E",
            shell_complete=completions.executors,
            help="Where tasks run: inline, process, dask.",
        ),
        click.option("--workers", metavar="N", type=click.IntRange(min=1), help="Number of tasks at a time."),
        click.option("--fresh", is_flag=True, help="Recompute everything; ignore the cache."),
        click.option("--quiet", "-q", is_flag=True, help="Show no progress."),
    )


@dataclass(frozen=True)
class StudyOptions:
    """The values of the options that every command has which runs a configuration."""

    changes: tuple[str, ...]
    suite: str | None
    allow_env: tuple[str, ...]
    data_dir: Path | None
    offline: bool
    out: Path | None
    executor: str | None
    workers: int | None
    fresh: bool
    quiet: bool


def study(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of :func:`reading` and :func:`executing`, passed on together as ``study``, a StudyOptions."""

    @functools.wraps(function)
    def collected(**values: Any) -> Any:
        names = [field.name for field in dataclasses.fields(StudyOptions)]
        return function(study=StudyOptions(**{name: values.pop(name) for name in names}), **values)

    return reading(executing(collected))


def _with(function: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        function = option(function)
    return function
