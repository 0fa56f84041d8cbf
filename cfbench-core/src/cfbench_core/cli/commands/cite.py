"""``cfbench cite``: the references of everything that a run used."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.group import subcommand


@subcommand(
    "cite",
    examples=(
        "cfbench cite runs/study > references.bib       BibTeX",
        "cfbench cite runs/study --format table         a list of references",
    ),
)
@options.run_directory()
@options.output_format("bibtex", "table", "json", default="bibtex")
def command(directory: Path, form: str) -> None:
    """Print the references of everything that a run used.

    These are the papers of its data sets, models, explainers, metrics and other components.
    """
    from cfbench_core.used_components import cite

    papers = cite(directory)
    if form == "json":
        output.as_json([{**dataclasses.asdict(paper), "url": paper.url} for paper in papers])
    elif not papers:
        click.echo("The components of this run cite no papers.", err=True)
    elif form == "table":
        click.echo("\n".join(paper.text() for paper in papers))
    else:
        click.echo("\n\n".join(paper.bibtex() for paper in papers))
