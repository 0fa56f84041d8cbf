"""What every command has: examples in its help, ``--debug``; and groups that import a command when called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.specs import resolve


def _debug_option() -> click.Option:
    """``--debug`` may stand before or behind the command's name; ``main`` looks for it."""
    return click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error.")


class Command(click.Command):
    """A command with examples below its help."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params.append(_debug_option())

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """A group whose commands are ``"module:command"`` strings, by section of the help."""

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]],
        examples: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.references = {name: target for section in sections.values() for name, target in section.items()}
        self.examples = examples
        self.params.append(_debug_option())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.references]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target = self.references.get(cmd_name)
        found: click.Command | None = resolve(target) if target else None
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        unknown = self.get_command(ctx, args[0]) is None and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], self.known_commands())
            raise UserError(f"no command {args[0]!r}.{hint}  ({ctx.command_path} --help)")
        return super().resolve_command(ctx, args)

    def known_commands(self) -> list[str]:
        """The names that :meth:`get_command` resolves."""
        return [*self.references]

    def command_sections(self) -> Mapping[str, Iterable[str]]:
        """The names of commands by section of the help."""
        return self.sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in self.known_commands())
        for title, names in self.command_sections().items():
            found = {name: self.get_command(ctx, name) for name in names}
            rows = [(name.ljust(width), c.get_short_help_str(66)) for name, c in found.items() if c]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def subcommand(name: str, *, examples: Sequence[str]) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a :class:`Command`. It returns its exit code, or None for 0."""
    return click.command(name, cls=Command, examples=examples)


def group(
    name: str, *, module: str, commands: Mapping[str, str], examples: Sequence[str], help: str
) -> Group:
    """A command with commands of its own: their names, and what they are called in ``module``."""
    targets = {inner: f"{module}:{attribute}" for inner, attribute in commands.items()}
    return Group(name=name, sections={"Commands": targets}, examples=examples, help=help)
