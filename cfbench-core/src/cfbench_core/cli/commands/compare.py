"""``cfbench compare``: two runs, cell by cell."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import NOTHING_TO_RUN, OK
from cfbench_core.cli.group import subcommand


@subcommand(
    "compare",
    examples=(
        "cfbench compare runs/before runs/after                     what changed, and is it chance?",
        "cfbench compare runs/before runs/after --format markdown   to paste into an issue",
    ),
)
@options.run_directory("first")
@options.run_directory("second")
@options.output_format("table", "markdown", "json")
def command(first: Path, second: Path, form: str) -> int:
    """Compare two runs: settings, outcomes, scores.

    Scores are compared on the units that both have, with a 95% paired interval of their difference; where the runs explain
    different units, for example with another seed, their means are compared. Exits with 3 when they have no cell in
    common.
    """
    import dataclasses

    from cfbench_core.comparison import compare
    from cfbench_core.run_directory import Run

    found = compare(Run(first), Run(second))
    if form == "json":
        output.as_json(dataclasses.asdict(found))
    else:
        click.echo(found.render("markdown" if form == "markdown" else "table"), nl=False)
    return OK if found.differences or found.outcomes else NOTHING_TO_RUN
