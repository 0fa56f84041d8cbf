import pytest
import torch

from cfbench_text.generators.peter import PAIR, PETER


@pytest.fixture(scope="module")
def model(examples):
    return examples.learned("cer", epochs=20)


@pytest.fixture(scope="module")
def batch(model, examples):
    return model._batch_of(examples.rows_of(examples.FOUR))


def hidden_of(model, batch):
    return model.hidden(batch.users, batch.items, batch.words)


def test_the_rating_of_a_text_is_read_from_the_mean_of_its_words(model, batch):
    with torch.no_grad():
        hidden = hidden_of(model, batch)
        found = model.rating_of_text(hidden, batch)
        for row in range(4):
            length = int((batch.targets[row] != 0).sum())
            mean = sum(hidden[row, PAIR + place] for place in range(length)) / length
            wanted = 3.0 + float(model.network["rating of text"](mean)[0])
            assert float(found[row]) == pytest.approx(wanted, abs=1e-5)


def test_padding_takes_no_part(model, batch):
    with torch.no_grad():
        together = model.rating_of_text(hidden_of(model, batch), batch)
        for row in range(4):
            one = batch.rows(torch.tensor([row]))
            assert float(model.rating_of_text(hidden_of(model, one), one)[0]) == pytest.approx(
                float(together[row]), abs=1e-5
            )


def test_the_loss_is_that_of_peter_and_the_difference_of_both_ratings(model, batch):
    with torch.no_grad():
        hidden = hidden_of(model, batch)
        difference = model.rating_of_text(hidden, batch) - model.rate(batch.users, batch.items)
        of_peter = PETER.loss(model, batch).total - 0.1 * model.further_loss(hidden, batch)
        wanted = float(of_peter) + 0.1 * float((difference**2).mean())
        assert float(model.loss(batch).total) == pytest.approx(wanted, rel=1e-5)
        assert float(model.further_loss(hidden, batch)) == pytest.approx(
            float((difference**2).mean()), rel=1e-5
        )


@pytest.mark.slow
def test_training_brings_both_ratings_together(examples):
    apart, together = (examples.learned("cer", coherence_weight=weight) for weight in (0.0, 1.0))
    gaps = []
    for model in (apart, together):
        batch = model._batch_of(examples.rows_of(examples.FOUR))
        with torch.no_grad():
            of_text = model.rating_of_text(hidden_of(model, batch), batch)
            gaps.append(float((of_text - model.rate(batch.users, batch.items)).abs().mean()))
    assert gaps[1] < 0.2 < gaps[0]


def test_rows_without_a_text_have_no_coherence(model, examples):
    bare = model._batch_of(examples.rows_of([("ann", "amp", 5.0, ""), ("bob", "bow", 1.0, "")]))
    with torch.no_grad():
        assert float(model.further_loss(hidden_of(model, bare), bare)) == 0.0


def test_decoding_with_keys_and_values_is_decoding_without(model, examples):
    examples.agrees_without_cache(
        model,
        lambda users, items, words: model.network["output"](model.hidden(users, items, words)[:, PAIR:]),
    )
