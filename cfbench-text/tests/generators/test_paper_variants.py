"""``variant: paper``: what differs from ``variant: cfbench``, computed a second time in plain loops.

``benchmarks/authors_generators.py`` compares the networks with those of the authors, on the same weights.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from cfbench_core.errors import UserError
from cfbench_text.generators import cer, nrt, nrt_paper, peter, peter_paper
from cfbench_text.generators.batches import Loss
from cfbench_text.generators.language import END, PAD, UNKNOWN
from cfbench_text.generators.peter import PAIR
from cfbench_text.generators.recipes import Recipe, shuffled, train, validation_loss

TINY = {"dimensions": 8, "hidden": 12, "epochs": 3, "batch": 3}


def learned(examples, name, length=30, **options):
    module, made = {"nrt": (nrt, nrt.NRT), "peter": (peter, peter.PETER), "cer": (cer, cer.CER)}[name]
    paper = (nrt_paper if name == "nrt" else peter_paper).PaperOptions(**{**TINY, **options})
    model = made(module.Config(variant="paper", length=length, device="cpu", paper=paper))
    model.fit(examples.training_of(validation=examples.FOUR))
    return model


def mean_cross_entropy(logits, targets):
    """Of each word that is no padding, in a loop."""
    values = [
        -float(logits[row, place].log_softmax(dim=0)[target])
        for row, numbers in enumerate(targets.tolist())
        for place, target in enumerate(numbers)
        if target != PAD
    ]
    return sum(values) / len(values)


@pytest.fixture(params=["nrt", "peter", "cer"])
def model(request, examples):
    return learned(examples, request.param)


def test_the_loss_of_nrt_has_both_errors_with_the_same_weight(examples):
    model = learned(examples, "nrt")
    batch = model._batch_of(examples.rows_of(examples.FOUR))
    with torch.no_grad():
        ratings = model.rate(batch.users, batch.items)
        hidden, _ = model.network["gru"](
            model.network["word"](batch.words), model.start(batch.users, batch.items)[None]
        )
        words = mean_cross_entropy(model.network["output"](hidden), batch.targets)
        error = float(((ratings - batch.ratings) ** 2).mean())
        assert float(model.loss(batch).total) == pytest.approx(words + error, rel=1e-5)


def test_ratings_of_nrt_are_truncated_and_have_no_mean(examples):
    model = learned(examples, "nrt")
    assert model.level(torch.tensor([-3.0, 1.4, 1.6, 4.9, 8.0])).tolist() == [0, 0, 0, 3, 4]
    layers = [layer for layer in model.network["rating"] if isinstance(layer, torch.nn.Linear)]
    assert len(layers) == 1 + 4 + 1
    with torch.no_grad():
        hidden = torch.cat([model.network["user"].weight[1], model.network["item"].weight[2]])
        for layer in layers[:-1]:
            hidden = 1 / (1 + (-(layer.weight @ hidden + layer.bias)).exp())
        expected = float(layers[-1].weight @ hidden + layers[-1].bias)
        assert float(model.rate(torch.tensor([1]), torch.tensor([2]))[0]) == pytest.approx(expected, abs=1e-5)


def test_the_bag_of_words_of_peter_leaves_out_the_end_of_a_full_text(examples):
    model = learned(examples, "peter", length=12)
    batch = model._batch_of(examples.rows_of(examples.FOUR))
    assert batch.targets.shape[1] == 13 and (batch.targets[:, 12] == END).any()
    with torch.no_grad():
        hidden = model.hidden(batch.users, batch.items, batch.words)
        words = mean_cross_entropy(model.network["output"](hidden[:, PAIR:]), batch.targets)
        bag = model.network["output"](hidden[:, 1]).log_softmax(dim=1)
        counted = [
            -float(bag[row, target])
            for row, numbers in enumerate(batch.targets[:, :12].tolist())
            for target in numbers
            if target != PAD
        ]
        error = float(((model.rate(batch.users, batch.items) - batch.ratings) ** 2).mean())
        expected = words + sum(counted) / len(counted) + 0.1 * error
        assert float(model.loss(batch).total) == pytest.approx(expected, rel=1e-5)


def test_cer_takes_the_largest_value_over_the_padded_text(examples):
    model = learned(examples, "cer", length=40)
    batch = model._batch_of(examples.rows_of(examples.FOUR))
    with torch.no_grad():
        hidden = model.hidden_of(batch)
        assert hidden.shape[1] == PAIR + 41 > PAIR + batch.targets.shape[1]
        own = model.hidden(batch.users, batch.items, batch.words)
        there = (batch.targets != PAD)[:, :, None]
        assert torch.allclose(
            hidden[:, PAIR : PAIR + there.shape[1]] * there, own[:, PAIR:] * there, atol=1e-5
        )
        for row in range(4):
            largest = torch.stack([hidden[row, PAIR + place] for place in range(41)]).max(dim=0).values
            expected = float(model.network["rating of text"](largest)[0])
            assert float(model.rating_of_text(hidden, batch)[row]) == pytest.approx(expected, abs=1e-5)
        assert model.further_weight() == 0.1


def test_words_outside_of_the_vocabulary_are_learned(examples):
    config = peter.Config(
        variant="paper", length=30, vocabulary=5, device="cpu", paper=peter_paper.PaperOptions(**TINY)
    )
    model = peter.PETER(config)
    model.fit(examples.training_of())
    batch = model._batch_of(examples.rows_of(examples.FOUR))
    assert bool(batch.mask[batch.targets == UNKNOWN].all()) and int((batch.targets == UNKNOWN).sum()) > 10
    texts = [found.text for found in model.explain(examples.requests_for(examples.PAIRS), None)]
    assert all("UNKNOWN" not in text and "<" not in text for text in texts)


def test_a_variant_is_stored_and_restored(model, examples):
    again = type(model)(model.config)
    again.load_state(model.state(), examples.training_of())
    requests = examples.requests_for(examples.PAIRS)
    assert again.explain(requests, None) == model.explain(requests, None)
    assert again.predict_ratings(requests).tolist() == model.predict_ratings(requests).tolist()


@pytest.mark.parametrize("module", [nrt, peter, cer])
def test_options_of_the_other_variant_are_refused(module):
    with pytest.raises(UserError, match="dropout: is an option of variant: cfbench"):
        module.Config(variant="paper", dropout=0.5)
    other = (nrt_paper if module is nrt else peter_paper).PaperOptions(epochs=7)
    with pytest.raises(UserError, match="options of variant: paper"):
        module.Config(paper=other)
    assert module.Config(variant="paper", length=20, vocabulary=50).length == 20


@dataclass
class Scripted:
    """A generator with one weight whose validation losses are given; notes the weight before each step."""

    losses: list
    history: list = field(default_factory=list)
    weights: list = field(default_factory=list)

    def __post_init__(self):
        self.network = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(self.network.weight)

    def device(self):
        return torch.device("cpu")

    def loss(self, batch):
        self.weights.append(float(self.network.weight.detach()))
        return Loss(self.network.weight.sum(), torch.tensor(0.0), 1)

    def cross_entropy(self, rows):
        return self.losses[len(self.history)]


def steps(losses, examples, **options):
    model = Scripted(losses)
    recipe = Recipe(optimizer="sgd", batch=4, epochs=len(losses), clip=None, **options)
    trained = peter.PETER(peter.Config(device="cpu", epochs=1, dimensions=8, hidden=8))
    trained.fit(examples.training_of())
    batch = trained._batch_of(examples.rows_of(examples.FOUR))
    train(model, batch, batch, examples.training_of(), recipe)
    return [round(before - after, 6) for before, after in itertools.pairwise(model.weights)], model


def test_the_rate_is_a_quarter_after_each_epoch_without_gain(examples):
    taken, model = steps([5, 6, 4, 4.5, 4.6, 1], examples, learning_rate=1.0, decay=0.25, patience=9)
    # The gradient is 1, so each step shows the rate; the first epochs without gain are the second, fourth and fifth.
    assert taken == [1.0, 1.0, 0.25, 0.25, 0.0625]
    assert model.history == [5, 6, 4, 4.5, 4.6, 1]


def test_patience_counts_epochs_in_a_row_or_in_all(examples):
    losses = [5, 6, 4, 6, 3, 6, 6, 2]
    assert len(steps(losses, examples, learning_rate=0.1, patience=2)[1].history) == 7
    assert len(steps(losses, examples, learning_rate=0.1, patience=2, in_all=True)[1].history) == 4


def test_the_best_epochs_weights_are_restored(examples):
    _, model = steps([5, 3, 6, 6], examples, learning_rate=0.5, patience=9)
    assert float(model.network.weight) == pytest.approx(1.0 - 2 * 0.5)


def test_batches_without_sorting_are_all_rows_once(examples):
    batch = learned(examples, "peter")._batch_of(examples.rows_of(examples.FOUR))
    recipe = Recipe(learning_rate=1.0, batch=3, epochs=1, patience=1, by_length=False)
    found = [rows.tolist() for rows in shuffled(batch, np.random.default_rng(0), recipe)]
    assert [len(rows) for rows in found] == [3, 1] and sorted(found[0] + found[1]) == [0, 1, 2, 3]


def test_the_validation_loss_as_published_is_a_mean_over_batches(examples):
    model = learned(examples, "nrt")
    batch = model._batch_of(examples.rows_of(examples.FOUR))
    with torch.no_grad():
        parts = [batch.rows(torch.tensor(rows)) for rows in ([0, 1, 2], [3])]
        losses = [model.loss(part) for part in parts]
        expected = sum(
            len(part) * (float(loss.of_words) / loss.words + float(loss.of_ratings))
            for part, loss in zip(parts, losses, strict=True)
        )
    found = validation_loss(model, batch, model.recipe())
    assert found == pytest.approx(expected / 4, rel=1e-6) and math.isfinite(found)
