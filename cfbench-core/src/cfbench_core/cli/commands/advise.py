"""``cfbench advise``: which explainer suits which data, told from finished runs: their suite's analysis ``advice``."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core import analyses
from cfbench_core.cli import completions
from cfbench_core.cli.commands.analyse import FORMATS, format_of, tell
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError
from cfbench_core.registry import installed

NAME = "advice"


@subcommand(
    "advise",
    examples=(
        "cfbench advise runs/study                                 trees, their accuracy, and suggestions",
        "cfbench advise runs/study --set rows=800 --set auc=0.8    for data and a model like yours",
        "cfbench advise runs/a runs/b --out advice.html            with pictures",
    ),
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=completions.runs)
@click.option(
    "--set",
    "changes",
    metavar="OPTION=VALUE",
    multiple=True,
    help="What your data are like, and which answers count: cfbench describe advice.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="By default that of FILE, else terminal.")
@click.option(
    "--out", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write to FILE."
)
def command(runs: tuple[str, ...], changes: tuple[str, ...], form: str | None, file: Path | None) -> None:
    """Which explainer suits which data, model and row, and how much that knows.

    The same as 'cfbench analyse advice RUN...'.
    """
    opened = analyses.opened(list(runs))
    if NAME not in installed().names(opened[0].suite, "analysis"):
        raise UserError(f"the suite {opened[0].suite} has no advisor (an analysis called {NAME!r})")
    tell(NAME, opened, changes, form or format_of(file), file)
