"""``--help`` of every command."""

from __future__ import annotations

import click


def page() -> str:
    from cfbench_core.cli.root import cli

    parts = ["# Commands", ""]
    context = click.Context(cli, info_name="cfbench")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        help_text = command.get_help(click.Context(command, info_name=name, parent=context))
        parts += [f"## cfbench {name}", "", "```text", help_text, "```", ""]
    return "\n".join(parts)
