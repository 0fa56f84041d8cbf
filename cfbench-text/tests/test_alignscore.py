import pickle
import re

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.metrics.alignscore import AlignScore, Config, chunks
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models import tiny
from cfbench_text.sentence_segmentation import sentences

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

TEXTS = [
    "The sound is good. The price is low! It may break.",
    "Easy to play.",
    "",
    "The tone is rich.",
    "The tone is rich. The tone is rich.",
]
REFERENCES = [
    "The sound is bad. It breaks.",
    "The strings are good, and the price is low. They break. The tone is rich. Easy.",
    "Good strings.",
    "",
    "The tone is rich. The sound is bad.",
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small RoBERTa; its own weights are not those of the checkpoint."""
    return str(tiny.roberta(tmp_path_factory.mktemp("encoder")))


def published_layout(folder):
    """What the published file holds, with weights drawn at random: Lightning's entries, old buffers, an unused head."""
    import torch

    torch.manual_seed(7)
    config = transformers.AutoConfig.from_pretrained(folder)
    encoder = transformers.RobertaModel(config)
    heads = {"bin_layer": 2, "tri_layer": 3, "reg_layer": 1}
    state = {f"base_model.{name}": tensor for name, tensor in encoder.state_dict().items()}
    state["base_model.embeddings.position_ids"] = torch.arange(config.max_position_embeddings)[None]
    for name, outputs in heads.items():
        layer = torch.nn.Linear(config.hidden_size, outputs)
        layer.bias.data += 0.5  # so that the regression is within [0, 1]
        state |= {f"{name}.weight": layer.weight.data, f"{name}.bias": layer.bias.data}
    state["mlm_head.bias"] = torch.zeros(config.vocab_size)
    return {
        "epoch": 0,
        "global_step": 1,
        "pytorch-lightning_version": "1.7.7",
        "state_dict": state,
        "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_score": None, "dirpath": "x"}},
        "optimizer_states": [{"state": {0: {"step": 1}}, "param_groups": [{"lr": 1e-5}]}],
        "hparams_name": "kwargs",
        "hyper_parameters": {"model": "roberta-large", "using_pretrained": True},
    }


@pytest.fixture(scope="module")
def checkpoint(folder, tmp_path_factory):
    import torch

    path = tmp_path_factory.mktemp("checkpoint") / "AlignScore-tiny.ckpt"
    torch.save(published_layout(folder), path)
    return str(path)


def score(config, texts=TEXTS, references=REFERENCES):
    none = [()] * len(texts)
    found = AlignScore(config).compute(ObservedTexts(texts, references, none, none, load_domain("toys")))
    return np.array([found["AlignScore-P"], found["AlignScore-R"]])


class Literal:
    """One chunk and one sentence at a time, padded to the full length as the published code does."""

    def __init__(self, folder, checkpoint):
        import torch

        state = torch.load(checkpoint, weights_only=True)["state_dict"]
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.encoder = transformers.RobertaModel(transformers.AutoConfig.from_pretrained(folder)).eval()
        inside = {n.removeprefix("base_model."): t for n, t in state.items() if n.startswith("base_model.")}
        self.encoder.load_state_dict(inside, strict=False)
        self.state = state

    def alignment(self, context, claim, head):
        import torch

        given = self.tokenizer(
            context, claim, truncation="only_first", padding="max_length", max_length=510, return_tensors="pt"
        )
        with torch.no_grad():
            first = self.encoder(**given).pooler_output[0]
        logits = self.state[f"{head}.weight"] @ first + self.state[f"{head}.bias"]
        if head == "reg_layer":
            return min(max(float(logits[0]), 0.0), 1.0)
        return float(torch.softmax(logits, dim=-1)[0 if head == "tri_layer" else 1])

    def score(self, parts, claim, head="tri_layer"):
        return np.mean([max(self.alignment(part, one, head) for part in parts) for one in sentences(claim)])


HEADS = {"three-way": "tri_layer", "binary": "bin_layer", "regression": "reg_layer"}


@pytest.mark.parametrize("head", HEADS)
def test_equals_the_literal_loops_in_the_direction_it_names(folder, checkpoint, head):
    found = score(Config(model=folder, checkpoint=checkpoint, head=head, batch=3))
    literal = Literal(folder, checkpoint)
    for row in (0, 1, 4):
        expected = [
            literal.score([REFERENCES[row]], TEXTS[row], HEADS[head]),
            literal.score([TEXTS[row]], REFERENCES[row], HEADS[head]),
        ]
        np.testing.assert_allclose(found[:, row], expected, atol=1e-5)
    assert (found[:, 2] == 0).all()  # an empty text
    assert np.isnan(found[:, 3]).all()  # no reference
    assert abs(found[0, 1] - found[1, 1]) > 1e-4  # precision is not recall


def test_a_context_is_read_in_chunks_of_sentences(folder, checkpoint):
    text, reference = TEXTS[0], REFERENCES[1]  # 15 words in 4 sentences
    literal = Literal(folder, checkpoint)
    whole, pieces = (sentences(reference), sentences(reference))
    for words, parts in (
        (350, [" ".join(whole)]),
        (10, [" ".join(pieces[:2]), " ".join(pieces[2:])]),
        (1, pieces),
    ):
        found = score(Config(model=folder, checkpoint=checkpoint, chunk=words), [text], [reference])
        assert found[0, 0] == pytest.approx(literal.score(parts, text), abs=1e-5)


@pytest.mark.parametrize(
    ("counts", "words", "expected"),
    [
        ([3, 3, 3, 3], 350, [4]),
        ([100, 100, 100, 49], 350, [4]),  # 349 words: one part
        ([100, 100, 100, 50], 350, [2, 2]),  # 350 words: two parts
        ([100] * 7, 350, [2, 2, 2, 1]),  # 700 words: three parts of 7 // 3 sentences, and what is left
        ([2000], 350, [1]),  # a sentence is not divided
        ([], 350, []),
    ],
)
def test_chunks_by_hand(counts, words, expected):
    said = [" ".join(["word"] * count) for count in counts]
    assert [part.count("word") for part in chunks(said, words)] == [
        sum(counts[sum(expected[:at]) : sum(expected[: at + 1])]) for at in range(len(expected))
    ]


def test_a_chunk_that_is_too_long_loses_its_end_and_is_counted(folder, checkpoint):
    text, reference = "The tone is rich.", "The sound is good and low " * 40  # a byte is a token
    with pytest.warns(UserWarning, match=r"pairs are longer than the 510 tokens that AlignScore on .* reads"):
        found = score(Config(model=folder, checkpoint=checkpoint), [text], [reference])
    assert found[0, 0] == pytest.approx(
        Literal(folder, checkpoint).score([reference.strip()], text), abs=1e-5
    )
    assert np.isfinite(found).all()


def test_batches_do_not_change_a_value_and_pairs_are_computed_once(folder, checkpoint, monkeypatch):
    from cfbench_text.models.pair_values import PairValues

    alone = [
        score(Config(model=folder, checkpoint=checkpoint), [a], [b])
        for a, b in zip(TEXTS, REFERENCES, strict=True)
    ]
    requested = []
    plain = PairValues.values
    monkeypatch.setattr(
        PairValues, "values", lambda self, pairs: requested.extend(pairs) or plain(self, pairs)
    )
    together = score(Config(model=folder, checkpoint=checkpoint, batch=2), TEXTS * 2, REFERENCES * 2)
    np.testing.assert_allclose(together, np.hstack([*alone, *alone]), atol=1e-6)
    assert len(requested) == len(set(requested))


def test_safetensors_of_the_same_names_give_the_same(folder, checkpoint, tmp_path):
    import torch
    from safetensors.torch import save_file

    state = torch.load(checkpoint, weights_only=True)["state_dict"]
    path = tmp_path / "aligned.safetensors"
    save_file({name: tensor.contiguous().clone() for name, tensor in state.items()}, path)
    expected = score(Config(model=folder, checkpoint=checkpoint))
    np.testing.assert_array_equal(score(Config(model=folder, checkpoint=str(path))), expected)


def test_no_rows(folder, checkpoint):
    assert score(Config(model=folder, checkpoint=checkpoint), [], []).shape == (2, 0)


class Evil:
    def __reduce__(self):
        return (print, ("code of the file was run",))


def wrong(config):
    with pytest.raises(UserError) as error:
        score(config)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_object_that_is_no_tensor_is_refused_and_not_run(folder, tmp_path, capsys):
    import torch

    torch.save({**published_layout(folder), "callbacks": Evil()}, tmp_path / "evil.ckpt")
    found = wrong(Config(model=folder, checkpoint=str(tmp_path / "evil.ckpt")))
    assert re.search(r"holds an object that is no tensor \((builtins\.)?print\), which is not read", found)
    (tmp_path / "plain.ckpt").write_bytes(pickle.dumps(Evil(), protocol=2))
    found = wrong(Config(model=folder, checkpoint=str(tmp_path / "plain.ckpt")))
    assert "holds an object that is no tensor" in found
    assert not capsys.readouterr().out


def test_other_files_are_refused_with_one_line(folder, tmp_path):
    import torch

    assert "no such file" in wrong(Config(model=folder, checkpoint=str(tmp_path / "none.ckpt")))
    (tmp_path / "text.ckpt").write_text("no checkpoint")
    assert "cannot be read" in wrong(Config(model=folder, checkpoint=str(tmp_path / "text.ckpt")))
    (tmp_path / "text.safetensors").write_text("no checkpoint")
    assert "cannot be read" in wrong(Config(model=folder, checkpoint=str(tmp_path / "text.safetensors")))
    torch.save({"state_dict": {}}, tmp_path / "empty.ckpt")
    assert "has no tensors" in wrong(Config(model=folder, checkpoint=str(tmp_path / "empty.ckpt")))
    torch.save({"state_dict": {"other.weight": torch.zeros(3)}}, tmp_path / "other.ckpt")
    assert "is missing in the file" in wrong(Config(model=folder, checkpoint=str(tmp_path / "other.ckpt")))


def test_the_checkpoint_of_another_encoder_is_refused_with_one_line(folder, checkpoint, tmp_path):
    import torch

    config = transformers.AutoConfig.from_pretrained(folder)
    for change, what in (({"hidden_size": 32}, "word_embeddings"), ({"num_hidden_layers": 1}, "layer.1")):
        other = tmp_path / what
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(other)
        settings = transformers.RobertaConfig(**{**config.to_dict(), **change})
        settings.save_pretrained(other)
        found = wrong(Config(model=str(other), checkpoint=checkpoint))
        assert (
            "does not fit the model" in found and what in found and "AlignScore-large: roberta-large" in found
        )
    layout = published_layout(folder)
    del layout["state_dict"]["tri_layer.bias"]
    torch.save(layout, tmp_path / "no-head.ckpt")
    assert "tri_layer.bias is missing in the file" in wrong(
        Config(model=folder, checkpoint=str(tmp_path / "no-head.ckpt"))
    )


def test_the_signature_has_direction_head_and_both_hashes(folder, checkpoint):
    signature = AlignScore(Config(model=folder, checkpoint=checkpoint)).signature()
    assert (
        signature["direction"].startswith("P: context is the reference") and signature["head"] == "three-way"
    )
    assert len(signature["checkpoint"]) == 16 and signature["files"] and signature["torch"]
    assert checkpoint not in str(signature) and folder not in str(signature)
