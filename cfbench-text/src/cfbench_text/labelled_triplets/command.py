"""``cfbench evaluate-extractor``: precision and recall of extractors on labelled triplets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from cfbench_core.cli import options, output
from cfbench_core.cli.downloads import data_access
from cfbench_core.cli.exit_codes import OK
from cfbench_core.cli.group import subcommand

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_text.contracts import Extractor
    from cfbench_text.labelled_triplets.labels import Half

HALVES = ("held-out", "development", "all")


@subcommand(
    "evaluate-extractor",
    examples=(
        "cfbench evaluate-extractor                                  rules and atomic on the sets that are here",
        "cfbench evaluate-extractor musical-instruments --extractor '{name: llm, model: /models/llama}'",
        "cfbench evaluate-extractor mine.jsonl --domain toys --half all --errors 20",
    ),
)
@click.argument("sets", metavar="[SET|FILE]...", nargs=-1)
@click.option(
    "--extractor",
    "extractors",
    metavar="EXTRACTOR",
    multiple=True,
    help="A name, or options as YAML; without any: rules and atomic.",
)
@click.option(
    "--half",
    "halves",
    type=click.Choice(HALVES),
    multiple=True,
    default=("held-out",),
    help="Texts, by id; may be repeated. Default: held-out.",
)
@click.option("--domain", metavar="DOMAIN", help="Topics of the labels: a name, or a YAML file.")
@click.option(
    "--errors",
    "most",
    type=click.IntRange(min=0),
    default=0,
    help="Show that many wrong triplets of each set.",
)
@options.output_file("Write a CSV to FILE, and a .json with command, machine and versions.")
@options.data_dir
@click.option("--offline", is_flag=True, help="Never download; report what is missing.")
def command(
    sets: tuple[str, ...],
    extractors: tuple[str, ...],
    halves: tuple[str, ...],
    domain: str | None,
    most: int,
    file: Path | None,
    data_dir: Path | None,
    offline: bool,
) -> int:
    """Measure how many of an extractor's triplets are right.

    A triplet is right if its statement matches a labelled one, and topic and sentiment are the same. The sets of the
    package have labels and ids; texts are read from your copy of the data. A FILE has your own texts and labels:
    JSON lines with id, text, pass and labels, each [start, end, topic, sentiment].
    """
    import pandas as pd

    from cfbench_core.files import write_atomically
    from cfbench_text.labelled_triplets.measure import errors, measured, table
    from cfbench_text.labelled_triplets.sets import load_set
    from cfbench_text.meta_evaluation.command import provenance
    from cfbench_text.meta_evaluation.evaluate import code_commit

    made = _made(extractors or ("rules", "atomic"))
    rows, wrong = [], []
    with data_access(data_dir, offline) as access:
        for name in sets or _present(access):
            found = load_set(name, access, domain)
            for half in cast("tuple[Half, ...]", halves):
                rows += measured(found, made, half)
                for label, extractor in made.items() if most else ():
                    wrong += [{"extractor": label, **row} for row in errors(found, extractor, half, most)]
    result = table(rows).assign(commit=code_commit())
    if file is not None:
        write_atomically(file, result.to_csv(index=False, float_format="%.4f"))
        write_atomically(file.with_suffix(".json"), provenance())
        click.echo(f"wrote {file}")
    else:
        output.stdout_console().print(result.round(3).to_string(index=False), soft_wrap=True, highlight=False)
    if wrong and file is not None:
        listed = file.with_stem(f"{file.stem}-errors")
        write_atomically(listed, pd.DataFrame(wrong).to_csv(index=False))
        click.echo(f"wrote {listed}")
    elif wrong:
        click.echo(pd.DataFrame(wrong).to_string(index=False))
    return OK


def _made(named: tuple[str, ...]) -> dict[str, Extractor]:
    """The extractors by label."""
    from cfbench_core.config import Assignment, Document, decode_settings
    from cfbench_core.registry import installed
    from cfbench_text.labelled_triplets.config import ExtractorEvaluation
    from cfbench_text.models.loading import require_local_model

    document = Document.of({}, "evaluate-extractor")
    document.set([Assignment(f"extractors=[{', '.join(named)}]", "--extractor", named)])
    config: ExtractorEvaluation = decode_settings(document, ExtractorEvaluation, "text", installed())
    for component in config.extractors:
        require_local_model(component)
    return {component.label: component.create() for component in config.extractors}


def _present(access: DataAccess) -> tuple[str, ...]:
    """The sets of the package whose texts are on this machine; the synthetic ones always are."""
    from cfbench_core.data_files import locate
    from cfbench_text.labelled_triplets.sets import FILES, names

    return tuple(one for one in names() if one not in FILES or locate(FILES[one], None, access.data_dir))
