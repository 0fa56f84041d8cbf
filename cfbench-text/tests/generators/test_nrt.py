import numpy as np
import pytest
import torch


@pytest.fixture(scope="module")
def model(examples):
    return examples.learned("nrt", epochs=20)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_first_state_and_rating_are_those_of_the_paper(model):
    weights = {name: value.numpy().astype(float) for name, value in model.network.state_dict().items()}
    u, v = weights["user.weight"][2], weights["item.weight"][1]
    hidden = sigmoid(weights["rating.0.weight"] @ np.concatenate([u, v]) + weights["rating.0.bias"])
    hidden = sigmoid(weights["rating.2.weight"] @ hidden + weights["rating.2.bias"])
    rating = 3.0 + float((weights["rating.4.weight"] @ hidden + weights["rating.4.bias"])[0])
    level = min(5, max(1, round(rating)))
    first = weights["first.weight"] @ np.concatenate([u, v]) + weights["first.bias"]
    first = np.tanh(first + weights["first of rating.weight"][level - 1])

    with torch.no_grad():
        users, items = torch.tensor([2]), torch.tensor([1])
        assert float(model.rate(users, items)[0]) == pytest.approx(rating, abs=1e-5)
        assert model.start(users, items)[0].numpy() == pytest.approx(first, abs=1e-5)


def test_ratings_become_the_nearest_whole_one_of_those_seen(model):
    assert model.level(torch.tensor([-3.0, 1.4, 1.6, 4.9, 8.0])).tolist() == [0, 0, 1, 4, 4]


def test_decoding_with_states_is_decoding_without(model, examples):
    def logits(users, items, words):
        hidden, _ = model.network["gru"](model.network["word"](words), model.start(users, items)[None])
        return model.network["output"](hidden)

    examples.agrees_without_cache(model, logits)


@pytest.mark.slow
def test_the_embeddings_do_not_vanish(examples):
    """They do with the L2 of 0.001 on all weights that the study's adapter has."""
    model = examples.learned("nrt")
    assert float(model.network["user"].weight.detach()[1:].norm(dim=1).min()) > 0.1


def test_the_text_depends_on_the_predicted_rating(model):
    with torch.no_grad():
        users, items = torch.tensor([1]), torch.tensor([1])
        before = model.start(users, items)
        model.network["rating"][4].bias -= 10.0
        after = model.start(users, items)
        model.network["rating"][4].bias += 10.0
    assert not torch.allclose(before, after)
