"""``--help`` of every command with its Python call, and whether the commands that pages show exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from cfbench_core.cli.root import cli
from reference_pages import python_calls

DOCS = Path(__file__).parents[2]
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"(?:^(?:\$ )?|`)cfbench ([a-z][a-z-]*)([^`#\n|]*)", re.MULTILINE)
"""A command at the start of a line of a code block, or in backticks, and the rest of it."""
OPTION = re.compile(r"(?<=\s)(--[a-z][a-z-]*)")
CONTEXT = click.Context(cli, info_name="cfbench")


def page() -> str:
    parts = ["# Commands", ""]
    for name in cli.list_commands(CONTEXT):
        command = cli.get_command(CONTEXT, name)
        assert command is not None
        help_text = command.get_help(click.Context(command, info_name=name, parent=CONTEXT))
        parts += [f"## cfbench {name}", "", "```text", help_text, "```", "", *python_calls.markdown(name)]
    return "\n".join(parts)


def problems() -> list[str]:
    """Commands and options on the pages that do not exist."""
    pages = sorted(path for path in DOCS.rglob("*.md") if "adr" not in path.parts)
    return [
        f"{path.relative_to(DOCS)}: {problem}"
        for path in pages
        for problem in _problems(path.read_text(encoding="utf-8"))
    ]


def _problems(text: str) -> Iterator[str]:
    for name, rest in SHOWN.findall("\n".join(CODE.findall(text))):
        command = cli.get_command(CONTEXT, name)
        if command is None:
            yield f"there is no command 'cfbench {name}'"
            continue
        known = set(_options(command))
        yield from (
            f"'cfbench {name}' has no option {option}"
            for option in OPTION.findall(rest)
            if option not in known
        )


def _options(command: click.Command) -> Iterator[str]:
    """Of a command, and of its subcommands."""
    yield "--help"
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, click.Group):
        context = click.Context(command, parent=CONTEXT)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _options(inner)
