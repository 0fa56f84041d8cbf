"""Commands that an installed suite brings."""

from __future__ import annotations

from pathlib import Path

from .conftest import Command, Install

PLUGIN = """
import click
from cfbench_core.cli.group import subcommand
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

@subcommand("weigh", examples=())
@click.argument("number", type=int)
def weigh(number):
    \"\"\"Weigh a number.\"\"\"
    click.echo(f"{number} kg")

@hookimpl
def cfbench_components():
    return [ComponentSpec(id="scales/suite/scales", summary="S", target="m:S",
                          details={"commands": {"weigh": __name__ + ":weigh", "list": __name__ + ":weigh"}})]
"""


def test_a_command_of_a_suite_is_called_like_any_other(toy: Path, install: Install, cfbench: Command) -> None:
    install("cfbench-scales", "1.0", PLUGIN)

    assert cfbench("weigh", "3").out == "3 kg\n"
    wrong = cfbench("weigh", "heavy")
    assert wrong.code == 2 and "not a valid integer" in wrong.err


def test_the_help_lists_it_and_misspellings_are_recognised(
    toy: Path, install: Install, cfbench: Command
) -> None:
    install("cfbench-scales", "1.0", PLUGIN)

    assert "Installed suites" in cfbench("--help").out
    assert "Weigh a number." in cfbench("--help").out
    assert "Did you mean 'weigh'?" in cfbench("weih").err


def test_a_suite_cannot_replace_a_command_of_the_core(toy: Path, install: Install, cfbench: Command) -> None:
    install("cfbench-scales", "1.0", PLUGIN)

    assert "scales" in cfbench("list", "suites").out


def test_it_is_unknown_without_the_suite(toy: Path, cfbench: Command) -> None:
    assert cfbench("weigh", "3").err.startswith("no command 'weigh'.")
