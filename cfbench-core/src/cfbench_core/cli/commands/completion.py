"""``cfbench completion``: what a shell needs to complete commands, options and component names on Tab."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError

SHELLS = ("bash", "zsh", "fish")


@subcommand(
    "completion",
    examples=(
        'eval "$(cfbench completion bash)"          in ~/.bashrc',
        'eval "$(cfbench completion zsh)"           in ~/.zshrc',
        "cfbench completion fish > ~/.config/fish/completions/cfbench.fish",
    ),
)
@click.argument("shell", required=False, type=click.Choice(SHELLS))
def command(shell: str | None) -> None:
    """Print the shell completion script.

    By default, the script is for your current shell.
    """
    from click.shell_completion import get_completion_class

    from cfbench_core.cli.root import cli

    name = shell or Path(os.environ.get("SHELL", "")).name
    completion = get_completion_class(name) if name in SHELLS else None
    if completion is None:
        raise UserError(f"completion: say for which shell: {', '.join(SHELLS)}")
    click.echo(completion(cli, {}, "cfbench", "_CFBENCH_COMPLETE").source())
