"""``cfbench evaluate``: scores external explanations."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import options
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.prepare import prepared


@subcommand(
    "evaluate",
    examples=(
        "cfbench evaluate study.yaml --explanations theirs.parquet",
        "cfbench evaluate study.yaml --explanations runs/study/explanations.parquet --out runs/rescored",
    ),
)
@options.configuration(required=True)
@click.option(
    "--explanations",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Parquet or CSV, texts also JSON lines; columns as in a run's explanations.parquet.",
)
@options.reading
@options.executing
def command(
    config: Path,
    explanations: Path,
    changes: tuple[str, ...],
    suite: str | None,
    data_dir: Path | None,
    offline: bool,
    out: Path | None,
    executor: str | None,
    workers: int | None,
    fresh: bool,
    quiet: bool,
) -> int:
    """Score external explanations.

    Data, models, units and metrics are those of CONFIG; its explainers are not run. The scores equal
    those of a run that computes the same explanations. Exit codes are those of 'cfbench run'.
    """
    from cfbench_core.cli.running import execute_and_show

    planned = prepared(
        config,
        changes=changes,
        suite=suite,
        data_dir=data_dir,
        offline=offline,
        quiet=quiet,
        executor=executor,
        workers=workers,
        explanations=explanations,
    )
    return execute_and_show(planned, out=out, fresh=fresh, quiet=quiet)
