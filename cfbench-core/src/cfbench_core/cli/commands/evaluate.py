"""``cfbench evaluate``: scores explanations that were made elsewhere."""

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
        "cfbench evaluate study.yaml --explanations runs/study/explanations.parquet --out runs/again",
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
    """Score explanations that were made elsewhere.

    Data, models, units and metrics are those of CONFIG; its explainers are not run. The numbers are those
    that cfbench would have given had it made these explanations. Exit codes are those of 'cfbench run'.
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
