import numpy as np
import pytest

from cfbench_text.domains import load_domain
from cfbench_text.metrics.bartscore import BARTScore, Config
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.tiny import encoder_decoder

pytest.importorskip("transformers", reason="needs cfbench-text[models]")

TEXTS = ["the sound is good", "price", "the strings break . they may", "", "the tone"]
REFERENCES = ["the sound is bad", "the price is low", "easy tone", "bad tone and rich sound", ""]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(encoder_decoder(tmp_path_factory.mktemp("model")))


def literal(folder, source, target):
    """log p of every token of the target, one at a time, with the decoder run anew for each."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForSeq2SeqLM.from_pretrained(folder).eval(),
    )
    read, reported = tokenizer(source, return_tensors="pt").input_ids, tokenizer(target).input_ids
    before, found = [model.config.decoder_start_token_id], []
    for token in reported:
        with torch.no_grad():
            logits = model(input_ids=read, decoder_input_ids=torch.tensor([before])).logits[0, -1]
        found.append(float(torch.log_softmax(logits, dim=-1)[token]))
        before.append(token)
    return float(np.mean(found))


@pytest.mark.parametrize("batch", [1, 3])
def test_both_directions_equal_the_literal_loop(folder, batch):
    metric = BARTScore(Config(model=folder, batch=batch))
    none = [()] * len(TEXTS)
    found = metric.compute(ObservedTexts(TEXTS, REFERENCES, none, none, load_domain("toys")))
    pairs = list(zip(TEXTS, REFERENCES, strict=True))[:-1]
    p, r = [literal(folder, b, a) for a, b in pairs], [literal(folder, a, b) for a, b in pairs]
    np.testing.assert_allclose(found["BARTScore-P"][:-1], p, atol=1e-5)
    np.testing.assert_allclose(found["BARTScore-R"][:-1], r, atol=1e-5)
    np.testing.assert_allclose(found["BARTScore-F"][:-1], np.add(p, r) / 2, atol=1e-5)
    assert all(np.isnan(values[-1]) for values in found.values())  # there is no reference
    assert np.abs(np.subtract(p, r)).max() > 0.01  # the directions differ, so the test tells them apart
