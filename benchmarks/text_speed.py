"""How quick the text suite is: extraction by rules, a judge that is a model, and generation.

    python benchmarks/text_speed.py
    python benchmarks/text_speed.py --parts generation
    python benchmarks/text_speed.py --keep docs/results/text-speed

- ``extraction``: the reviews of Musical Instruments through the extractor ``rules``; limit: 2,000 a second.
- ``judge``: the same number of questions to the judge ``nli``, all of them distinct, or 1/2, 1/10, 1/100 of them, then
  the last ones once more. ``computed`` is the number of model queries. It is a BERT with random weights of two layers and
  128 dimensions, made here: what is measured is the suite.
- ``generation``: networks of the size of the stored study (untrained; PEPLER: a GPT-2 of two layers and 128 dimensions), 50
  words a text: batches of 256 with cached states of earlier words, against one text at a time with all
  computed anew for every word; limit: 10 times as many words a second. Both write the same words.

CPU seconds of one thread; ``ratio`` is to the first row of the same kind, within one process. Needs the data of the study
(``CFBENCH_DATA_DIR``) for the first part.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from results import keep

SIZE = {"length": 50, "vocabulary": 5_000, "dimensions": 128, "hidden": 256}
USERS, ITEMS, TOGETHER, ALONE = 1_429, 900, 256, 16
QUESTIONS = 4_000
SAME = ["part", "what", "how"]
"""What a row is about: one that is measured again takes the place of an older one."""


def main() -> None:
    parts = {"extraction": extraction, "judge": judge, "generation": generation}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=list(parts), default=list(parts))
    parser.add_argument("--keep", help="where to keep the table, without its ending")
    options = parser.parse_args()
    for part in options.parts:
        rows = []
        for row in parts[part]():
            rows.append({"part": part, **row})
            print(rows[-1], flush=True)
        if options.keep:
            keep(Path(options.keep), rows, SAME, f"python benchmarks/{Path(__file__).name}")


def row(
    what: str, how: str, requested: int, computed: int, seconds: float, first: float | None
) -> dict[str, Any]:
    """first: the rate per second of the row that this one is compared with."""
    rate = requested / seconds
    return {
        "what": what,
        "how": how,
        "requested": requested,
        "computed": computed,
        "cpu_seconds": round(seconds, 2),
        "per_second": round(rate),
        "ratio": round(rate / first, 1) if first else "",
    }


# Extraction


def extraction() -> Iterator[dict[str, Any]]:
    from cfbench_core.data_files import DataAccess
    from cfbench_core.registry import installed
    from cfbench_core.specs import resolve
    from cfbench_text.domains import load_domain
    from cfbench_text.extractors.atomic import Atomic
    from cfbench_text.extractors.atomic import Config as AtomicConfig
    from cfbench_text.extractors.rules import Config, Rules

    spec = installed().find("text", "dataset", "musical-instruments").spec
    data = resolve(spec.target)(resolve(spec.config)())
    reviews = data.load(data.find(DataAccess()))
    texts, domain = reviews.texts.tolist(), load_domain(reviews.domain)
    for name, extractor in (("rules", Rules(Config())), ("atomic", Atomic(AtomicConfig()))):
        extractor.extract(texts[:10], domain)
        started = time.process_time()
        found = extractor.extract(texts, domain)
        seconds = time.process_time() - started
        statements = sum(len(one.triplets) for one in found)
        yield row(name, f"reviews of Musical Instruments, {statements:,} statements", len(texts), len(texts),
                  seconds, None)  # fmt: skip


# A judge


def judge() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        model = bert(Path(folder) / "model")
        first = None
        for share in (1, 2, 10, 100):
            with answers_kept_in(Path(folder) / str(share)):
                label = "all distinct" if share == 1 else f"1/{share} distinct"
                found = row("nli", label, *requests_for(model, share), first)
                first = first or found["requested"] / found["cpu_seconds"]
                yield found
        with answers_kept_in(Path(folder) / "1"):
            yield row("nli", "all distinct, requested again", *requests_for(model, 1), first)


def bert(folder: Path) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from cfbench_text.models.tiny import tokenizer

    torch.manual_seed(0)
    labels = dict(enumerate(("entailment", "neutral", "contradiction")))
    size = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
    config = BertConfig(vocab_size=tokenizer(folder), id2label=labels, **size)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@contextmanager
def answers_kept_in(folder: Path) -> Iterator[None]:
    """Where answers of models are looked for: a cache of their own."""
    os.environ["CFBENCH_CACHE_DIR"] = str(folder / "artifacts")
    yield
    del os.environ["CFBENCH_CACHE_DIR"]


def requests_for(model: Path, share: int) -> tuple[int, int, float]:
    """Queries, those that the model computed, CPU seconds; one statement per side of a row, in both directions."""
    from cfbench_text.entailment_batches import verdicts
    from cfbench_text.judges.nli import NLI, Config
    from cfbench_text.models.tiny import WORDS
    from cfbench_text.triplets import Triplet, render

    draw = np.random.default_rng(0)
    made = [
        Triplet(" ".join(draw.choice(WORDS[:30], size=10)), "sound", "positive") for _ in range(QUESTIONS)
    ]
    rows = QUESTIONS // 2
    pairs = [made[2 * (place % (rows // share)) :][:2] for place in range(rows)]
    predicted, evidence = [(one,) for one, _ in pairs], [(other,) for _, other in pairs]
    texts, references = ([render(side) for side in sides] for sides in (predicted, evidence))
    nli, computed = NLI(Config(model=str(model), device="cpu")), 0

    def count(module: Any, given: Any, named: dict[str, Any]) -> None:
        nonlocal computed
        computed += len(named["input_ids"])

    hook = nli._pairs._loaded.model.register_forward_pre_hook(count, with_kwargs=True)
    started = time.process_time()
    verdicts(nli, {"entailment"}, predicted, evidence, texts, references)
    seconds = time.process_time() - started
    hook.remove()
    return QUESTIONS, computed, seconds


# Generation


def generation() -> Iterator[dict[str, Any]]:
    import torch

    from cfbench_text.generators.decoding import decode, likeliest
    from cfbench_text.generators.language import BEGIN, END

    torch.set_num_threads(1)
    for name, model, logits in generators():
        drawn = torch.Generator().manual_seed(1)
        users = torch.randint(1, USERS + 1, (TOGETHER,), generator=drawn)
        items = torch.randint(1, ITEMS + 1, (TOGETHER,), generator=drawn)

        def step(state: Any, words: Any, model: Any = model) -> tuple[Any, Any]:
            """Without an end, so that all texts have the same length."""
            found, state = model.step(state, words)
            found[:, END] = -torch.inf
            return found, state

        with torch.inference_mode():
            started = time.process_time()
            expected = []
            for place in range(ALONE):
                words = [BEGIN]
                for _ in range(SIZE["length"]):
                    pair = users[place : place + 1], items[place : place + 1]
                    found = logits(*pair, torch.tensor([words]))[:, -1]
                    found[:, END] = -torch.inf
                    words.append(int(likeliest(found)))
                expected.append(words[1:])
            slow = time.process_time() - started
            count = ALONE * SIZE["length"]
            yield row(name, "one text at a time, all computed anew", count, count, slow, None)
            started = time.process_time()
            written = decode(step, model.start(users, items), TOGETHER, SIZE["length"])
            quick = time.process_time() - started
        assert written[:ALONE] == expected, name
        done = TOGETHER * SIZE["length"]
        yield row(name, f"{TOGETHER} texts at once, earlier words kept", done, done, quick, count / slow)


def generators() -> Iterator[tuple[str, Any, Callable[..., Any]]]:
    """Each with its logits (B, T, V) after all words of a text at once."""
    from cfbench_text.generators.language import Vocabulary

    words = Vocabulary(tuple(f" w{place}" for place in range(SIZE["vocabulary"])))
    model = built("nrt", "NRT", words, SIZE)
    yield "nrt", model, of_nrt(model)
    model = built("att2seq", "Att2Seq", words, {"length": SIZE["length"], "dimensions": 64, "hidden": 256})
    yield "att2seq", model, of_att2seq(model)
    for name in ("peter", "cer"):
        model = built(name, name.upper(), words, SIZE)
        yield name, model, of_peter(model)
    with tempfile.TemporaryDirectory() as folder:
        gpt2(Path(folder))
        model = built("pepler", "PEPLER", None, {"length": SIZE["length"], "model": folder})
        yield "pepler", model, lambda *given: model._output(model.logits(*given))


def built(file: str, name: str, words: Any, options: dict[str, Any]) -> Any:
    import torch

    from cfbench_text.generators.neural import Encoding

    module = importlib.import_module(f"cfbench_text.generators.{file}")
    model = getattr(module, name)(module.Config(**options))
    users, items = (tuple(map(str, range(count))) for count in (USERS, ITEMS))
    torch.manual_seed(0)
    model.encoding = Encoding(model.learned_words(()) if words is None else words, users, items, 4.0, 1, 5)
    model.network = model.build(model.known).eval()
    return model


def of_nrt(model: Any) -> Callable[..., Any]:
    def logits(users: Any, items: Any, words: Any) -> Any:
        first = model.start(users, items)[None]
        return model.network["output"](model.network["gru"](model.network["word"](words), first)[0])

    return logits


def of_att2seq(model: Any) -> Callable[..., Any]:
    def logits(users: Any, items: Any, words: Any) -> Any:
        state = model.start(users, items)
        top, _ = model._lstm(model.network["word"](words), state)
        return model.network["output"](model.attended(top, state[2]))

    return logits


def of_peter(model: Any) -> Callable[..., Any]:
    from cfbench_text.generators.peter import PAIR

    def logits(users: Any, items: Any, words: Any) -> Any:
        return model.network["output"](model.hidden(users, items, words)[:, PAIR:])

    return logits


def gpt2(folder: Path) -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from cfbench_text.models.tiny import tokenizer

    torch.manual_seed(0)
    size = tokenizer(folder, special=False)
    config = GPT2Config(vocab_size=size, n_embd=128, n_layer=2, n_head=2, bos_token_id=3, eos_token_id=3)
    GPT2LMHeadModel(config).save_pretrained(folder)


if __name__ == "__main__":
    main()
