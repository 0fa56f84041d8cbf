"""``cfbench check``: the conformance kit, for authors of components."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfbench_core.cli import completions, options, output
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.config.code_references import add_module_folder
from cfbench_core.errors import UserError
from cfbench_core.wording import count_of

if TYPE_CHECKING:
    from cfbench_core.testing import CheckResult, Report

MARKS = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "waived": ("~", "yellow"),
    "not applicable": ("-", "white"),
}


@subcommand(
    "check",
    examples=(
        "cfbench check lime-rs                          an installed component",
        "cfbench check my_lab.explainers:Ours           your own class, found from this folder",
        "cfbench check lime-rs --waive stays-in-scope='adds items on purpose'",
    ),
)
@click.argument("component", metavar="ID|MODULE:CLASS", shell_complete=completions.component_ids)
@click.option(
    "--suite",
    metavar="SUITE",
    shell_complete=completions.suites,
    help="Suite of the class, for MODULE:CLASS.",
)
@click.option(
    "--kind",
    default="explainer",
    show_default=True,
    metavar="KIND",
    help="Kind of the component, for MODULE:CLASS.",
)
@click.option(
    "--waive", "waivers", metavar="CHECK=REASON", multiple=True, help="Accept a failing check, with a reason."
)
@options.output_format("table", "json")
def command(component: str, suite: str | None, kind: str, waivers: tuple[str, ...], form: str) -> int:
    """Run the conformance checks of a component.

    They cover the contract of its kind, determinism, its declared capabilities and edge cases.
    Exits with 1 if a check fails that is not waived.
    """
    from cfbench_core.testing import check_component

    if ":" in component:  # a module of your own is found in the working directory
        add_module_folder(str(Path.cwd()))
    report = check_component(component, suite=suite, kind=kind, waive=dict(_waiver(text) for text in waivers))
    if form == "json":
        output.as_json(
            {"component": report.component, "results": [vars(result) for result in report.results]}
        )
    else:
        _show(report)
    return OK if report.passed else FAILED


def _waiver(text: str) -> tuple[str, str]:
    name, sign, reason = text.partition("=")
    if not sign or not reason.strip():
        raise UserError(f"--waive {text}: must look like check='the reason why it may fail'")
    return name, reason.strip()


def _show(report: Report) -> None:
    output.heading(report.component)
    width = max(len(result.check) for result in report.results)
    for result in report.results:
        mark, colour = MARKS[result.result]
        text = result.question if result.result == "passed" else _reason(result)
        click.echo(f"{click.style(mark, fg=colour)} {result.check.ljust(width)}  {text}")
    failed = len(report.failures)
    click.echo(
        f"\n{failed} of {count_of(len(report.results), 'check')} failed" if failed else "\nAll checks passed."
    )


def _reason(result: CheckResult) -> str:
    prefix = "" if result.result == "failed" else f"{result.result}: "
    return prefix + result.reason
