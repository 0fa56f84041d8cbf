"""``cfbench train-judge``: trains the judge ``trained`` on this machine, and measures whether it transfers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cfbench_core.cli import options
from cfbench_core.cli.downloads import data_access
from cfbench_core.cli.group import subcommand
from cfbench_core.errors import UserError

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_core.registry import Registry
    from cfbench_text.judges.made_pairs import MadePair
    from cfbench_text.judges.pair_classifier import PairClassifier
    from cfbench_text.meta_evaluation.labelled import LabelledTexts

STATEMENTS = 1000
"""Of a data set of reviews, drawn at random."""


@subcommand(
    "train-judge",
    examples=(
        "cfbench train-judge '{name: sick, part: train}' summeval qags-cnn --output judge.json",
        "cfbench train-judge '{name: sick, part: train}' mine.jsonl --reviews toy-reviews --output judge.json --store",
    ),
)
@click.argument("labelsets", metavar="[LABELSET|FILE]...", nargs=-1)
@click.option(
    "--reviews", metavar="DATASET", multiple=True, help="Make pairs from the statements of its reviews, too."
)
@click.option(
    "--encoder", metavar="MODEL", help="Sentence encoder: name, folder or package:NAME; by default MiniLM."
)
@options.output_file("Write the judge to FILE (JSON).", required=True)
@click.option("--store", is_flag=True, help="Show the transfer in tables that rest on this judge.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Random seed for generating synthetic pairs.",
)
@options.data_dir
@click.option("--offline", is_flag=True, help="Never download; report what is missing.")
def command(
    labelsets: tuple[str, ...],
    reviews: tuple[str, ...],
    encoder: str | None,
    file: Path,
    store: bool,
    seed: int,
    data_dir: Path | None,
    offline: bool,
) -> None:
    """Train a judge of statements on texts with human labels.

    A LABELSET is installed ('cfbench list labelsets'); a FILE has your own labelled texts, as for 'cfbench
    meta-evaluate'. The judge is a logistic regression on sentence embeddings and words. The command reports how it
    agrees with people on each label set when it is trained on the others: expect this on texts of another kind. Use
    it with 'judges: [{name: trained, path: FILE}]'.
    """
    from cfbench_core.registry import installed
    from cfbench_text.judges.judge_training import train
    from cfbench_text.judges.pair_classifier import write
    from cfbench_text.judges.trained import Config
    from cfbench_text.models.loading import find_local

    if not labelsets and not reviews:
        raise click.UsageError("name a label set, a file of labelled texts, or --reviews DATASET")
    registry = installed()
    source = Config() if encoder is None else Config(model=encoder)
    find_local(source.model)
    with data_access(data_dir, offline) as access:
        texts = _labelled(labelsets, registry, access)
        made = {name: _made(name, seed, registry, access) for name in dict.fromkeys(reviews)}
    classifier = train(texts, made, source, report=lambda line: click.echo(line, err=True))
    write(classifier, file)
    click.echo(transfer_text(classifier))
    click.echo(f"wrote {file}")
    if store:
        click.echo(f"stored in {_store(classifier, file, encoder, registry)}")


def transfer_text(classifier: PairClassifier) -> str:
    """A line for each label set, from a judge that was trained on the others."""
    rows = classifier.about["transfer"]
    if not rows:
        return "Transfer was not measured: it needs another set to train on."
    heads = ("not trained on", "texts", "AUC", "calibration error")
    lines = [
        (
            row["labelset"],
            f"{row['n']:,}",
            f"{row['auc']:.2f} [{row['auc_low']:.2f}, {row['auc_high']:.2f}]",
            f"{row['calibration_error']:.2f}",
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (heads, *lines)
    )


def _labelled(names: tuple[str, ...], registry: Registry, access: DataAccess) -> list[LabelledTexts]:
    """All texts of label sets, under their labels."""
    from cfbench_core.config import Document, decode_settings
    from cfbench_text.meta_evaluation.command import labelset_of
    from cfbench_text.meta_evaluation.config import MetaEvaluation
    from cfbench_text.meta_evaluation.evaluate import read_labelset

    document = Document.of({"labelsets": [labelset_of(one, registry) for one in names]}, "train-judge")
    config = decode_settings(document, MetaEvaluation, "text", registry)
    return [read_labelset(one, access) for one in config.labelsets]


def _made(name: str, seed: int, registry: Registry, access: DataAccess) -> list[MadePair]:
    """Pairs made from statements of a data set: its known ones, or those that ``rules`` extracts."""
    from cfbench_core.config.component import with_defaults
    from cfbench_core.lifecycle.streams import generator
    from cfbench_text.domains import load_domain
    from cfbench_text.extractors.rules import Config as RulesConfig
    from cfbench_text.extractors.rules import Rules
    from cfbench_text.judges.made_pairs import made_pairs

    dataset: Any = with_defaults(registry.find("text", "dataset", name)).create()
    found = dataset.load(dataset.find(access)) if hasattr(dataset, "find") else dataset.load()
    rows = found.known
    if rows is None:
        extracted = Rules(RulesConfig()).extract(found.texts.tolist(), load_domain(found.domain))
        rows = [one.triplets for one in extracted]
    statements = list(dict.fromkeys(triplet for row in rows for triplet in row))
    if not statements:
        raise UserError(f"{name}: has no statements to make pairs from")
    draw = generator(seed, "judge", name)
    chosen = sorted(draw.permutation(len(statements))[:STATEMENTS].tolist())
    return made_pairs([statements[place] for place in chosen], draw)


def _store(classifier: PairClassifier, file: Path, encoder: str | None, registry: Registry) -> Path:
    """Stores the transfer where tables look for the reliability of a judge."""
    from cfbench_core.config import Document, decode_settings
    from cfbench_text.meta_evaluation.config import MetaEvaluation
    from cfbench_text.meta_evaluation.evaluate import code_commit
    from cfbench_text.meta_evaluation.reliability import store_measurements, verdict_options

    judge = {"name": "trained", "path": str(file), **({} if encoder is None else {"model": encoder})}
    document = Document.of({"labelsets": [], "judges": [judge]}, "train-judge")
    (component,) = decode_settings(document, MetaEvaluation, "text", registry).judges
    rows = [
        {
            **{name: str(row[name]) for name in ("labelset", "rating", "n")},
            **{name: f"{row[name]:.4f}" for name in ("auc", "auc_low", "auc_high")},
            "judge": component.label,
            "component": component.spec.id,
            "options": verdict_options(component),
            "metric": "StEnt-P",
            "commit": code_commit(),
        }
        for row in classifier.about["transfer"]
    ]
    return store_measurements(rows)
