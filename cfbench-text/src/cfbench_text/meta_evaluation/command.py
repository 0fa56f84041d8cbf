"""``cfbench meta-evaluate``: how well judges, extractors and metrics of texts agree with people."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.downloads import data_access
from cfbench_core.cli.exit_codes import FAILED, OK
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.config import Document
    from cfbench_core.data_files import DataAccess
    from cfbench_core.registry import Registry

FORMATS = ("table", "csv", "markdown", "json")


@subcommand(
    "meta-evaluate",
    examples=(
        "cfbench meta-evaluate                          overlap, BLEU and ROUGE on the label sets that are here",
        "cfbench meta-evaluate sick --judge similarity  a judge on one label set",
        "cfbench meta-evaluate mine.jsonl --judge '{name: nli, model: /models/deberta}' --store",
        "cfbench meta-evaluate qags-cnn --metric '{name: sts}' --metric bleu --output agreement.csv",
    ),
)
@click.argument("labelsets", metavar="[LABELSET|FILE]...", nargs=-1)
@click.option(
    "--judge",
    "judges",
    metavar="JUDGE",
    multiple=True,
    help="A name, or options as YAML: {name: nli, model: M}.",
)
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC",
    multiple=True,
    help="A name, or options as YAML; by default all metrics that need no model.",
)
@click.option(
    "--extractor",
    metavar="EXTRACTOR",
    help="Extractor of statements; without one, every sentence is a statement.",
)
@click.option("--domain", metavar="DOMAIN", help="Topics for the extractor: a name, or a YAML file.")
@click.option(
    "--set", "changes", metavar="KEY=VALUE", multiple=True, help="Other options: rows, resamples, seed."
)
@click.option("--store", is_flag=True, help="Show what was measured in tables that rest on these judges.")
@options.output_format(*FORMATS, default=None)
@options.output_file("Write to FILE; for a .csv also a .json with command, machine and versions.")
@options.data_dir
@click.option("--offline", is_flag=True, help="Never download; report what is missing.")
@click.option(
    "--allow-env",
    metavar="NAME",
    multiple=True,
    help="Environment variable that 'key' may name; *_API_KEY always may.",
)
def command(
    labelsets: tuple[str, ...],
    judges: tuple[str, ...],
    metrics: tuple[str, ...],
    extractor: str | None,
    domain: str | None,
    changes: tuple[str, ...],
    store: bool,
    form: str | None,
    file: Path | None,
    data_dir: Path | None,
    offline: bool,
    allow_env: tuple[str, ...],
) -> int:
    """Measure how well metrics, judges and extractors agree with people.

    A LABELSET is installed ('cfbench list labelsets'); without any, those whose data are on this machine. A FILE has
    your own labelled texts: JSON lines or CSV with text, evidence and label. AUC: the probability that a text that
    people find right scores above one that they do not; pairwise: the share of pairs in the order of people; Kendall's
    tau. All with 95% intervals over documents. Exits with 1 if a model did not answer all queries.
    """
    from cfbench_core.config import Assignment
    from cfbench_core.errors import IncompleteWarning
    from cfbench_core.registry import installed
    from cfbench_text.meta_evaluation.evaluate import meta_evaluate

    chosen = form or options.format_of(file, FORMATS)
    registry = installed()
    with data_access(data_dir, offline) as access, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        document = _document(labelsets, judges, metrics, registry, access)
        document.allowed_variables = frozenset(allow_env)
        given = {"extractor": extractor, "domain": domain}
        for name, value in given.items():
            if value:
                document.set([Assignment(f"{name}={value}", f"--{name}", value)])
        document.set(changes)
        table = meta_evaluate(
            document, access=access, registry=registry, report=lambda line: click.echo(line, err=True)
        )
    for line in dict.fromkeys(str(warning.message) for warning in caught):
        click.secho(f"remark: {line}", fg="yellow", err=True)
    _write(table, chosen, file)
    if store:
        from cfbench_text.meta_evaluation.reliability import store_measurements
        from cfbench_text.meta_evaluation.summary import stored_rows

        click.echo(f"stored in {store_measurements(stored_rows(table))}")
    return FAILED if any(issubclass(one.category, IncompleteWarning) for one in caught) else OK


def _document(
    labelsets: tuple[str, ...],
    judges: tuple[str, ...],
    metrics: tuple[str, ...],
    registry: Registry,
    access: DataAccess,
) -> Document:
    """The configuration that the arguments stand for."""
    from cfbench_core.config import Assignment, Document

    named: list[Any] = [labelset_of(one, registry) for one in labelsets] or _present(registry, access)
    document = Document.of({"labelsets": named}, "meta-evaluate")
    if not judges and not metrics:
        judges = ("overlap",)
    for key, option, values in (("judges", "--judge", judges), ("metrics", "--metric", metrics)):
        if values:
            document.set([Assignment(f"{key}=[{', '.join(values)}]", option, values)])
    return document


def labelset_of(name: str, registry: Registry) -> Any:
    """An installed label set, or a file of labelled texts."""
    known = registry.names("text", "labelset")
    if name in known:
        return name
    if name.startswith("{"):
        from cfbench_core.yaml_nodes import compose, plain

        root = compose(name, lambda line: name)
        return plain(root) if root is not None else name
    if not Path(name).expanduser().is_file():
        raise UserError(f"{name}: no label set of this name, and no such file.{did_you_mean(name, known)}")
    return {"name": "file", "path": name, "label": Path(name).name.partition(".")[0]}


def _present(registry: Registry, access: DataAccess) -> list[str]:
    """The installed label sets whose data are on this machine."""
    from cfbench_core.data_files import locate
    from cfbench_core.specs import resolve

    declared = {
        one.spec.name: resolve(one.spec.details["files"])
        for one in registry.components("labelset", "text")
        if "files" in one.spec.details
    }
    found = [name for name, files in declared.items() if locate(files, None, access.data_dir)]
    if not found:
        raise UserError(
            f"the data of no label set are here ({', '.join(declared)}); name a file with labelled texts, or"
            " put their data into ./data (cfbench describe NAME)"
        )
    return found


def provenance() -> str:
    """What measured a table, as JSON: the command, the machine and the versions."""
    import json
    import shlex
    import sys

    from cfbench_core.environment import capture
    from cfbench_core.redaction import redacted

    found = capture()
    command = shlex.join(["cfbench", *map(redacted, sys.argv[1:])])
    about = {"command": command, "hardware": found["hardware"], "versions": found["distributions"]}
    return json.dumps(about, indent=1) + "\n"


def _write(table: pd.DataFrame, form: str, file: Path | None) -> None:
    from cfbench_core.analyses import Answer
    from cfbench_core.files import write_atomically
    from cfbench_core.reports.analysis import render
    from cfbench_text.meta_evaluation.summary import QUESTION, text_of, words_of

    answer = Answer("meta-evaluation", QUESTION, words=words_of(table), table=table, text=text_of(table))
    if file is not None:
        write_atomically(file, render(answer, [], form))
        click.echo(f"wrote {file}")
        if form == "csv":
            write_atomically(file.with_suffix(".json"), provenance())
    elif form == "table":
        from cfbench_core.reports.analysis import show

        show(answer, output.stdout_console())
    else:
        click.echo(render(answer, [], form), nl=False)
