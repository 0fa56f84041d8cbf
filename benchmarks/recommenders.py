"""Trains recommenders one after the other, each in a process of its own, and keeps quality, time and memory.

    python benchmarks/recommenders.py docs/results/recommenders ml-1m amazon-fashion --models mf vae ease

Writes NAME.csv (a row per data set and recommender: quality on the test part of the default split, seconds of
training, epochs, peak resident memory) and NAME.json (command, commit, hardware). A preset that is named like
the data set is used where the recommender has one. Existing rows are retained, unless their
recommender is measured again. One thread.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from results import keep

KEPT = ("HR@10", "NDCG@10", "Recall@10", "Recall@20")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--models", nargs="+", default=None, help="all recommenders, if none are named")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one:
        print(json.dumps(measure(chosen.datasets[0], chosen.one)))
        return
    models = chosen.models or all_models()
    for dataset in chosen.datasets:
        for model in models:
            row = in_a_process(chosen.name, dataset, model)
            keep(
                Path(chosen.name),
                [row],
                ["dataset", "model"],
                f"python benchmarks/recommenders.py {' '.join(arguments)}",
            )


def all_models() -> list[str]:
    from cfbench_core.registry import installed

    return installed().names("recsys", "recommender")


def in_a_process(name: str, dataset: str, model: str) -> dict[str, Any]:
    command = [sys.executable, __file__, name, dataset, "--one", model]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    completed = subprocess.run(command, capture_output=True, text=True, env=environment)
    if completed.returncode:
        sys.exit(f"{model} on {dataset}: {completed.stderr.strip().splitlines()[-1]}")
    row: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    print(row, flush=True)
    return row


def measure(dataset: str, model: str) -> dict[str, Any]:
    """Reads and divides the data, then trains, with the random streams of a run with seed 0."""
    import psutil
    import torch

    from cfbench_core.api import prepare
    from cfbench_core.config import create
    from cfbench_core.data_files import DataAccess
    from cfbench_core.lifecycle.streams import generator
    from cfbench_recsys.quality import evaluate
    from cfbench_recsys.splits import SplitConfig, make_split

    torch.set_num_threads(1)
    preset = preset_for(model, dataset)
    prepared = prepare(
        {
            "suite": "recsys",
            "data": dataset,
            "recommenders": [{"name": model, "preset": preset} if preset else model],
            "explainers": ["random"],
            "protocol": {"k": 5, "level": "item", "format": "implicit", "users": 10},
        }
    )
    stage = prepared.plan.cells[0].stages["model"]
    source = prepared.config.data[0].create()
    interactions = source.load(source.find(DataAccess()))
    split = make_split(interactions, SplitConfig(), generator(0, "split", interactions.name))

    recommender = create(stage.parameters["model"])
    before = psutil.Process().memory_info().rss
    started, cpu = time.perf_counter(), time.process_time()
    summary = recommender.fit(
        split, partial(generator, 0, "fit", interactions.name), lambda done, total: None
    )
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    quality = evaluate(recommender, split.test, split.profiles)
    learned = summary or {}
    return {
        "dataset": dataset,
        "model": model,
        "preset": preset,
        **{name: round(quality[name], 4) for name in KEPT},
        "cpu_seconds": round(cpu_seconds, 1),
        "train_seconds": round(seconds, 1),
        "epochs": learned.get("epochs", ""),
        "best_epoch": learned.get("best_epoch", ""),
        "peak_memory_mb": round(peak / 2**20),
        "memory_before_mb": round(before / 2**20),
    }


def preset_for(model: str, dataset: str) -> str:
    from cfbench_core.presets import presets_of
    from cfbench_core.registry import installed

    return dataset if dataset in presets_of(installed().find("recsys", "recommender", model).spec) else ""


if __name__ == "__main__":
    main(sys.argv[1:])
