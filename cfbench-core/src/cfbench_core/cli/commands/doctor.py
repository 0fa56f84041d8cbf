"""``cfbench doctor``: diagnoses the installation without changing it."""

from __future__ import annotations

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.diagnosis import Finding, diagnose
from cfbench_core.wording import count_of


@subcommand(
    "doctor",
    examples=(
        "cfbench doctor  what to include in a bug report",
        "cfbench doctor --format json",
    ),
)
@options.output_format("table", "json")
def command(form: str) -> int:
    """Diagnose the installation: versions, GPU, folders, disk space.

    Exits with 1 if there is a problem.
    """
    findings = diagnose()
    if form == "json":
        output.as_json([finding._asdict() for finding in findings])
    else:
        _show(findings)
    return FAILED if any(finding.advice for finding in findings) else OK


def _show(findings: list[Finding]) -> None:
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        mark = click.style("!", fg="yellow", bold=True) if finding.advice else click.style("✓", fg="green")
        click.echo(f"{mark} {finding.subject.ljust(width)}  {finding.found}")
        if finding.advice:
            click.echo(f"  {'':{width}}  {finding.advice}")
    amiss = sum(bool(finding.advice) for finding in findings)
    click.echo(f"\n{count_of(amiss, 'problem')} found." if amiss else "\nNo problems found.")
