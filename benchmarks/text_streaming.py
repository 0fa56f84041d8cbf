"""What the text suite needs in time and memory by the number of rows: whole runs on made-up reviews.

    python benchmarks/text_streaming.py
    python benchmarks/text_streaming.py --forms evaluate --rows 400 40000 --executors process
    python benchmarks/text_streaming.py --keep docs/results/text-streaming

Two forms. ``evaluate``: every row has a text that is external (``explained: true``), which is scored together with
the calibration rows. ``run``: ten times as many reviews are divided per user, so that the rows are a tenth of them,
and the controls learn from the rest. Statements are drawn at random from the keywords of a domain; extractor by rules,
judge of words, all metrics that need no model. One worker and one thread, each run a process of its own with an empty
cache. CPU seconds of the whole, its reports among it; the peak memory of the worker while it computed a piece of work,
by kind of work, in MB; that of the main process, which puts the tables and the report together.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from results import keep

ROWS = [400, 4_000, 40_000]
REVIEWS_OF_A_USER = 10
DOMAIN = "musical-instruments"
SAME = ["form", "executor", "rows"]
KINDS = {
    "data": "data",
    "statements": "statements",
    "texts": "imported",
    "model": "model",
    "explanations": "explanations",
    "statements of texts": "read",
    "scores": "scores",
}
"""Kinds of work, and what their columns are called."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--forms", nargs="+", choices=["evaluate", "run"], default=["evaluate", "run"])
    parser.add_argument("--executors", nargs="+", default=["process", "inline"])
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--keep", help="where to keep the table, without its ending")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_run(Path(options.one[0]), options.one[1])))
        return
    for form in options.forms:
        for executor in options.executors:
            for rows in options.rows:
                found = measured(form, executor, rows)
                print(found, flush=True)
                if options.keep:
                    keep(Path(options.keep), [found], SAME, f"python benchmarks/{Path(__file__).name}")


def measured(form: str, executor: str, rows: int) -> dict[str, Any]:
    """The row of the table for one run."""
    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder), form, executor, rows)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "CFBENCH_CACHE_DIR": f"{folder}/cache"}
        command = [sys.executable, __file__, "--one", folder, form]
        finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    found = json.loads(finished.stdout.splitlines()[-1])
    rate = round(1000 * found["cpu_seconds"] / rows, 2)
    return {"form": form, "executor": executor, "rows": rows, "ms_per_row": rate, **found}


def configure(folder: Path, form: str, executor: str, rows: int) -> None:
    """Writes the reviews, for ``evaluate`` the texts, and the configuration."""
    explained = form == "evaluate"
    with (folder / "reviews.jsonl").open("w") as reviews, (folder / "mine.jsonl").open("w") as texts:
        for review, text in made_up(rows if explained else rows * REVIEWS_OF_A_USER, explained):
            reviews.write(json.dumps(review) + "\n")
            texts.write(json.dumps({"user": review["user"], "item": review["item"], "text": text}) + "\n")
    data = {
        "name": "reviews",
        "path": str(folder / "reviews.jsonl"),
        "domain": DOMAIN,
        "explained": explained,
    }
    controls = ["reference"] if explained else ["item-review", {"name": "most-frequent", "of": "item"}]
    document = {
        "suite": "text",
        "executor": executor,
        "workers": 1,
        "data": [data],
        "extractor": "rules",
        "generators": controls,
        "judges": ["overlap"],
    }
    (folder / "study.yaml").write_text(json.dumps(document))


def made_up(rows: int, every_user_once: bool) -> Iterator[tuple[dict[str, Any], str]]:
    """Reviews and texts, each a paragraph of one to six statements; about half of a text stands in the review."""
    from cfbench_text.domains import load_domain
    from cfbench_text.triplets import SENTIMENTS, Triplet, render

    draw = np.random.default_rng(0)
    topics = list(load_domain(DOMAIN).topics.values())
    words = [f"word{place}" for place in range(20_000)]

    def statement() -> Triplet:
        topic = topics[int(draw.integers(len(topics)))]
        keyword = topic.keywords[int(draw.integers(len(topic.keywords)))]
        others = [words[int(place)] for place in draw.zipf(1.3, size=3) % len(words)]
        return Triplet(f"the {keyword} is {' '.join(others)}", topic.name, SENTIMENTS[int(draw.integers(3))])

    for row in range(rows):
        true_statements = [statement() for _ in range(int(draw.integers(1, 7)))]
        user = row if every_user_once else row // REVIEWS_OF_A_USER
        review = {
            "user": f"U{user:07d}",
            "item": f"I{int(draw.integers(200)):05d}",
            "text": render(true_statements),
            "rating": int(draw.integers(1, 6)),
            "time": 1_400_000_000 + row,
        }
        written = [one if draw.random() < 0.5 else statement() for one in true_statements]
        yield review, render(written)


def one_run(folder: Path, form: str) -> dict[str, Any]:
    """Runs the configuration in this process (its workers are others) and reports time and memory."""
    from cfbench_core import api

    texts = folder / "mine.jsonl" if form == "evaluate" else None
    run = api.run(folder / "study.yaml", explanations=texts, out=folder / "run")
    bad = [cell for cell in run.cells() if not cell.done]
    if bad:
        sys.exit(f"{bad[0].id}: {bad[0].reason}")
    peaks: dict[str, float] = {}
    for outcome in run.outcomes:
        name = KINDS.get(outcome["kind"])
        if name is not None:
            peaks[name] = max(peaks.get(name, 0.0), outcome["peak_memory_bytes"] / 2**20)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    main_memory = used[0].ru_maxrss / 1024
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    return {
        "cpu_seconds": round(seconds, 1),
        **{f"{name}_mb": round(peaks[name]) if name in peaks else "" for name in KINDS.values()},
        "main_mb": round(main_memory),
    }


if __name__ == "__main__":
    main()
