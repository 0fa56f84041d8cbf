"""Generators with ``variant: paper`` next to the networks that their authors published, with the same weights.

    git clone https://github.com/lileipisces/NRT
    git clone https://github.com/lileipisces/PETER
    git clone https://github.com/JMRaczynski/PETER CER
    git clone https://github.com/lileipisces/PEPLER
    git clone https://github.com/HKUDS/XRec
    python benchmarks/authors_generators.py --nrt NRT --peter PETER --cer CER --pepler PEPLER --xrec XRec \
        --keep docs/results/authors-generators

The authors' networks are imported from the checkouts; their weights are copied from ours. Rows: a generator; columns: the
largest absolute difference, over random batches of ``--rows`` rows, of the predicted ratings, of the logarithms of the
probabilities of all words, of the training loss, and of the gradients of all weights; with the authors' settings, without
dropout. PEPLER has a small GPT-2 with random weights. Of XRec, whose language model needs a GPU, these are the vectors of
users and items (instead of ratings), the adapted vectors (instead of probabilities), and the loss of the vectors.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from results import keep
from torch import nn

from cfbench_text.generators import cer, nrt, pepler, peter
from cfbench_text.generators.batches import Batch
from cfbench_text.generators.language import BEGIN, END, PAD, SPECIAL, UNKNOWN, Vocabulary
from cfbench_text.generators.neural import Encoding
from cfbench_text.generators.pretrained import Tokens

LENGTH, USERS, ITEMS, WORDS = 15, 40, 30, 500


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    compared = {"nrt": of_nrt, "peter": of_peter, "cer": of_cer, "pepler": of_pepler, "xrec": of_xrec}
    for name in compared:
        parser.add_argument(f"--{name}", type=Path, help=f"a checkout of the repository of {name}")
    parser.add_argument("--rows", type=int, default=64, help="of a batch")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="where to keep the table, without its ending")
    options = parser.parse_args()
    rows = []
    for name, compare in compared.items():
        if getattr(options, name) is None:
            continue
        torch.manual_seed(0)
        differences = np.array(
            [compare(getattr(options, name), batch(seed, options.rows)) for seed in range(options.batches)]
        )
        columns = ("rating", "log_probabilities", "loss", "gradients")
        found = dict(zip(columns, [float(f"{value:.2g}") for value in differences.max(axis=0)], strict=True))
        rows.append({"generator": name, "batches": options.batches, "rows": options.rows, **found})
        print(rows[-1], flush=True)
    if options.keep:
        given = " ".join(f"--{name} {name.upper()}" for name in compared if getattr(options, name))
        command = f"python benchmarks/authors_generators.py {given} --rows {options.rows}"
        keep(options.keep, rows, ["generator"], command)


def batch(seed: int, rows: int) -> Batch:
    """Texts of 1 to LENGTH words, the first one of the full length."""
    draw = np.random.default_rng(seed)
    targets = np.full((rows, LENGTH + 1), PAD)
    for row, length in enumerate([LENGTH, *draw.integers(1, LENGTH + 1, rows - 1)]):
        targets[row, :length] = draw.integers(SPECIAL - 1, SPECIAL + WORDS, length)
        targets[row, length] = END
    words = np.roll(targets, 1, axis=1)
    words[:, 0] = BEGIN
    arrays = (
        draw.integers(1, USERS + 1, rows),
        draw.integers(1, ITEMS + 1, rows),
        draw.integers(1, 6, rows).astype(np.float32),
    )
    return Batch(*map(torch.from_numpy, (*arrays, words, targets, targets != PAD)))


def ours(maker: Any, config: Any) -> Any:
    """A generator with random weights that has not been fitted."""
    words = Vocabulary(tuple(f" w{number}" for number in range(WORDS)))
    model = maker(config)
    model.encoding = Encoding(words, tuple(map(str, range(USERS))), tuple(map(str, range(ITEMS))), 3.0, 1, 5)
    model.network = model.build(model.encoding)
    return model.network.eval() and model


def authors(checkout: Path, module: str) -> Any:
    """A module of a checkout; each checkout has a ``module.py`` of its own."""
    for name in ("module", "peterr", "utils", "utils.parse", "models", "models.lightgcn", "models.explainer"):
        sys.modules.pop(name, None)
    sys.path.insert(0, str(checkout))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.pop(0)


def of_nrt(checkout: Path, rows: Batch) -> list[float]:
    model = ours(nrt.NRT, nrt.Config(variant="paper", length=LENGTH, device="cpu"))
    own, given = model.network, model.config.paper
    theirs = authors(checkout, "module").NRT(
        USERS + 1, ITEMS + 1, SPECIAL + WORDS, given.dimensions, given.hidden, given.layers
    )
    encoder, decoder = theirs.encoder, theirs.decoder
    rating = [layer for layer in own["rating"] if isinstance(layer, nn.Linear)]
    first = torch.cat([own["first"].weight, own["first of rating"].weight.T], dim=1)
    pairs = [
        (encoder.user_embeddings.weight, own["user"].weight),
        (encoder.item_embeddings.weight, own["item"].weight),
        *both(encoder.first_layer, rating[0]),
        *both(encoder.last_layer, rating[-1]),
        *(
            pair
            for layer, mine in zip(encoder.layers, rating[1:-1], strict=True)
            for pair in both(layer, mine)
        ),
        (encoder.encoder.bias, own["first"].bias),
        (decoder.word_embeddings.weight, own["word"].weight),
        *zip(decoder.gru.parameters(), own["gru"].parameters(), strict=True),
        *both(decoder.linear, own["output"]),
    ]
    copy(pairs)
    encoder.encoder.weight.data.copy_(first)
    ratings, log_probabilities = theirs(rows.users, rows.items, rows.words)
    nll = nn.NLLLoss(ignore_index=PAD)(log_probabilities.view(-1, SPECIAL + WORDS), rows.targets.view(-1))
    loss = nll + nn.MSELoss()(ratings, rows.ratings)
    state = model.start(rows.users, rows.items)
    hidden, _ = own["gru"](own["word"](rows.words), state[None])
    mine = own["output"](hidden).log_softmax(dim=-1)
    return differences(model, rows, (ratings, log_probabilities, loss), mine, pairs)


def of_peter(checkout: Path, rows: Batch) -> list[float]:
    model = ours(peter.PETER, peter.Config(variant="paper", length=LENGTH, device="cpu"))
    theirs = transformer(authors(checkout, "module").PETER, model)
    pairs = [*shared(theirs, model), *mlp(theirs.recommender, model.network["rating"])]
    copy(pairs)
    words = rows.words.T
    log_words, log_bag, rating, _ = theirs(rows.users, rows.items, words)
    loss = of_texts(log_words, log_bag, rows) + 0.1 * nn.MSELoss()(rating, rows.ratings)
    mine = model.network["output"](model.hidden_of(rows)[:, 2:]).log_softmax(dim=-1)
    return differences(model, rows, (rating, log_words.transpose(0, 1), loss), mine, pairs)


def of_cer(checkout: Path, rows: Batch) -> list[float]:
    model = ours(cer.CER, cer.Config(variant="paper", length=LENGTH, device="cpu"))
    theirs = transformer(authors(checkout, "peterr").PETERR, model)
    pairs = [
        *shared(theirs, model),
        *mlp(theirs.original_recommender, model.network["rating"]),
        *mlp(theirs.additional_recommender, model.network["rating of text"]),
    ]
    copy(pairs)
    log_words, log_bag, (rating, of_text), _ = theirs(rows.users, rows.items, rows.words.T)
    of_ratings = nn.MSELoss()(rating, rows.ratings) + nn.MSELoss()(of_text, rating)
    loss = of_texts(log_words, log_bag, rows) + 0.1 * of_ratings
    mine = model.network["output"](model.hidden_of(rows)[:, 2:]).log_softmax(dim=-1)
    return differences(model, rows, (rating, log_words.transpose(0, 1), loss), mine, pairs)


def of_pepler(checkout: Path, rows: Batch) -> list[float]:
    from transformers import GPT2Config, GPT2LMHeadModel

    known = [
        one.where(one != UNKNOWN, SPECIAL) for one in (rows.words, rows.targets)
    ]  # a tokenizer knows all words
    rows = replace(rows, words=known[0], targets=known[1])
    words = Tokens(SimpleNamespace(eos_token_id=WORDS))
    settings = GPT2Config(
        vocab_size=WORDS + 1, n_embd=64, n_layer=2, n_head=2, n_positions=64, initializer_range=0.2
    )
    theirs = authors(checkout, "module").RecReg(settings).eval()
    theirs.init_prompt(USERS + 1, ITEMS + 1, use_mf=False)
    model = pepler.PEPLER(pepler.Config(variant="paper", model="small", device="cpu"))
    model.encoding = Encoding(words, tuple(map(str, range(USERS))), tuple(map(str, range(ITEMS))), 3.0, 1, 5)
    model._loaded = lambda: SimpleNamespace(model=GPT2LMHeadModel(settings))  # type: ignore[method-assign]
    model.network = model.build(model.encoding).eval()
    own, language = model.network, dict(model.network["model"].named_parameters())
    rating = [layer for layer in own["rating"] if isinstance(layer, nn.Linear)]
    pairs = [
        (theirs.user_embeddings.weight, own["user"].weight),
        (theirs.item_embeddings.weight, own["item"].weight),
        *both(theirs.rec.first_layer, rating[0]),
        *both(theirs.rec.last_layer, rating[-1]),
        *(pair for two in zip(theirs.rec.layers, rating[1:-1], strict=True) for pair in both(*two)),
        *((one, language[name]) for name, one in theirs.transformer.named_parameters(prefix="transformer")),
    ]
    copy(pairs)
    text = (rows.words - SPECIAL).where(rows.words >= SPECIAL, WORDS)
    last = (rows.targets != PAD).sum(dim=1)
    seq = torch.cat([text, torch.full((len(text), 1), WORDS)], dim=1)
    seq[torch.arange(len(text)), last] = WORDS
    mask = (torch.arange(seq.shape[1]) <= last[:, None]).long()
    found, ratings = theirs(rows.users, rows.items, seq, mask)
    loss = found.loss + 0.01 * nn.MSELoss()(ratings, rows.ratings)
    mine = model._logits(rows.users, rows.items, rows.words)[:, 2:].log_softmax(dim=-1)
    log_probabilities = found.logits[:, 2:-1].log_softmax(dim=-1)
    return differences(model, rows, (ratings, log_probabilities, loss), mine, pairs)


def of_xrec(checkout: Path, rows: Batch) -> list[float]:
    """Vectors, adapted vectors, loss of the vectors and its gradients."""
    from cfbench_text.generators.collaborative import Seen, Settings, graph_of, propagated, step_loss
    from cfbench_text.generators.experts import adapted, mixture

    arguments, sys.argv = sys.argv, sys.argv[:1]
    on_gpu, torch.Tensor.cuda = torch.Tensor.cuda, lambda one: one  # type: ignore[method-assign,assignment]
    try:
        pairs = torch.stack([rows.users, rows.items], dim=1).numpy() - 1
        seen = Seen.of(pairs, USERS, ITEMS)
        graph = graph_of(seen, "cpu")
        settings = Settings(64, 4, 1, 1e-3, 10, 1e-6, published=True)
        theirs = authors(checkout / "encoder", "models.lightgcn").LightGCN(USERS, ITEMS, graph)
        first = torch.cat([theirs.user_embeds, theirs.item_embeds]).detach().requires_grad_()
        others = np.random.default_rng(0).integers(ITEMS, size=len(pairs))
        users, items = theirs.forward(graph)
        loss = theirs.cal_loss((pairs[:, 0], pairs[:, 1], others))
        own = step_loss(first, graph, seen, pairs, others, settings)
        loss.backward()
        own.backward()
        # Their Llama needs an old version of transformers; the adapter does not use it.
        sys.modules["models.modeling_explainer"] = SimpleNamespace(LlamaForCausalLM=None)  # type: ignore[assignment]
        adapter = authors(checkout / "explainer", "models.explainer").MoEAdaptorLayer(8, [64, 96], 0.2).eval()
    finally:
        sys.argv, torch.Tensor.cuda = arguments, on_gpu  # type: ignore[method-assign]
    weights = mixture(64, 96, 8).eval()
    for number, expert in enumerate(adapter.experts):
        nn.init.normal_(expert.bias)
        weights["offset"].data[number] = expert.bias.data
        weights["weight"].data[number] = expert.lin.weight.data.T
    for name, theirs_too in (("gate", adapter.w_gate), ("noise", adapter.w_noise)):
        nn.init.normal_(theirs_too)
        weights[name].data.copy_(theirs_too.data)
    x = torch.randn(len(pairs), 64)
    gradient = torch.cat([theirs.user_embeds.grad, theirs.item_embeds.grad])
    vectors = torch.cat([users, items]) - propagated(graph, first, 4, published=True)
    return [
        float(vectors.abs().max()),
        float((adapter(x) - adapted(weights, x, 0.2)).abs().max()),
        abs(float(loss) - float(own)),
        float((gradient - first.grad).abs().max()),
    ]


def transformer(made: Any, model: Any) -> Any:
    given = model.config.paper
    sizes = (given.dimensions, given.heads, given.hidden, given.layers)
    return made(True, 2, LENGTH + 1, PAD, USERS + 1, ITEMS + 1, SPECIAL + WORDS, *sizes, 0.0)


def of_texts(log_words: Any, log_bag: Any, rows: Batch) -> Any:
    """The authors' losses of the words and of the bag of words, from (T, B, V) and (B, V)."""
    nll = nn.NLLLoss(ignore_index=PAD)
    bag = log_bag.unsqueeze(0).repeat((LENGTH, 1, 1)).view(-1, SPECIAL + WORDS)
    of_words = nll(log_words.reshape(-1, SPECIAL + WORDS), rows.targets.T.reshape(-1))
    return of_words + nll(bag, rows.targets.T[:LENGTH].reshape(-1))


def shared(theirs: Any, model: Any) -> list[tuple[Any, Any]]:
    own, found = model.network, []
    for layer, mine in zip(theirs.transformer_encoder.layers, own["layers"], strict=True):
        found += [
            (layer.self_attn.in_proj_weight, mine["query-key-value"].weight),
            (layer.self_attn.in_proj_bias, mine["query-key-value"].bias),
            *both(layer.self_attn.out_proj, mine["mixed"]),
            *both(layer.linear1, mine["wide"]),
            *both(layer.linear2, mine["narrow"]),
            *both(layer.norm1, mine["first norm"]),
            *both(layer.norm2, mine["second norm"]),
        ]
    return [
        *found,
        (theirs.user_embeddings.weight, own["user"].weight),
        (theirs.item_embeddings.weight, own["item"].weight),
        (theirs.word_embeddings.weight, own["word"].weight),
        *both(theirs.hidden2token, own["output"]),
    ]


def mlp(theirs: Any, mine: Any) -> list[tuple[Any, Any]]:
    return [*both(theirs.linear1, mine[0]), *both(theirs.linear2, mine[2])]


def both(theirs: Any, mine: Any) -> list[tuple[Any, Any]]:
    return [(theirs.weight, mine.weight), (theirs.bias, mine.bias)]


def copy(pairs: list[tuple[Any, Any]]) -> None:
    for theirs, mine in pairs:
        theirs.data.copy_(mine.data)


def differences(
    model: Any, rows: Batch, theirs: tuple[Any, Any, Any], mine: Any, pairs: list[tuple[Any, Any]]
) -> list[float]:
    """Of ratings, logarithms of probabilities where there is a target, loss and gradients."""
    ratings, log_probabilities, loss = theirs
    loss.backward()
    own = model.loss(rows).total
    own.backward()
    gradients = [float((one.grad - other.grad).abs().max()) for one, other in pairs if one.grad is not None]
    there = rows.targets != PAD
    found = [
        float((ratings - model.rate(rows.users, rows.items)).abs().max()),
        float((log_probabilities - mine)[there].abs().max()),
        abs(float(loss) - float(own)),
        max(gradients),
    ]
    assert all(map(math.isfinite, found))
    return found


if __name__ == "__main__":
    main()
