"""How far EASE of a low rank is from EASE: quality and scores on held-out profiles.

    python benchmarks/ease_rank.py debian-python ml-1m --store

Both at the ``l2`` that validation selects for EASE. The error of the scores is the root of the mean squared difference over
all test users and items, divided by the standard deviation of EASE's scores; ``same_list`` is the mean share of the items
in both lists of 10.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
RESULTS = HERE.parent / "docs" / "results" / "ease-rank"
RANKS = (16, 64, 128, 256, 512)
SAME = ("data", "model")


def measured(data: str) -> Iterator[dict[str, Any]]:
    from functools import partial

    from cfbench_core.api import prepare
    from cfbench_core.data_files import DataAccess
    from cfbench_core.lifecycle.streams import generator
    from cfbench_recsys.quality import ranking_quality
    from cfbench_recsys.ranking import top_k
    from cfbench_recsys.recommenders.ease import EASE, Config
    from cfbench_recsys.splits import SplitConfig, make_split

    explained = {"k": 5, "level": "item", "format": "implicit", "users": 10}
    study = {"suite": "recsys", "data": data, "recommenders": ["ease"], "explainers": ["random"]}
    source = prepare({**study, "protocol": explained}).config.data[0].create()
    interactions = source.load(source.find(DataAccess()))
    split = make_split(interactions, SplitConfig(), generator(0, "split", interactions.name))
    streams = partial(generator, 0, "fit", interactions.name)
    items, test = split.train.shape[1], split.test
    exact: Any = None
    l2 = None
    for rank in (None, *RANKS):
        if rank is not None and rank >= items:
            continue
        model = EASE(Config(l2=l2, rank=rank))
        began = time.process_time()
        summary = model.fit(split, streams)
        seconds = time.process_time() - began
        if rank is None:
            # once more with the selected penalty alone, so that times are those of one solution each
            l2, began = summary["l2"], time.process_time()
            model = EASE(Config(l2=l2))
            model.fit(split, streams)
            seconds = time.process_time() - began
        quality = ranking_quality(lambda rows, fitted=model: fitted.score_profiles(test.inputs[rows]), test)
        scores = model.score_profiles(test.inputs)
        exact = scores if exact is None else exact
        lists = [_lists(found, test.inputs, top_k) for found in (exact, scores)]
        same = np.mean([len(np.intersect1d(*pair)) / 10 for pair in zip(*lists, strict=True)])
        yield {
            "data": data,
            "model": "ease" if rank is None else f"ease, rank {rank}",
            "items": items,
            "l2": l2,
            "hr10": round(quality["HR@10"], 4),
            "ndcg10": round(quality["NDCG@10"], 4),
            "score_error": round(float(np.sqrt(np.mean((scores - exact) ** 2)) / exact.std()), 4),
            "same_list": round(float(same), 3),
            "fit_s": round(seconds, 2),
            "model_mb": round(sum(array.nbytes for array in model.state().values()) / 1e6, 2),
        }


def _lists(scores: np.ndarray, inputs: Any, top_k: Any) -> np.ndarray:
    """(users, 10) recommended items."""
    lengths = np.diff(inputs.indptr)
    history = np.zeros((len(scores), max(1, lengths.max(initial=0))), dtype=np.int64)
    padding = np.arange(history.shape[1]) >= lengths[:, None]
    history[~padding] = inputs.indices
    found: np.ndarray = top_k(scores, history, padding, 10)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--store", action="store_true", help="store the rows in docs/results/ease-rank.csv")
    given = parser.parse_args()
    rows = [row for data in given.data for row in measured(data)]
    for row in rows:
        print(row)
    if given.store:
        from results import keep

        keep(RESULTS, rows, SAME, f"python benchmarks/ease_rank.py {' '.join(given.data)} --store")


if __name__ == "__main__":
    main()
