"""``cfbench evaluate``: scores external explanations."""

from __future__ import annotations

from pathlib import Path

import click

from cfbench_core.cli import options
from cfbench_core.cli.group import subcommand
from cfbench_core.cli.options import StudyOptions


@subcommand(
    "evaluate",
    examples=(
        "cfbench evaluate study.yaml --explanations theirs.parquet",
        "cfbench evaluate study.yaml --explanations runs/study/explanations.parquet --output runs/rescored",
        "cfbench evaluate --suite text texts.jsonl  user, item, text and reference in each line",
    ),
)
@click.argument("config", metavar="[CONFIG|FILE]", type=click.Path(path_type=Path))
@click.option(
    "--explanations",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Parquet or CSV, texts also JSON lines; columns as in a run's explanations.parquet.",
)
@options.study
def command(
    config: Path,
    explanations: Path | None,
    study: StudyOptions,
) -> int:
    """Score external explanations.

    Data, models, units and metrics are those of CONFIG; its explainers are not run. The scores equal
    those of a run that computes the same explanations. Texts that come with their references need no CONFIG: FILE
    has the columns user, item, text and reference. Exit codes are those of 'cfbench run'.
    """
    from cfbench_core.cli.running import execute_and_show, plan_study

    if explanations is None and config.suffix.lower() in (".yaml", ".yml"):
        raise click.UsageError(f"{config} is a configuration; add --explanations FILE, the table to score")
    planned = plan_study(*((None, study, config) if explanations is None else (config, study, explanations)))
    return execute_and_show(planned, study)
