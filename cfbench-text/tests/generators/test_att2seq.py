import math

import pytest
import torch


@pytest.fixture(scope="module")
def model(examples):
    return examples.learned("att2seq", epochs=20)


def test_attention_is_that_of_the_paper(model):
    draw = torch.Generator().manual_seed(0)
    top, attributes = torch.randn(2, 3, 32, generator=draw), torch.randn(2, 2, 16, generator=draw)
    network = model.network
    with torch.no_grad():
        shares, mixed = model.shares(top, attributes), model.attended(top, attributes)
        for row in range(2):
            for word in range(3):
                score = [
                    math.exp(math.tanh(float(network["score"](torch.cat([top[row, word], attribute])))))
                    for attribute in attributes[row]
                ]
                wanted = [one / sum(score) for one in score]
                assert shares[row, word].tolist() == pytest.approx(wanted, abs=1e-5)
                context = sum(w * a for w, a in zip(wanted, attributes[row], strict=True))
                literal = (network["context"](context) + network["mixed"](top[row, word])).tanh()
                assert torch.allclose(mixed[row, word], literal, atol=1e-5)


def test_a_part_of_the_encoding_begins_each_layer(model):
    with torch.no_grad():
        users, items = torch.tensor([1, 2]), torch.tensor([2, 2])
        pair = torch.cat([model.network["user"](users), model.network["item"](items)], dim=1)
        code = model.network["encoder"](pair).tanh()
        hidden, cells, attributes = model.start(users, items)
    assert torch.equal(hidden[:, 0], code[:, :32]) and torch.equal(hidden[:, 1], code[:, 32:])
    assert not cells.any() and attributes.shape == (2, 2, 16)


@pytest.mark.parametrize("options", [{}, {"attention": False}, {"rating": True}, {"layers": 1}], ids=str)
def test_decoding_with_states_is_decoding_without(options, examples):
    model = examples.learned("att2seq", epochs=20, **options)

    def logits(users, items, words):
        state = model.start(users, items)
        first = tuple(part.transpose(0, 1).contiguous() for part in state[:2])
        top, _ = model.network["lstm"](model.network["word"](words), first)
        return model.network["output"](model.attended(top, state[2]))

    examples.agrees_without_cache(model, logits)


def test_without_attention_words_do_not_look_back(examples):
    model = examples.made("att2seq", attention=False)
    top = torch.ones(1, 1, 32)
    assert model.attended(top, torch.ones(1, 2, 16)) is top


def test_the_rating_is_true_in_training_and_predicted_in_writing(examples):
    model = examples.learned("att2seq", epochs=5, rating=True)
    batch = model._batch_of(examples.rows_of(examples.FOUR))
    other = model._batch_of(examples.rows_of([(*line[:2], 6 - line[2], line[3]) for line in examples.FOUR]))
    with torch.no_grad():
        assert float(model.loss(batch).of_words) == float(model.loss(other).of_words), (
            "judged: nobody knows it"
        )
        model.network.train()
        assert float(model.loss(batch).of_words) != float(model.loss(other).of_words)
