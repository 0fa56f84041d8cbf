"""With a GPT-2 of a few thousand weights, written to disk and loaded as a real one is."""

import numpy as np
import pytest
import torch

from cfbench_core.errors import UserError
from cfbench_text.models import tiny

pytest.importorskip("transformers", reason="needs cfbench-text[models]")

FOUR = (
    ("ann", "amp", 5.0, "the user would appreciate this product because sound is good"),
    ("ann", "bow", 1.0, "the user may dislike that price is high"),
    ("bob", "amp", 4.0, "the user would appreciate this product because tone is rich"),
    ("bob", "bow", 2.0, "they seem indifferent to strings , however they may dislike that tone is bad"),
)
TEXTS = [text.replace("seem ", "[UNK] ") for _, _, _, text in FOUR]
"""One word is not in the tiny vocabulary."""


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(0)
    size = tiny.tokenizer(folder, special=False)
    config = GPT2Config(
        vocab_size=size, n_embd=32, n_layer=2, n_head=2, n_positions=64, eos_token_id=3, bos_token_id=3
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return str(folder)


def made(gpt2, **options):
    from cfbench_text.generators.pepler import PEPLER, Config

    few = {"epochs": 100, "batch": 4, "length": 30, "dropout": 0.0, "device": "cpu", "learning_rate": 0.05}
    return PEPLER(Config(**{**few, "model": gpt2, "hidden": 16, **options}))


@pytest.fixture(scope="module")
def known_by_heart(gpt2, examples):
    model = made(gpt2)
    model.fit(examples.training_of(train=FOUR))
    return model


def test_it_reproduces_what_it_was_trained_on(known_by_heart, examples):
    said = examples.written(known_by_heart, examples.PAIRS)
    assert [text.split() for text in said] == [
        [word for word in text.split() if word != "[UNK]"] for text in TEXTS
    ]


def test_decoding_with_keys_and_values_is_decoding_without(known_by_heart, examples):
    examples.agrees_without_cache(
        known_by_heart,
        lambda users, items, words: known_by_heart._output(known_by_heart.logits(users, items, words)),
    )


def test_logits_one_after_the_other_are_those_of_all_at_once(known_by_heart, examples):
    users, items = known_by_heart._numbers(["ann", "bob"], ["bow", "bow"])
    words = torch.tensor([[1, 8, 9, 10], [1, 11, 12, 13]])
    with torch.no_grad():
        at_once = known_by_heart._output(known_by_heart.logits(users, items, words))
        state = known_by_heart.start(users, items)
        for place in range(4):
            logits, state = known_by_heart.step(state, words[:, place])
            assert torch.allclose(logits, at_once[:, place], atol=1e-4)


def test_the_end_of_a_document_is_the_end_and_no_word(known_by_heart):
    logits = torch.arange(6.0)[None]
    found = known_by_heart._output(logits)[0].tolist()
    assert found == [-np.inf, -np.inf, 3.0, -np.inf, 0.0, 1.0, 2.0, -np.inf, 4.0, 5.0]
    vocabulary = known_by_heart.encoding.vocabulary
    assert vocabulary.encode("sound [SEP] good", 9) == vocabulary.encode("sound good", 9)
    assert vocabulary.encode(" ", 9) == []


def test_the_language_model_stays_as_it_is_without_tuning(gpt2, examples):
    model, tuned = made(gpt2, tune=False, epochs=2), made(gpt2, epochs=2)
    model.fit(examples.training_of(train=FOUR))
    tuned.fit(examples.training_of(train=FOUR))
    before = model._loaded().model.state_dict()
    for learned, same in ((model, True), (tuned, False)):
        after = learned.network["model"].state_dict()
        assert all(torch.equal(before[name], after[name]) for name in before) == same


def test_a_generator_that_loads_a_state_writes_the_same_texts(known_by_heart, examples):
    copy = type(known_by_heart)(known_by_heart.config)
    copy.load_state(known_by_heart.state(), examples.training_of(train=FOUR))
    assert examples.written(copy, examples.PAIRS) == examples.written(known_by_heart, examples.PAIRS)
    ratings = [
        model.predict_ratings(examples.requests_for(examples.PAIRS)) for model in (known_by_heart, copy)
    ]
    assert ratings[0].tolist() == ratings[1].tolist()


def test_a_text_longer_than_the_model_reads(gpt2, examples):
    with pytest.raises(UserError, match="length may be 61 at most"):
        made(gpt2, length=62).fit(examples.training_of(train=FOUR))


def test_a_model_that_is_not_there(examples):
    with pytest.raises(UserError, match="no such folder"):
        made("./nowhere").fit(examples.training_of(train=FOUR))


def published(gpt2, examples, **options):
    from cfbench_text.generators.pepler import PEPLER, Config
    from cfbench_text.generators.pepler_paper import PaperOptions

    paper = PaperOptions(**{"hidden": 16, "batch": 3, "epochs": 2, **options})
    model = PEPLER(Config(variant="paper", model=gpt2, length=30, device="cpu", paper=paper))
    model.fit(examples.training_of(train=FOUR, validation=FOUR))
    return model


@pytest.mark.parametrize("training", ["regularised", "sequential"])
def test_the_loss_as_published_is_that_of_transformers_with_the_begin_as_first_target(
    gpt2, examples, training
):
    """The authors give the whole text as labels behind two ignored places; transformers shifts them by one."""
    model = published(gpt2, examples, training=training)
    batch = model._batch_of(examples.rows_of(FOUR))
    network, tokenizer = model.network, model.encoding.vocabulary.tokenizer
    errors, terms, count = [], 0.0, 0
    with torch.no_grad():
        found = model.loss(batch)
        for row, (_, _, rating, text) in enumerate(FOUR):
            tokens = [tokenizer.eos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
            tokens = torch.tensor([[*tokens, tokenizer.eos_token_id]])
            pair = [network[name].weight[getattr(batch, f"{name}s")[row]] for name in ("user", "item")]
            x = torch.cat([torch.stack(pair)[None], network["model"].get_input_embeddings()(tokens)], dim=1)
            labels = torch.cat([torch.full((1, 2), -100), tokens], dim=1)
            terms += float(network["model"](inputs_embeds=x, labels=labels).loss) * tokens.shape[1]
            count += tokens.shape[1]
            hidden = torch.cat(pair)
            for part in network["rating"]:
                hidden = part(hidden)
            errors.append((float(hidden) - rating) ** 2)
    assert found.words == count
    assert float(found.of_words) == pytest.approx(terms, rel=1e-4)
    wanted = terms / count + (0.01 * np.mean(errors) if training == "regularised" else 0)
    assert float(found.total) == pytest.approx(wanted, rel=1e-4)


def test_weights_as_published_start_within_a_tenth(gpt2, examples):
    from cfbench_text.generators.pepler_paper import PaperOptions, rating_network

    network = rating_network(PaperOptions(), 32)
    layers = [part for part in network if isinstance(part, torch.nn.Linear)]
    assert [(one.in_features, one.out_features) for one in layers] == [
        (64, 400),
        (400, 400),
        (400, 400),
        (400, 1),
    ]
    assert all(0.09 < float(one.weight.abs().max()) <= 0.1 and not one.bias.any() for one in layers)
    built = published(gpt2, examples).build
    start = built(published(gpt2, examples).encoding)
    assert 0.09 < float(start["user"].weight.abs().max().detach()) <= 0.1


def test_training_as_published_changes_the_language_model_and_sequential_has_both_parts(gpt2, examples):
    from cfbench_text.models.loading import Source, load

    before = load("AutoModelForCausalLM", Source(model=gpt2, device="cpu")).model.state_dict()
    at_once = published(gpt2, examples)
    assert any(
        not torch.equal(value, before[name]) for name, value in at_once.network["model"].state_dict().items()
    )
    assert not any(one.requires_grad for one in at_once.network["model"].parameters())
    parts = published(gpt2, examples, training="sequential")
    assert (len(at_once.history), len(parts.history)) == (2, 4)
    requests = examples.requests_for(examples.PAIRS)
    assert set(parts.predict_ratings(requests).tolist()) == {3.0}  # the mean: no rating is learned


def test_options_of_the_other_variant_are_refused(gpt2):
    from cfbench_text.generators.pepler import Config
    from cfbench_text.generators.pepler_paper import PaperOptions

    with pytest.raises(UserError, match="tune: is an option of variant: cfbench"):
        Config(variant="paper", model=gpt2, tune=False)
    with pytest.raises(UserError, match="options of variant: paper"):
        Config(model=gpt2, paper=PaperOptions(epochs=1))
