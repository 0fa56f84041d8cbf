"""``cfbench advise``: which explainer suits which data, estimated from finished runs by the analysis ``advice``."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core import analyses
from cfbench_core.cli import completions, options
from cfbench_core.cli.commands.analyse import FORMATS, show_answer
from cfbench_core.cli.group import subcommand

NAME = "advice"


@subcommand(
    "advise",
    examples=(
        "cfbench advise runs/study                               trees, their accuracy, and suggestions",
        "cfbench advise runs/study --set rows=800 --set auc=0.8  for data and a model like yours",
        "cfbench advise runs/a runs/b --output advice.html       with figures",
    ),
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=completions.runs)
@click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    help="What your data are like, and which counterfactuals count: cfbench describe advice.",
)
@options.output_format(*FORMATS, default=None)
@options.output_file()
def command(runs: tuple[str, ...], changes: tuple[str, ...], form: str | None, file: Path | None) -> None:
    """Suggest an explainer for data, a model and a row.

    The accuracy of the suggestions is shown first. The same as 'cfbench analyse advice RUN...'.
    """
    show_answer(NAME, analyses.opened(list(runs)), changes, form or options.format_of(file, FORMATS), file)
