"""With a Llama and a GPT-2 of a few thousand weights, written to disk and loaded as real ones are."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from cfbench_core.errors import UserError
from cfbench_text.generators.base import Context
from cfbench_text.models import tiny
from cfbench_text.triplets import Triplet

pytest.importorskip("transformers", reason="needs cfbench-text[models]")

FOUR = (
    ("ann", "amp", 5.0, "the user would appreciate this product because sound is good"),
    ("ann", "bow", 1.0, "the user may dislike that price is high"),
    ("bob", "amp", 4.0, "the user would appreciate this product because tone is rich"),
    ("bob", "bow", 2.0, "they seem indifferent to strings , however they may dislike that tone is bad"),
)
SAID = ("sound is good", "price is high", "tone is rich", "tone is bad")
MARKER = "strings break"
"""What only the reviews say that nobody may learn from."""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return str(tiny.causal(tmp_path_factory.mktemp("llama")))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return str(gpt2_in(tmp_path_factory.mktemp("gpt2")))


def gpt2_in(folder, positions=512):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    size = tiny.tokenizer(folder, special=False)
    numbers = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": positions, "initializer_range": 0.3}
    config = GPT2Config(vocab_size=size, eos_token_id=3, bos_token_id=3, **numbers)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def made(folder, **options):
    from cfbench_text.generators.xrec import Config, XRec

    few = {"epochs": 3, "length": 20, "device": "cpu", "learning_rate": 0.05, "dimensions": 8, "experts": 3}
    return XRec(Config(**{**few, "graph_epochs": 20, "model": folder, **options}))


def training_of(examples, lines=FOUR, said=SAID, seed=0, **parts):
    training = examples.training_of(train=lines, seed=seed, **parts)
    triplets = [(Triplet(text, "sound", "positive"),) for text in said]
    return dataclasses.replace(training, train=dataclasses.replace(training.train, triplets=triplets))


def learned(examples, folder, seed=0, **options):
    model = made(folder, **options)
    model.fit(training_of(examples, seed=seed))
    return model


@pytest.fixture(scope="module")
def model(llama, examples):
    return learned(examples, llama)


@pytest.mark.slow
def test_what_is_learned_makes_the_texts_likelier_and_nothing_else_changes(llama, examples):
    few, more = learned(examples, llama, learning_rate=1e-12), learned(examples, llama, epochs=30)
    before = {name: value.clone() for name, value in more._loaded().model.state_dict().items()}
    rows = more._batch_of(training_of(examples).train)
    assert more.cross_entropy(rows) < few.cross_entropy(rows) - 0.3
    again = learned(examples, llama, epochs=30)
    after = again._loaded().model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not any("model" in name for name in again.network.state_dict())
    for name in ("user.weight", "item.weight"):
        assert torch.equal(few.network.state_dict()[name], more.network.state_dict()[name])


def test_a_model_of_narrow_numbers_learns_too(llama, examples):
    """The adapters stay in float32."""
    found = learned(examples, llama, dtype="bfloat16", epochs=10)
    rows = found._batch_of(training_of(examples).train)
    few = learned(examples, llama, dtype="bfloat16", learning_rate=1e-12)
    assert found.cross_entropy(rows) < few.cross_entropy(rows) - 0.1
    assert all(value.dtype == torch.float32 for value in found.network.state_dict().values())
    assert all(examples.written(found, examples.PAIRS))


@pytest.mark.parametrize("inject", ["layers", "embeddings"])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_decoding_with_keys_and_values_is_decoding_without(kind, inject, examples, request):
    found = learned(examples, request.getfixturevalue(kind), inject=inject)
    examples.agrees_without_cache(
        found, lambda users, items, words: found._output(found.logits(users, items, words))
    )


FEW_WEIGHTS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.3}
FAMILIES = {
    "mistral": {"num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 64},
    "qwen3": {"num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 64},
    "gpt_neox": {"intermediate_size": 64, "max_position_embeddings": 512},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 512, "init_std": 0.3},
    "bloom": {},
}


@pytest.mark.parametrize("inject", ["layers", "embeddings"])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_any_decoder(family, inject, examples, tmp_path):
    """Fewer keys than queries, positions learned, turned or as a slope: cached and padded is neither."""
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    torch.manual_seed(0)
    size = tiny.tokenizer(tmp_path, special=False)
    ends = {"vocab_size": size, "eos_token_id": 3, "bos_token_id": 2, "pad_token_id": 0}
    config = CONFIG_MAPPING[family](**ends, **FEW_WEIGHTS, **FAMILIES[family])
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    found = learned(examples, str(tmp_path), inject=inject, epochs=1)
    users, items = found._numbers(["ann", "bob", "eve"], ["bow", "bow", "harp"])
    words = torch.tensor([[1, 8, 9, 10], [1, 11, 12, 13], [1, 8, 9, 10]])
    with torch.no_grad():
        state = found.start(users, items)
        for place in range(4):
            logits, state = found.step(state, words[:, place])
            for row in range(3):
                alone = found.logits(users[row : row + 1], items[row : row + 1], words[row : row + 1])
                assert torch.allclose(logits[row], found._output(alone)[0, place], atol=1e-4)


def test_a_text_is_the_completion_of_the_prompt(model, examples):
    """The oracle: all from scratch, one row, no padding, no cache, the injection written out layer by layer."""
    for user, item in (("ann", "amp"), ("bob", "bow"), ("eve", "amp")):
        prompt = model._prompts.of(*model._names(*model._numbers([user], [item]))[0])
        written: list[int] = []
        with torch.no_grad():
            vectors = by_hand(model, user, item)
            while len(written) < model.config.length:
                logits = llama_by_hand(model._loaded().model, [*prompt.tokens, *written], prompt, vectors)
                if int(logits.argmax()) in model.encoding.vocabulary.ends:
                    break
                written.append(int(logits.argmax()))
        reported = model._loaded().tokenizer.decode(written, skip_special_tokens=True)
        assert examples.written(model, [(user, item)]) == [" ".join(reported.split())]


def by_hand(model, user, item):
    """The two adapted vectors: sum_k g_k (x - b_k) W_k."""
    found = []
    for kind, name, names in (("user", user, model.encoding.users), ("item", item, model.encoding.items)):
        place = names.index(name) + 1 if name in names else 0
        x, of = model.network[kind].weight[place], model.network[f"of {kind}"]
        scores = torch.exp(x @ of["gate"])
        shares = scores / scores.sum()
        found.append(sum(shares[k] * ((x - of["offset"][k]) @ of["weight"][k]) for k in range(len(shares))))
    return found


def llama_by_hand(llama, tokens, prompt, vectors):
    """The logits after the last token, with the vectors added where the attention of each layer reads."""
    core = llama.model
    x = core.embed_tokens(torch.tensor([tokens]))
    added = torch.zeros_like(x)
    for place, vector in zip((prompt.user, prompt.item), vectors, strict=True):
        x[0, place] = added[0, place] = vector
    turns = core.rotary_emb(x, torch.arange(len(tokens))[None])
    mask = torch.full((len(tokens), len(tokens)), -1e30).triu(1)[None, None]
    for layer in core.layers:
        read = layer.input_layernorm(x) + added
        x = x + layer.self_attn(read, position_embeddings=turns, attention_mask=mask)[0]
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return llama.lm_head(core.norm(x))[0, -1]


def test_the_vectors_matter_and_where_they_go_matters(llama, examples):
    lines = training_of(examples)
    scores = []
    for inject in ("layers", "embeddings"):
        found = learned(examples, llama, inject=inject)
        scores.append(found.cross_entropy(found._batch_of(lines.train)))
    assert scores[0] != scores[1]
    users, items = found._numbers(["ann", "bob"], ["amp", "amp"])
    words = torch.tensor([[1, 8], [1, 8]])
    with torch.no_grad():
        one, other = found.logits(users, items, words)
    assert not torch.allclose(one, other, atol=1e-3)
    assert not found._loaded().model.model.layers[0].self_attn._forward_pre_hooks


def test_a_text_does_not_depend_on_the_rest_of_the_batch(llama, examples):
    said = ("sound is good", "price is high " * 40, "tone", "tone is bad")
    pairs = [*examples.PAIRS, ("eve", "amp"), ("ann", "harp"), ("ann", "amp")]
    texts = []
    for together in (1, 2, 16):
        found = made(llama, rows_at_once=together)
        found.fit(training_of(examples, FOUR, said))
        texts.append(examples.written(found, pairs))
        texts.append([examples.written(found, [pair])[0] for pair in pairs])
    assert all(one == texts[0] for one in texts)
    assert all(texts[0]) and texts[0][0] == texts[0][-1]


def test_the_same_seed_writes_the_same_and_torch_keeps_its_global_state(llama, examples):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first = learned(examples, llama)
    assert torch.rand(1) == expected
    again, other = learned(examples, llama), learned(examples, llama, seed=1)
    states = [found.network.state_dict() for found in (first, again, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(torch.equal(states[0][name], states[2][name]) for name in states[0])


@pytest.mark.parametrize("profiles", ["statements", "llm", "none"])
def test_a_generator_that_loads_a_state_writes_the_same_texts(
    llama, examples, tmp_path, profiles, monkeypatch
):
    found = learned(examples, llama, profiles=profiles, profile_tokens=5)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "another cache"))
    copy = type(found)(found.config)
    copy.load_state(found.state(), training_of(examples))
    pairs = [*examples.PAIRS, ("eve", "harp")]
    assert examples.written(copy, pairs) == examples.written(found, pairs)
    assert not (tmp_path / "another").exists()


def test_each_written_profile_is_queried_once(llama, examples, monkeypatch):
    from cfbench_text.models.causal import Causal

    first = learned(examples, llama, profiles="llm", profile_tokens=5)
    assert first.metadata["written profiles"].get("no answer", 0) < 4
    monkeypatch.setattr(Causal, "write", lambda *_: pytest.fail("the model is queried again"))
    again = learned(examples, llama, profiles="llm", profile_tokens=5)
    assert vars(again.profiles) == vars(first.profiles)
    assert again.profiles.of("ann", "harp")[0] and not again.profiles.of("ann", "harp")[1]


def test_another_language_model_is_refused(llama, gpt2, examples):
    state = learned(examples, llama).state()
    assert llama.encode() not in state["settings"].tobytes()
    with pytest.raises(UserError, match="learned with another model"):
        made(gpt2).load_state(state, training_of(examples))


def test_no_rating_is_predicted(model, examples):
    assert not hasattr(model, "predict_ratings")
    said = model.explain(
        examples.requests_for(examples.PAIRS), Context(lambda unit: np.random.default_rng(0))
    )
    assert all(np.isnan(one.rating) for one in said)


def test_a_long_prompt_loses_profile_sentences_and_the_text_is_there_in_full(examples, tmp_path, monkeypatch):
    """The study's adapter cuts the decoded prompt off by its length, which leaves nothing of texts after long prompts."""
    from cfbench_text.generators.pretrained import Tokens

    folder = str(gpt2_in(tmp_path, positions=160))
    lines = [("ann", f"i{n}", 5.0, FOUR[n % 4][3]) for n in range(12)]
    said = [f"{SAID[n % 4]} {'and good ' * n}".strip() for n in range(12)]
    found = made(folder, length=12, statements=12)
    found.fit(training_of(examples, lines, said))
    short = made(folder, length=12, profiles="none")
    short.fit(training_of(examples, lines, said))
    numbers = []
    monkeypatch.setattr(Tokens, "decode", lambda self, written: numbers.append(written) or "a text")
    with pytest.warns(UserWarning, match=r"1 of 1 prompts were too long .* \d+ sentences"):
        assert examples.written(found, [("ann", "i0")]) == ["a text"]
    prompt = found._prompts.of("ann", "i0")
    assert prompt.lost and 160 - 12 >= len(prompt.tokens) > len(short._prompts.of("ann", "i0").tokens)
    assert len(numbers[0]) == 12
    reported = found.profiles.of("ann", "i0")[0]
    assert len(reported) == 11 and not found.profiles.of("ann", "i0")[1]
    whole = [found.encoding.vocabulary.tokens(" ".join(reported[:count])) for count in range(12)]
    shown = [len(tokens) for tokens in whole if tokens and _within(tokens, prompt.tokens)]
    assert max(shown) == len(whole[11 - prompt.lost])
    assert found.metadata["training prompts"]["shortened"] > 0


def _within(few, many):
    """Whether the few stand in the many, one after the other."""
    return any(list(many[start : start + len(few)]) == few for start in range(len(many)))


def test_a_model_that_does_not_even_read_the_task(examples, tmp_path):
    with pytest.raises(UserError, match="without any profile, and the model leaves 20 for it"):
        made(str(gpt2_in(tmp_path, positions=40))).fit(training_of(examples))


@pytest.mark.parametrize("profiles", ["statements", "llm"])
def test_no_review_to_explain_or_to_choose_with_is_ever_shown(llama, examples, profiles, monkeypatch):
    """Planted in the reviews and statements of rows that are not to be learned from, and in one of the very pair."""
    from cfbench_text.models.causal import Causal
    from cfbench_text.models.chat_types import Completion

    requested = []

    def write(self, prompts, tokens):
        requested.extend(prompts)
        return [(place, Completion("sound is good.")) for place in range(len(prompts))]

    monkeypatch.setattr(Causal, "write", write)
    unseen = [("ann", "harp", 5.0, MARKER), ("bob", "harp", 1.0, MARKER)]
    training = training_of(examples, validation=unseen)
    said = [(Triplet(MARKER, "sound", "positive"),)] * len(unseen)
    training = dataclasses.replace(
        training, validation=dataclasses.replace(training.validation, triplets=said)
    )
    found = made(llama, profiles=profiles)
    found.fit(training)
    for pair in [*examples.PAIRS, ("ann", "harp"), ("bob", "harp")]:
        numbers = found._numbers([pair[0]], [pair[1]])
        shown = found._loaded().tokenizer.decode(found._prompts.of(*found._names(*numbers)[0]).tokens)
        assert MARKER not in shown
        assert any(statement in shown for statement in SAID)
    assert not any(MARKER in prompt.user for prompt in requested) and bool(requested) == (profiles == "llm")


def test_the_users_statements_about_the_item_are_not_in_the_prompt(llama, examples):
    found = learned(examples, llama)
    for (user, item), own in zip(examples.PAIRS, SAID, strict=True):
        reported = " ".join(sum(found.profiles.of(user, item), ()))
        assert own not in reported and "Liked:" in reported
    assert found.profiles.of("eve", "harp") == ((), ())


def test_the_validation_rows_choose_and_teach_nothing(llama, examples):
    """With one epoch there is nothing to choose, so what is learned is the same whatever they say."""
    others = [("ann", "amp", 1.0, f"the user may dislike {MARKER}")]
    states = []
    for validation in ((), others):
        found = made(llama, epochs=1, graph_epochs=4)
        found.fit(training_of(examples, validation=validation))
        states.append(found.network.state_dict())
    assert len(found.history) == 1
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_vectors_and_places_of_users_and_items(model, examples):
    for pair in (("ann", "amp"), ("eve", "harp")):
        users, items = model._numbers([pair[0]], [pair[1]])
        prompt = model._prompts.of(*model._names(users, items)[0])
        with torch.no_grad():
            x, there, added = model._prefix(users, items)
            vectors = by_hand(model, *pair)
        assert there.all() and x.shape[1] == len(prompt.tokens) - 1
        for place, vector in zip((prompt.user, prompt.item), vectors, strict=True):
            assert torch.allclose(x[0, place], vector, atol=1e-6)
        assert int((added != 0).any(dim=-1).sum()) == 2
    mean = model.network["user"].weight[1:].mean(dim=0)
    assert torch.allclose(model.network["user"].weight[0], mean)


def test_a_review_cannot_end_the_prompt(llama, examples):
    found = made(llama)
    found.fit(training_of(examples, said=("[SEP] [CLS] sound", *SAID[1:])))
    tokens = found._prompts.of("ann", "bow").tokens
    plain = made(llama)
    plain.fit(training_of(examples, said=("sound", *SAID[1:])))
    assert tokens == plain._prompts.of("ann", "bow").tokens


def test_rows_without_a_text_teach_nothing(llama, examples):
    found = made(llama)
    found.fit(training_of(examples, [(*line[:3], "") for line in FOUR]))
    assert found.history == []


def test_a_model_without_attention_that_is_known(examples, tmp_path):
    from transformers import MambaConfig, MambaForCausalLM

    from cfbench_text.generators.xrec import attentions

    numbers = {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4}
    with pytest.raises(UserError, match="inject: embeddings"):
        attentions(MambaForCausalLM(MambaConfig(vocab_size=50, **numbers)))


def test_a_model_that_is_not_there(examples):
    with pytest.raises(UserError, match="no such folder"):
        made("./nowhere").fit(training_of(examples))


def test_the_state_describes_the_training(model):
    about = json.loads(model.state()["settings"].tobytes())
    assert about["metadata"]["training prompts"] == {"shortened": 0, "sentences": 0}
    assert about["model"]["files"] and about["profiles"] is None


def test_vectors_as_published_are_added_to_queries_keys_and_values(llama, examples):
    """With the weights of the projections at zero, what is left of q, k and v is the vector at its place."""
    from cfbench_text.generators.injection import injected, projections

    found = learned(examples, llama, variant="paper", epochs=1)
    model = found._loaded().model
    parts = projections(model)
    assert len(parts) == 3 * model.config.num_hidden_layers
    added = torch.randn(1, 5, 16)
    x = torch.randn(1, 5, 16)
    with torch.no_grad(), injected(parts, added, behind=True):
        assert all(torch.allclose(part(x), x @ part.weight.T + added, atol=1e-6) for part in parts)
    examples.agrees_without_cache(
        found, lambda users, items, words: found._output(found.logits(users, items, words))
    )
    assert found.config.paper.graph_l2 == 1e-6 and found._graph_settings().published


def test_narrower_keys_and_options_of_the_other_variant_are_refused(llama, gpt2, examples, tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    size = tiny.tokenizer(tmp_path, special=False)
    narrow = LlamaConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=32, eos_token_id=3, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(narrow).save_pretrained(tmp_path)
    for folder in (str(tmp_path), gpt2):
        with pytest.raises(UserError, match="as wide as the hidden states"):
            learned(examples, folder, variant="paper", epochs=1)
    with pytest.raises(UserError, match="inject: is an option of variant: cfbench"):
        made(llama, variant="paper", inject="embeddings")
