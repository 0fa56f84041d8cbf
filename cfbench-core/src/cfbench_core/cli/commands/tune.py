"""``cfbench tune``: hyperparameters of one component."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.cli import completions, options, output
from cfbench_core.cli.downloads import data_access
from cfbench_core.cli.exit_codes import FAILED, NOTHING_TO_RUN, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError
from cfbench_core.wording import count_of

if TYPE_CHECKING:
    from cfbench_core.tuning.results import Tuned


def seconds(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """ "90", "90s", "10m" or "1.5h" as seconds."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", value.strip())
    if not found:
        raise click.BadParameter(f"{value!r} is no duration: write 90s, 10m or 1.5h", context, parameter)
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


@subcommand(
    "tune",
    examples=(
        "cfbench tune study.yaml --component recommender/mf",
        "cfbench tune study.yaml --component mf --trials 50 --timeout 10m --output mf.yaml",
        "cfbench tune study.yaml --component explainer/lime-rs --metric POS-P@5",
        "cfbench tune --set data=ml-1m --set recommenders=mf --component mf  without a file",
        "cfbench tune study.yaml --component mf --preset-into presets/mf.yaml --name ml-1m",
    ),
)
@options.configuration(required=False)
@click.option(
    "--component",
    metavar="COMPONENT",
    required=True,
    shell_complete=completions.component_ids,
    help="Component to tune, by its name in the configuration, such as recommender/mf.",
)
@click.option(
    "--trials",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Total number of trials, including those of earlier calls.",
)
@click.option(
    "--timeout", metavar="TIME", callback=seconds, help="Start no trial after this time: 90s, 10m, 1.5h."
)
@click.option("--metric", metavar="METRIC", help="Metric to optimise; the suite's choice unless given.")
@click.option(
    "--sample",
    metavar="N",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Number of units on which an explainer is evaluated.",
)
@options.output_file(
    "The configuration to write; tuned-NAME.yaml unless given. Its trials are stored next to it."
)
@click.option("--restart", is_flag=True, help="Discard the existing trials.")
@click.option(
    "--preset-into",
    metavar="FILE",
    type=options.NamedPath(path_type=Path, dir_okay=False),
    help="Also write the best options as a preset into FILE (needs --name).",
)
@click.option("--name", metavar="NAME", help="Name of the preset (needs --preset-into).")
@options.reading
@click.option(
    "--executor",
    metavar="EXECUTOR",
    shell_complete=completions.executors,
    help="Where tasks run: inline, process, dask.",
)
@click.option("--workers", metavar="N", type=click.IntRange(min=1), help="Number of tasks at a time.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def command(
    config: Path | None,
    component: str,
    trials: int,
    timeout: float | None,
    metric: str | None,
    sample: int,
    file: Path | None,
    restart: bool,
    preset_into: Path | None,
    name: str | None,
    changes: tuple[str, ...],
    suite: str | None,
    allow_env: tuple[str, ...],
    data_dir: Path | None,
    offline: bool,
    executor: str | None,
    workers: int | None,
    quiet: bool,
) -> int:
    """Tune the hyperparameters of one component on validation data.

    The suite decides how a component is evaluated: a model by its quality on validation data, an explainer by a
    metric on units that are neither explained nor trained on. Trial 0 is the configuration as given. The best trial
    becomes a configuration for 'cfbench run'.

    Every trial is stored: a search that was stopped resumes as if it had not been stopped.
    Needs optuna: pip install 'cfbench-core[tune]'.

    Exit codes: 0 success, 1 all trials failed, 2 the configuration or the call is wrong,
    3 nothing was tried, 130 stopped with Ctrl-C.
    """
    from cfbench_core.cli.tuning import shown
    from cfbench_core.presets import write_preset
    from cfbench_core.tuning.search import open_search, run_search

    if (preset_into is None) != (name is None):
        raise UserError("--preset-into FILE and --name NAME go together")
    if config is not None and suite is not None:
        raise UserError(
            f"--suite chooses a default configuration, but {config} is given and names its own suite"
        )
    chosen = {"component": component, "trials": trials, "metric": metric, "sample": sample}
    with data_access(data_dir, offline, quiet) as access:
        search = open_search(
            config,
            component=component,
            metric=metric,
            sample=sample,
            out=file,
            command=_command(config, changes, allow_env, {"suite": suite, **chosen}),
            access=access,
            allow_env=allow_env,
            set=changes,
            suite=suite,
            executor=executor,
            workers=workers,
        )
    with shown(search, trials, quiet) as observer:
        tuned = run_search(search, trials, timeout, restart, observer)
    if preset_into is not None and name is not None and tuned.best is not None:
        write_preset(preset_into, tuned.preset(name))
    return _show(tuned, trials, preset_into)


def _command(
    config: Path | None, changes: tuple[str, ...], allowed: tuple[str, ...], chosen: dict[str, object]
) -> str:
    """The call as it can be repeated, without what only says where results go or how they are computed."""
    parts = ["cfbench", "tune", *([str(config)] if config is not None else [])]
    parts += [part for change in changes for part in ("--set", change)]
    parts += [part for name in allowed for part in ("--allow-env", name)]
    defaults = {parameter.name: parameter.default for parameter in command.params}
    for name, value in chosen.items():
        if value is not None and value != defaults[name]:
            parts += [f"--{name}", str(value)]
    return shlex.join(parts)


def _show(tuned: Tuned, trials: int, preset_into: Path | None) -> int:
    """The best trial and where everything is. Returns the exit code."""
    search, best = tuned.search, tuned.best
    done = len(tuned.trials)
    if tuned.resumed >= trials:
        click.echo(f"{count_of(done, 'trial')} existed already; for more: --trials {2 * done}")
    elif tuned.resumed:
        click.echo(f"{tuned.resumed} of {count_of(done, 'trial')} existed already")
    table = search.directory / "trials.csv"
    if not done:
        click.echo("nothing was tried: the time limit passed before the first trial", err=True)
        return NOTHING_TO_RUN
    if best is None:
        click.secho(f"all {count_of(done, 'trial')} failed; why: {table}", fg="red")
        return FAILED
    if done < trials:
        click.echo(
            f"time limit reached after {done} of {count_of(trials, 'trial')}; the same command resumes"
        )
    click.secho(tuned.verbalize(), bold=True)
    click.echo()
    rows = [
        [
            dimension.name,
            _cell(best.options[dimension.name]),
            _cell(search.configured[dimension.name]),
            str(dimension),
        ]
        for dimension in search.space
    ]
    output.table(["option", "best", "configured", "searched"], rows, indent="  ", spare=["searched"])
    click.echo()
    if tuned.at_the_edge:
        click.echo(f"At the edge of what was searched: {', '.join(tuned.at_the_edge)}")
    if tuned.failed:
        click.echo(f"{count_of(len(tuned.failed), 'trial')} failed; why: {table}")
    if preset_into is not None:
        click.echo(f"Preset: {preset_into}")
    click.echo(f"Trials: {table}")
    click.echo(f"Configuration: {search.out}      Run it: cfbench run {search.out}")
    return OK


def _cell(value: object) -> str:
    from cfbench_core.hashing import canonical_json

    return value if isinstance(value, str) else canonical_json(value)
