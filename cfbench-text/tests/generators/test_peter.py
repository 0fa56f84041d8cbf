import math

import pytest
import torch

from cfbench_text.generators.attention import positions
from cfbench_text.generators.peter import PAIR, Config, sees

USER, ITEM = torch.tensor([1]), torch.tensor([2])
WORDS = torch.tensor([[1, 5, 6, 7, 8]])


@pytest.fixture(scope="module")
def model(examples):
    return examples.learned("peter", epochs=20)


def changed(model, before, **given):
    """Which positions have another hidden state when an input is another."""
    now = {"users": USER, "items": ITEM, "words": WORDS, **given}
    with torch.no_grad():
        after = model.hidden(now["users"], now["items"], now["words"])
    return [place for place in range(after.shape[1]) if not torch.allclose(before[0, place], after[0, place])]


def test_the_mask_in_full():
    assert sees(4).int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_each_position_depends_on_exactly_what_it_sees(model):
    with torch.no_grad():
        before = model.hidden(USER, ITEM, WORDS)
    everything = list(range(7))
    assert changed(model, before, users=torch.tensor([2])) == everything
    assert changed(model, before, items=torch.tensor([1])) == everything, "the user sees the item"
    for place in range(5):
        words = WORDS.clone()
        words[0, place] = 9
        assert changed(model, before, words=words) == list(range(PAIR + place, 7))


def test_decoding_with_keys_and_values_is_decoding_without(model, examples):
    examples.agrees_without_cache(
        model,
        lambda users, items, words: model.network["output"](model.hidden(users, items, words)[:, PAIR:]),
    )


def test_logits_one_after_the_other_are_those_of_all_at_once(model):
    with torch.no_grad():
        at_once = model.network["output"](model.hidden(USER, ITEM, WORDS)[:, PAIR:])
        state = model.start(USER, ITEM)
        for place in range(WORDS.shape[1]):
            logits, state = model.step(state, WORDS[:, place])
            assert torch.allclose(logits, at_once[:, place], atol=1e-5)


def test_a_layer_is_that_of_torch(model):
    """The same weights in ``torch.nn.TransformerEncoderLayer``, which is another implementation."""
    layer = model.network["layers"][0]
    other = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    names = {"self_attn.in_proj_": "query-key-value.", "self_attn.out_proj.": "mixed.", "linear1.": "wide."}
    names |= {"linear2.": "narrow.", "norm1.": "first norm.", "norm2.": "second norm."}
    ours = layer.state_dict()
    other.load_state_dict(
        {f"{to}{k}": ours[f"{of}{k}"] for to, of in names.items() for k in ("weight", "bias")}
    )
    x = torch.randn(3, 6, 16, generator=torch.Generator().manual_seed(0))
    from cfbench_text.generators.attention import run

    other.train()  # without its fast path
    with torch.no_grad():
        wanted = other(x, src_mask=~sees(6))
        assert torch.allclose(run([layer], 2, x, sees(6))[0], wanted, atol=1e-5)


def test_positions_are_sines_and_cosines():
    found = positions(2, 3, 5)
    for row in range(3):
        for column in range(5):
            angle = (2 + row) / 10_000 ** ((column - column % 2) / 5)
            wanted = math.sin(angle) if column % 2 == 0 else math.cos(angle)
            assert float(found[row, column]) == pytest.approx(wanted, abs=1e-5)


def test_the_loss_is_words_and_bag_of_words_and_a_tenth_of_the_rating(model, examples):
    batch = model._batch_of(examples.rows_of(examples.FOUR))
    with torch.no_grad():
        hidden = model.hidden(batch.users, batch.items, batch.words)
        words = context = 0.0
        count = 0
        for row in range(4):
            bag = model.network["output"](hidden[row, 1]).log_softmax(0)
            for place, target in enumerate(batch.targets[row].tolist()):
                if target != 0:
                    said = model.network["output"](hidden[row, PAIR + place]).log_softmax(0)
                    words, context, count = (
                        words - float(said[target]),
                        context - float(bag[target]),
                        count + 1,
                    )
        rating = float(((model.rate(batch.users, batch.items) - batch.ratings) ** 2).mean())
        found = model.loss(batch)
    assert found.words == count and float(found.of_words) == pytest.approx(words, rel=1e-4)
    assert float(found.total) == pytest.approx((words + context) / count + 0.1 * rating, rel=1e-4)


def test_heads_divide_the_dimensions():
    with pytest.raises(ValueError, match="multiple of heads"):
        Config(dimensions=10, heads=3)
