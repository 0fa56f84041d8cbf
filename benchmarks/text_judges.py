"""Judges that need no large model against labels by people, across data sets: which of them transfer?

    pip install 'cfbench-text[train]'
    python benchmarks/text_judges.py --keep docs/results/text-judges

Needs ``text`` under CFBENCH_DATA_DIR. Each judge scores the texts of each label set: ``trained`` with the weights in the
package (learned from made pairs, without labels), trained on one label set, and trained on all others. A label set never
scores a judge that was trained on it, except SICK, of which one part trains and another tests. AUC is that of the mean
probability of entailment (StEnt-P), ``decisions`` that of the share of entailed sentences (StEnt-bin-P), both by
sentence; ``calibration_error`` is the expected calibration error of the former.

``xrec`` has labels that are made: a text of XRec is right for the reference of its own row and wrong for that of another.
This asks whether a text is about the row, not whether it is true.

The rows ``gates`` say what share of the pairs of statements that ``overlap`` finds alike (at least 0.5, or 0.6) is not
entailed, because topics or sentiments differ: before, and with the exception for near-identical statements. The
statements are those of all pairs of up to five reviews of each musical instrument.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import pandas as pd
from results import keep

from cfbench_core.config import Document, decode_settings
from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_core.registry import installed
from cfbench_text.domains import load_domain
from cfbench_text.extractors.rules import Config as RulesConfig
from cfbench_text.extractors.rules import Rules
from cfbench_text.judges import trained as trained_module
from cfbench_text.judges.base import CONTRADICTION
from cfbench_text.judges.judge_training import SentencePairs, calibration_error, sentence_pairs
from cfbench_text.judges.overlap import Overlap
from cfbench_text.judges.pair_classifier import PairClassifier, fit, read
from cfbench_text.judges.similarity import Config as SimilarityConfig
from cfbench_text.judges.similarity import Similarity
from cfbench_text.judges.trained import SHIPPED, Config
from cfbench_text.meta_evaluation.agreement import agreement
from cfbench_text.meta_evaluation.config import MetaEvaluation
from cfbench_text.meta_evaluation.evaluate import read_labelset
from cfbench_text.meta_evaluation.labelled import LabelledTexts, labelled
from cfbench_text.metrics.stent_bin import entailed
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import PlainStatement, Triplet

LABELSETS = [
    {"name": "sick", "part": "train", "label": "sick-train"},
    "sick",
    "topical-chat",
    "qags-cnn",
    "summeval",
    {"name": "summeval", "against": "reference", "label": "summeval-human-summary"},
]
TRAINING = ("sick-train", "topical-chat", "qags-cnn", "summeval")
GROUPS = {"sick-train": "sick", "summeval-human-summary": "summeval"}
"""Label sets with the same texts, or of the same corpus."""
XREC_ROWS = 500
REVIEWS = 5
"""Of each musical instrument."""
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    folder = Path(os.environ.get("CFBENCH_DATA_DIR", "")) / "text"
    if not folder.is_dir():
        sys.exit("needs text under CFBENCH_DATA_DIR")
    rows = gates(folder)
    document = Document.of({"labelsets": LABELSETS}, "text_judges")
    config = decode_settings(document, MetaEvaluation, "text", installed())
    texts = [read_labelset(one, DataAccess(offline=True)) for one in config.labelsets]
    found = {}
    for one in [*texts, *(xrec(folder, name) for name in ("amazon", "google"))]:
        found[one.name] = sentence_pairs(one, Config())
        print(one.name, found[one.name].features.shape, flush=True)
    for name, pairs in found.items():
        if name != "sick-train":
            rows += of_labelset(name, pairs, found)
    print(pd.DataFrame(rows).to_string())
    if arguments.keep:
        rows = [{"trained_on": "", "gates": "", "similarity": np.nan, **row} for row in rows]
        same = ["table", "labelset", "judge", "trained_on", "gates", "similarity"]
        keep(arguments.keep, rows, same, "python benchmarks/text_judges.py --keep docs/results/text-judges")


def of_labelset(name: str, pairs: SentencePairs, found: dict[str, SentencePairs]) -> Iterator[Row]:
    for judge in (Overlap(), Similarity(SimilarityConfig())):
        judge.prepare(list(dict.fromkeys(premise for premise, _ in pairs.pairs)))
        triplets = [(PlainStatement(one), PlainStatement(other)) for one, other in pairs.pairs]
        yield measured(type(judge).__name__.lower(), "", pairs, judge.entailment(triplets))
    shipped = read(Path(trained_module.__file__).with_name(SHIPPED))
    for label, classifier in {"made pairs": shipped, **dict(trainings(name, found))}.items():
        who = f"trained ({'all others' if ' + ' in label else label})"
        yield measured(who, label, pairs, classifier.probabilities(pairs.features))


def trainings(held: str, found: dict[str, SentencePairs]) -> Iterator[tuple[str, PairClassifier]]:
    """Classifiers of one label set, and of all that are not the one that is held out."""
    sets = {name: found[name].training() for name in TRAINING}
    for name, one in sets.items():
        # The parts of SICK are different texts, so one of them may test the other.
        if name == "sick-train" or GROUPS.get(held, held) != name:
            yield name, fit([one])
    others = [name for name in TRAINING if GROUPS.get(name, name) != GROUPS.get(held, held)]
    yield " + ".join(others), fit([sets[name] for name in others])


def measured(judge: str, trained_on: str, pairs: SentencePairs, probabilities: FloatArray) -> Row:
    texts = pairs.texts
    scores, decisions = pairs.scores(probabilities[:, 0]), pairs.scores(entailed(probabilities))
    row: Row = {"table": "judges", "labelset": texts.name, "judge": judge, "trained_on": trained_on}
    for name, values in (("auc", scores), ("decisions", decisions)):
        auc = agreement(values, texts.labels, texts.good, texts.documents).auc
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), auc, strict=True))
    known = int(np.isfinite(scores).sum())
    return {**row, "n": known, "calibration_error": calibration_error(scores, texts.good)}


def xrec(folder: Path, name: str) -> LabelledTexts:
    """Texts of XRec with the reference of their own row, and of another row."""
    path = folder / "xrec_outputs" / f"{name}_test_outputs.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        written = [json.loads(line) for line in file]
    draw = generator("text_judges", name)
    chosen = [written[place] for place in draw.permutation(len(written))[:XREC_ROWS].tolist()]
    others = [*chosen[1:], chosen[0]]
    rows = [(one["prediction"], one["reference"], 1.0) for one in chosen]
    rows += [(one["prediction"], other["reference"], 0.0) for one, other in zip(chosen, others, strict=True)]
    found = labelled(f"xrec-{name}", "own row", rows, [*range(len(chosen))] * 2)
    return replace(found, rule="the reference of its own row")


def gates(folder: Path) -> list[Row]:
    path = folder / "musical_instruments" / "reviews_Musical_Instruments_5.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        reviews = [json.loads(line) for line in file]
    by_item: dict[str, list[str]] = {}
    for review in reviews:
        by_item.setdefault(review["asin"], []).append(review["reviewText"])
    draw = generator("text_judges", "gates")
    texts = [
        [of_item[place] for place in draw.permutation(len(of_item))[:REVIEWS].tolist()]
        for of_item in by_item.values()
    ]
    extract = Rules(RulesConfig()).extract
    domain = load_domain("musical-instruments")
    pairs: list[tuple[Triplet, Triplet]] = []
    for of_item in texts:
        triplets = [one.triplets for one in extract(of_item, domain)]
        for said, other in itertools.permutations(triplets, 2):
            pairs += [(one, two) for one in said for two in other]
    judge = Overlap()
    judge.prepare([one.statement for pair in pairs for one in pair])
    alike = judge.similarities([(one.statement, other.statement) for one, other in pairs])
    near = judge.near_identical
    found = []
    for gates, limit in (("before", 2.0), ("after", near)):
        judge.near_identical = limit  # type: ignore[misc]
        verdicts = judge.entailment(pairs)
        for level in (0.5, near):
            some = verdicts[alike >= level]
            found.append(
                {
                    "table": "gates",
                    "labelset": "musical-instruments",
                    "judge": "overlap",
                    "gates": gates,
                    "similarity": level,
                    "n": len(some),
                    "removed": float((entailed(some) == 0).mean()),
                    "contradicted": float((some[:, CONTRADICTION] >= 0.5).mean()),
                }
            )
            print(found[-1], flush=True)
    return found


if __name__ == "__main__":
    main()
