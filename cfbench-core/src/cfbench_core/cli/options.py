"""Arguments and options that several commands share."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from cfbench_core.cli import completions

F = TypeVar("F", bound=Callable[..., Any])


class NamedPath(click.Path):
    """A path that must have a name: an empty one, as of a variable that is not set, would be the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty (is a variable not set?); '.' is the working directory", param, ctx)
        return super().convert(value, param, ctx)


_FOLDER = NamedPath(path_type=Path, file_okay=False)
_FILE = NamedPath(path_type=Path, dir_okay=False)

data_dir = click.option(
    "--data-dir",
    metavar="DIR",
    type=_FOLDER,
    help="Folder that is searched first for data files, and that receives downloads.",
)


FORMATS = ("table", "json", "csv", "markdown", "latex", "html", "bibtex")
"""What ``--format`` may offer. ``table`` is what a person reads on a terminal."""

_SUFFIXES = {
    ".txt": "table",
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
    ".bib": "bibtex",
}


def output_format(*formats: str, default: str | None = "table") -> Callable[[F], F]:
    """``--format``, passed on as ``form``; without a default it is None until :func:`format_of` decides."""
    decided = "Output format; by default inferred from FILE, otherwise table."
    return click.option(
        "--format",
        "form",
        type=click.Choice(formats),
        default=default,
        show_default=default is not None,
        help=None if default else decided,
    )


def output_file(help: str = "Write to FILE.", required: bool = False) -> Callable[[F], F]:
    """``--output FILE``, passed on as ``file``."""
    return click.option("--output", "-o", "file", metavar="FILE", type=_FILE, required=required, help=help)


def output_directory(help: str) -> Callable[[F], F]:
    """``--output DIR``, passed on as ``out``."""
    return click.option("--output", "-o", "out", metavar="DIR", type=_FOLDER, help=help)


def format_of(file: Path | None, formats: Sequence[str]) -> str:
    """The format that a file's name implies, one of ``formats``; ``table`` without a file.

    Raises:
        click.UsageError: for a name that implies none of them.
    """
    form = "table" if file is None else _SUFFIXES.get(file.suffix.lower(), "")
    if form not in formats:
        known = ", ".join(formats)
        raise click.UsageError(f"say --format, one of {known}: the name {file} does not determine it")
    return form


def configuration(required: bool) -> Callable[[F], F]:
    """The argument CONFIG, a YAML file."""
    return click.argument("config", required=required, type=click.Path(path_type=Path))


def run_directory(name: str = "directory") -> Callable[[F], F]:
    """The argument DIR, a run directory."""
    return click.argument(name, metavar="DIR", type=_FOLDER)


def reading(function: F, suite: bool = True) -> F:
    """The options of every command that reads a configuration; ``suite``: whether the help shows ``--suite``."""
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
            "--suite",
            metavar="SUITE",
            shell_complete=completions.suites,
            help="Suite whose default study runs if CONFIG is missing.",
            hidden=not suite,
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


def executing(function: F, output: str = "The run directory; a new one in runs/ unless given.") -> F:
    """The options of every command that computes; ``output``: the help of ``--output``."""
    return _with(
        function,
        output_directory(output),
        click.option(
            "--executor",
            metavar="EXECUTOR",
            shell_complete=completions.executors,
            help="Where tasks run: inline, process, dask.",
        ),
        click.option(
            "--store", metavar="STORE", help="Where results are cached: file, or an address (s3://...)."
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
    store: str | None
    workers: int | None
    fresh: bool
    quiet: bool

    @property
    def all_changes(self) -> tuple[str, ...]:
        """Those of ``--set``, and that of ``--store``."""
        from cfbench_core.config import Assignment

        if self.store is None:
            return self.changes
        chosen = {"name": "fsspec", "url": self.store} if "://" in self.store else {"name": self.store}
        return (*self.changes, Assignment(f"store={json.dumps(chosen)}", "--store", [self.store]))


def study(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of :func:`reading` and :func:`executing`, passed on together as ``study``, a StudyOptions."""
    return reading(executing(_collected(function)))


def studies_of_paper(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of :func:`study` for a paper, which determines the suite and has a run for each of its studies."""
    folder = "The folder of the runs, one for each study; reproductions/PAPER/SCALE unless given."
    return reading(executing(_collected(function), output=folder), suite=False)


def _collected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Called with each option by itself, calls the function with all of StudyOptions as ``study``."""

    @functools.wraps(function)
    def collected(**values: Any) -> Any:
        names = [field.name for field in dataclasses.fields(StudyOptions)]
        return function(study=StudyOptions(**{name: values.pop(name) for name in names}), **values)

    return collected


def _with(function: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        function = option(function)
    return function
