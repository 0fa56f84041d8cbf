"""What all trained generators have in common."""

import math

import numpy as np
import pytest
import torch

from cfbench_core.errors import UserError
from cfbench_text.generators.base import Context
from cfbench_text.generators.language import words_of
from cfbench_text.generators.neural import rating_loss
from cfbench_text.testing import example_corpus, example_training

NAMES = ("att2seq", "cer", "nrt", "peter")


@pytest.fixture(scope="module", params=NAMES)
def known_by_heart(request, examples):
    return examples.learned(request.param)


def test_it_reproduces_what_it_was_trained_on(known_by_heart, examples):
    assert examples.written(known_by_heart, examples.PAIRS) == examples.TEXTS


def test_it_rates_as_it_was_taught(known_by_heart, examples):
    assert known_by_heart.predict_ratings(examples.requests_for(examples.PAIRS)) == pytest.approx(
        [5, 1, 4, 2], abs=0.6
    )
    reported = known_by_heart.explain(
        examples.requests_for(examples.PAIRS), Context(lambda unit: np.random.default_rng(0))
    )
    assert [one.rating for one in reported] == pytest.approx(
        known_by_heart.predict_ratings(examples.requests_for(examples.PAIRS))
    )


def test_a_row_alone_and_twice_and_in_another_order(known_by_heart, examples):
    assert examples.written(known_by_heart, [examples.PAIRS[3]]) == [examples.TEXTS[3]]
    assert examples.written(known_by_heart, [examples.PAIRS[2], examples.PAIRS[0], examples.PAIRS[2]]) == [
        examples.TEXTS[2],
        examples.TEXTS[0],
        examples.TEXTS[2],
    ]


def test_it_answers_for_strangers_with_the_mean_embedding(known_by_heart, examples):
    assert all(examples.written(known_by_heart, [("eve", "amp"), ("ann", "drum"), ("eve", "drum")]))
    weight = known_by_heart.network["user"].weight
    assert torch.allclose(weight[0], weight[1:].mean(dim=0))


def test_a_generator_that_loads_a_state_writes_the_same_texts(known_by_heart, examples):
    state = known_by_heart.state()
    copy = type(known_by_heart)(known_by_heart.config)
    before = torch.random.get_rng_state()
    copy.load_state(state, examples.training_of())
    assert torch.equal(before, torch.random.get_rng_state()), "others draw from that stream"
    assert all(value.dtype.kind in "biuf" for value in state.values())
    assert copy.encoding == known_by_heart.encoding
    assert examples.written(copy, examples.PAIRS) == examples.TEXTS


@pytest.mark.parametrize("name", NAMES)
class TestLearning:
    def test_the_same_stream_gives_the_same_weights(self, name, examples):
        first, again, other = examples.made(name), examples.made(name), examples.made(name)
        first.fit(examples.training_of())
        torch.rand(3)
        again.fit(examples.training_of())
        other.fit(examples.training_of(seed=1))
        pairs = zip(first.network.parameters(), again.network.parameters(), strict=True)
        assert all(torch.equal(one, two) for one, two in pairs)
        assert not torch.equal(first.network["word"].weight, other.network["word"].weight)

    def test_the_epoch_with_the_lowest_validation_loss_is_selected(self, name, examples):
        model = examples.made(name, epochs=60, batch=4, patience=2, learning_rate=0.03)
        contrary = [
            (user, item, 3.0, examples.TEXTS[3 - place]) for place, (user, item) in enumerate(examples.PAIRS)
        ]
        model.fit(examples.training_of(validation=contrary))
        assert len(model.history) < 60, "learning by heart makes it worse, so it must stop"
        assert model.history.index(min(model.history)) == len(model.history) - 3
        batch = model._batch_of(examples.rows_of(contrary))
        assert model.cross_entropy(batch) == pytest.approx(min(model.history), rel=1e-5)

    def test_the_validation_loss_is_that_of_an_even_guess_at_first(self, name, examples):
        model = examples.made(name, epochs=1, learning_rate=1e-9, dropout=0.0)
        model.fit(examples.training_of(validation=examples.FOUR))
        assert model.history[0] == pytest.approx(math.log(len(model.encoding.vocabulary)), rel=0.1)

    def test_padding_changes_no_loss(self, name, examples):
        model = examples.learned(name, epochs=2)
        together = model._batch_of(examples.rows_of(examples.FOUR))
        with torch.no_grad():
            alone = [model.loss(together.rows(torch.tensor([place]))) for place in range(4)]
            total = float(model.loss(together).of_words)
        assert total == pytest.approx(sum(float(one.of_words) for one in alone), rel=1e-5)

    def test_rows_without_text_or_rating_teach_the_rest(self, name, examples):
        bare = [("ann", "amp", float("nan"), ""), *examples.FOUR[1:], ("cy", "bow", 3.0, "")]
        model = examples.made(name)
        model.fit(examples.training_of(train=bare, validation=[("ann", "amp", float("nan"), "it is loud.")]))
        assert all(bool(value.isfinite().all()) for value in model.network.parameters())
        assert np.isfinite(model.predict_ratings(examples.requests_for(examples.PAIRS))).all()

    def test_unknown_words_are_neither_learned_nor_written(self, name, examples):
        model = examples.made(name, vocabulary=6)
        model.fit(examples.training_of())
        batch = model._batch_of(examples.rows_of(examples.FOUR))
        assert int(batch.mask.sum()) < int((batch.targets != 0).sum())
        assert model.loss(batch).words == int(batch.mask.sum())
        for text in examples.written(model, examples.PAIRS):
            known = {word.strip() for word in model.encoding.vocabulary.words}
            assert {word.strip() for word in words_of(text)} <= known

    @pytest.mark.slow
    def test_it_does_not_collapse_to_one_sentence(self, name, examples):
        larger = (
            {"dimensions": 64, "hidden": 128, "learning_rate": 0.003}
            if name == "nrt"
            else {"learning_rate": 0.01}
        )
        model = examples.made(name, epochs=30, patience=5, **larger)
        model.fit(example_training())
        test = example_corpus().part("test")
        texts = examples.written(model, list(zip(test.users, test.items, strict=True)))
        assert len(set(texts)) >= 3, f"{len(set(texts))} different texts in {len(texts)}"


def test_unknown_ratings_take_no_part_in_their_loss():
    predicted, ratings = torch.tensor([1.0, 2.0, 9.0]), torch.tensor([2.0, 4.0, float("nan")])
    assert float(rating_loss(predicted, ratings)) == pytest.approx((1 + 4) / 2)
    assert float(rating_loss(predicted[2:], ratings[2:])) == 0.0


def test_without_torch_the_error_names_what_to_install(monkeypatch, examples):
    from cfbench_text.generators import neural

    monkeypatch.setattr(neural, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"NRT needs torch: pip install 'cfbench-text\[torch\]'"):
        examples.made("nrt")


def test_a_gpu_that_is_not_there(monkeypatch, examples):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="device: cuda is not available here"):
        examples.made("nrt", device="cuda").fit(examples.training_of())
