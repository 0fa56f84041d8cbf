"""Fitting without epochs: each candidate setting of the options is solved, and the best on validation data is taken."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.contracts import Progress, Streams
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.training import CRITERION, State, sample_of
from cfbench_recsys.splits import Holdout, Split


class Candidate(NamedTuple):
    """A solution: the options that were tried, what was learned, and how it scores profiles."""

    options: Mapping[str, Any]
    state: State
    score: Callable[[scipy.sparse.csr_matrix], FloatArray]


def fit_best(
    name: str, split: Split, generator: Streams, report: Progress, candidates: Iterable[Candidate], total: int
) -> tuple[State, dict[str, Any]]:
    """The state of the first candidate with the best NDCG@10 on validation data, and a summary of the search (JSON).

    Args:
        name: of the recommender; it names the stream from which validation users are drawn.
        candidates: solved one after the other, ``total`` of them.
    """
    started = time.perf_counter()
    validation = sample_of(split.validation, generator(name, "validation"))
    history: list[dict[str, Any]] = []
    best: tuple[float, Candidate, dict[str, float]] | None = None
    for candidate in candidates:
        quality = ranking_quality(functools.partial(_scores, candidate, validation), validation)
        history.append({**candidate.options, **quality})
        if best is None or quality.get(CRITERION, 0.0) > best[0]:
            best = (quality.get(CRITERION, 0.0), candidate, quality)
        del candidate  # so that the next one is solved in the memory that it had
        report(len(history), total)
    assert best is not None, "there is at least one candidate"
    _, chosen, quality = best
    summary = {
        **chosen.options,
        "validation": quality,
        "elapsed_seconds": time.perf_counter() - started,
        "history": history,
    }
    return chosen.state, summary


def _scores(candidate: Candidate, holdout: Holdout, rows: IntArray) -> FloatArray:
    return candidate.score(holdout.inputs[rows])


def ignore_progress(done: int, total: int, /) -> None:
    """For a caller who shows no progress."""
