"""One name for one thing: the options of all commands, also of those that installed suites bring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cfbench_core.cli.options import FORMATS, format_of
from cfbench_core.cli.root import cli

OTHER_NAMES = {
    "--out": "--output",
    "--out-dir": "--output",
    "--dest": "--output",
    "--fmt": "--format",
    "--type": "--format",
    "--config": "the argument CONFIG",
    "--conf": "the argument CONFIG",
    "--dir": "the argument DIR",
    "--data-path": "--data-dir",
    "--jobs": "--workers",
    "--n-jobs": "--workers",
    "--silent": "--quiet",
    "--overwrite": "--force",
    "--no-cache": "--fresh",
    "--random-state": "--seed",
    "--keep": "--store",
    "--option": "--set",
}
"""What an option is not called, and what it is."""
SHORT = {"-o": "--output", "-q": "--quiet", "-h": "--help"}
METAVARS = {
    "--data-dir": {"DIR"},
    "--executor": {"EXECUTOR"},
    "--metric": {"METRIC"},
    "--output": {"DIR", "FILE"},
    "--set": {"KEY=VALUE"},
    "--suite": {"SUITE"},
    "--workers": {"N"},
}


def commands(
    command: click.Command, path: str, parent: click.Context | None
) -> Iterator[tuple[str, click.Command]]:
    """Every command of the tree below ``command`` with its path, "cfbench cache ls"."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path.split()[-1], parent=parent)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, f"{path} {name}"
            yield from commands(found, f"{path} {name}", context)


def every_option() -> list[tuple[str, click.Option]]:
    """The options of all commands, each with the path of its command."""
    context = click.Context(cli, info_name="cfbench")
    tree: list[tuple[str, click.Command]] = [("cfbench", cli)]
    for name in cli.known_commands():  # those of installed suites among them
        command = cli.get_command(context, name)
        assert command is not None, name
        tree.extend(commands(command, f"cfbench {name}", context))
    return [(path, option) for path, c in tree for option in c.params if isinstance(option, click.Option)]


OPTIONS = every_option()


def test_the_walk_finds_commands_and_their_commands() -> None:
    paths = {path for path, _ in OPTIONS}
    assert {"cfbench", "cfbench run", "cfbench cache ls", "cfbench data fetch"} <= paths


def test_no_option_has_another_name_for_the_same_thing() -> None:
    wrong = [
        f"{path} {name}: {OTHER_NAMES[name]}"
        for path, option in OPTIONS
        for name in (*option.opts, *option.secondary_opts)
        if name in OTHER_NAMES
    ]
    assert not wrong


def test_formats_are_those_of_the_vocabulary_and_spelled_alike() -> None:
    seen = set()
    for path, option in OPTIONS:
        if "--format" in option.opts:
            assert isinstance(option.type, click.Choice), path
            assert set(option.type.choices) <= set(FORMATS), (path, option.type.choices)
            assert "table" in option.type.choices, path  # for people, everywhere
            assert option.default in (*option.type.choices, None) or not isinstance(option.default, str), path
            seen.add(path)
    assert len(seen) >= 10


def test_what_is_written_goes_to_output() -> None:
    for path, option in OPTIONS:
        if "--output" in option.opts:
            assert sorted(option.opts) == ["--output", "-o"], path
            assert option.metavar in METAVARS["--output"], path


def test_short_names_mean_the_same_everywhere() -> None:
    for path, option in OPTIONS:
        for name in option.opts:
            if not name.startswith("--"):
                assert SHORT.get(name) in option.opts, f"{path} {name}"


def test_the_same_option_takes_the_same_kind_of_value() -> None:
    for path, option in OPTIONS:
        for name in option.opts:
            if name in METAVARS:
                assert option.metavar in METAVARS[name], f"{path} {name} {option.metavar}"


def test_every_option_with_a_value_says_what_it_is_for() -> None:
    for path, option in OPTIONS:
        if not isinstance(option.type, click.Choice):
            assert option.help, f"{path} {option.opts}"


@pytest.mark.parametrize(("name", "form"), [("a.md", "markdown"), ("a.TEX", "latex"), ("a.csv", "csv")])
def test_the_name_of_a_file_implies_its_format(name: str, form: str) -> None:
    assert format_of(Path(name), FORMATS) == form
    assert format_of(None, FORMATS) == "table"
    with pytest.raises(click.UsageError, match=r"say --format, one of table, json: the name a\.xyz"):
        format_of(Path("a.xyz"), ("table", "json"))
