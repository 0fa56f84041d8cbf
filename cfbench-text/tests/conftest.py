"""Rows of statements with verdicts drawn at random, and where real data is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.triplets import SENTIMENTS, Triplet, render

sys.path.insert(0, str(Path(__file__).parent / "samples"))


@pytest.fixture
def drawn():
    """``drawn(rows, seed, empty)``: answers with 0 to 4 statements a side and verdicts of no judge that exists."""

    def make(rows: int = 12, seed: int = 0, empty: str = "zero") -> ObservedTexts:
        draw = np.random.default_rng(seed)

        def side():
            size = int(draw.integers(0, 5))
            return tuple(
                Triplet(f"the {topic} {place}", topic, SENTIMENTS[int(draw.integers(3))])
                for place, topic in enumerate(draw.choice(["sound", "price"], size=size).tolist())
            )

        predicted, evidence = [side() for _ in range(rows)], [side() for _ in range(rows)]
        shapes = [(len(p), len(e)) for p, e in zip(predicted, evidence, strict=True)]
        return ObservedTexts(
            [render(one) for one in predicted],
            [render(one) for one in evidence],
            predicted,
            evidence,
            load_domain("toy-reviews"),
            empty,
            Verdicts(
                [draw.dirichlet(np.ones(3), size=(n, m)).reshape(n, m, 3) for n, m in shapes],
                [draw.dirichlet(np.ones(3), size=(m, n)).reshape(m, n, 3) for n, m in shapes],
                [draw.random(n) for n, _ in shapes],
                [draw.random(m) for _, m in shapes],
            ),
        )

    return make


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with the text data sets; the test is skipped where there is none."""
    places = [os.environ.get("CFBENCH_DATA_DIR"), Path(__file__).parents[3] / "shared" / "data"]
    for place in places:
        if place and (Path(place) / "text").is_dir():
            return Path(place) / "text"
    pytest.skip("the text data sets are not here (CFBENCH_DATA_DIR)")


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """``serve(reply)``: a server of fake_endpoint, and a cache of its own."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    from fake_endpoint import Server

    running = []

    def start(reply):
        running.append(Server(reply))
        return running[-1]

    yield start
    for one in running:
        one.close()
