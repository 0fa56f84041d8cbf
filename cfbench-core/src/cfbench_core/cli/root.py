"""The root of the command line: the commands, and what becomes of errors.

Exit codes: 0 everything succeeded, 1 some cells failed (or a check did), 2 the configuration or the call is wrong,
3 nothing to run, 130 stopped with Ctrl-C, 129 and 143 by the signals HUP and TERM. A fault of cfbench itself, which
is none of these, is 70.
"""

from __future__ import annotations

import errno
import gc
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

import click

from cfbench_core.cli.exit_codes import INTERNAL, OK, WRONG
from cfbench_core.cli.group import Group
from cfbench_core.cli.signals import Ended, as_interrupts, end_quietly
from cfbench_core.cli.streams import prepare_streams
from cfbench_core.errors import AnalysisWarning, DamageWarning, UserError
from cfbench_core.plain_text import visible_lines
from cfbench_core.specs import resolve

RESUMABLE = {"run", "evaluate", "explain", "data", "tune", "reproduce"}
"""Commands that resume when they are called again, unless with one of :data:`ANEW`."""

ANEW = ("--fresh", "--restart")
"""Options with which a command begins anew."""

ENVIRONMENT_ERRORS = {
    getattr(errno, name, None)
    for name in (
        *("ENOSPC", "EDQUOT", "EFBIG", "EACCES", "EPERM", "EROFS", "EMFILE", "ENFILE", "ENOMEM"),
        *("EAGAIN", "EIO", "ESTALE", "ENAMETOOLONG", "ENOTDIR", "EISDIR", "ELOOP"),
    )
} - {None}
"""What the user's disk or rights are to blame for, not cfbench."""


ALLOCATIONS = 50_000
"""New objects after which Python looks for cycles to free. Imports and tables make millions that stay; with Python's
default of 700 the main process of the default study spends 2% of its time on looking."""

OUT_OF_MEMORY = "not enough memory; end other programs, use fewer --workers, or choose a smaller study"


def _section(*names: str) -> dict[str, str]:
    return {name: f"cfbench_core.cli.commands.{name.replace('-', '_')}:command" for name in names}


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"cfbench {version('cfbench-core')}")
        context.exit()


class RootGroup(Group):
    """The commands of the core, and those that installed suites bring.

    A suite's spec names its commands: ``details={"commands": {"advise": "package.module:command"}}``. The registry is
    read only for the help and for a command that the core does not have.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_suite_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        target = None if found else _suite_commands().get(cmd_name)
        return resolve(target) if target else found

    def known_commands(self) -> list[str]:
        return [*super().known_commands(), *_suite_commands()]

    def command_sections(self) -> Mapping[str, Iterable[str]]:
        found = {name for name in _suite_commands() if name not in self.references}
        return {**self.sections, "Installed suites": sorted(found)} if found else self.sections


def _suite_commands() -> dict[str, str]:
    """The commands of installed suites by name."""
    from cfbench_core.registry import installed

    return {
        str(name): str(target)
        for component in installed().components("suite")
        for name, target in component.spec.details.get("commands", {}).items()
    }


cli = RootGroup(
    name="cfbench",
    help="Which counterfactual explainer should I trust, for this model, on this data?",
    sections={
        "Discover": _section("list", "describe", "plugins", "doctor"),
        "Run": _section("init", "plan", "run", "evaluate", "status", "tune", "reproduce"),
        "Read results": _section("report", "view", "explain", "compare", "analyse", "export", "cite"),
        "Data and cache": _section("data", "cache"),
        "Extend": _section("new-plugin", "check", "completion"),
    },
    examples=(
        "cfbench run                                 a small, real default study over everything installed",
        "cfbench list explainers                     what can be compared",
        "cfbench init study.yaml                     a configuration to start from",
        "cfbench run study.yaml --output runs/study  run it; called again, it resumes",
    ),
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        )
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (``sys.argv`` if None) and returns its exit code."""
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    if arguments is None:  # this process is ours
        gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
    prepare_streams()
    if not _has_folder():
        return _say("the current folder does not exist any more; change to another one (cd)", WRONG)
    with warnings.catch_warnings(), as_interrupts() as ended:
        _show_our_warnings()
        code = _called(given, "--debug" in given, ended)
    if arguments is None:  # the process ends now
        end_quietly()
    return code


def _has_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _show_our_warnings() -> None:
    """Shows cfbench's own warnings as a line on stderr, each time; other warnings stay as they are."""
    ours = (AnalysisWarning, DamageWarning)
    others = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, ours):
            click.secho(visible_lines(str(message)), fg="yellow", err=True)
        else:
            others(message, category, filename, lineno, file, line)

    for category in ours:
        warnings.simplefilter("always", category)
    warnings.showwarning = show


def _called(given: Sequence[str], debug: bool, ended: Ended) -> int:
    try:
        return int(cli.main(given or ["--help"], prog_name="cfbench", standalone_mode=False) or OK)
    except click.ClickException as error:
        error.show()
        return WRONG
    except (click.Abort, KeyboardInterrupt):
        return _stopped(given, ended)
    except UserError as error:
        return _say("\n".join(error.lines), WRONG, error if debug else None)
    except MemoryError as error:
        return _say(OUT_OF_MEMORY, WRONG, error if debug else None)
    except OSError as error:
        if error.errno not in ENVIRONMENT_ERRORS:
            return _internal(error, debug)
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror}", WRONG, error if debug else None)
    except Exception as error:
        if ended.number is not None:  # a library turned the interrupt into an error of its own
            return _stopped(given, ended)
        return _internal(error, debug)


def _stopped(given: Sequence[str], ended: Ended) -> int:
    name = next((argument for argument in given if not argument.startswith("-")), "")
    anew = next((option for option in ANEW if option in given), "")
    how = f"; without {anew} the same command uses what is finished" if anew else "; the same command resumes"
    return _say(f"stopped{how if name in RESUMABLE else ''}", ended.exit_code)


def _internal(error: Exception, debug: bool) -> int:
    advice = "" if debug else "  (the same with --debug shows where)"
    return _say(
        f"cfbench failed: {type(error).__name__}: {error}{advice}", INTERNAL, error if debug else None
    )


def _say(line: str, code: int, error: Exception | None = None) -> int:
    """Writes to stderr: the traceback, if one is wanted, then the line. Returns the exit code."""
    if error is not None:
        click.echo("".join(traceback.format_exception(error)), err=True)
    click.echo(visible_lines(line), err=True)
    return code
