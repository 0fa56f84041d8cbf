import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.metrics import summac_conv, summac_zs
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.pairs import Pairs
from cfbench_text.sentence_segmentation import sentences

TEXTS = ["The sound is good. The price is low.", "It breaks. It is easy. It is rich.", "", "Rich tone."]
REFERENCES = ["The sound is bad. It breaks. It is cheap.", "It is easy.", "Good strings.", ""]


def answers(texts=TEXTS, references=REFERENCES):
    none = [()] * len(texts)
    return ObservedTexts(texts, references, none, none, load_domain("toys"))


@pytest.fixture
def verdicts(monkeypatch):
    """Probabilities drawn at random for each (premise, hypothesis), in place of a model."""
    drawn = {}

    def probabilities(self, pairs):
        for pair in pairs:
            seed = sum(map(ord, pair[0])) * 1000 + sum(map(ord, pair[1]))
            drawn.setdefault(pair, np.random.default_rng(seed).dirichlet(np.ones(3)))
        assert len(set(pairs)) == len(pairs)
        return np.array([drawn[pair] for pair in pairs]).reshape(len(pairs), 3)

    monkeypatch.setattr(Pairs, "probabilities", probabilities)
    return drawn


def brute(drawn, text, reference, how):
    """Premises are the reference's sentences, hypotheses the text's."""
    values = []
    for hypothesis in sentences(text):
        said = [drawn[premise, hypothesis] for premise in sentences(reference)]
        if how == "apart":
            values.append(max(one[0] for one in said) - max(one[1] for one in said))
        else:
            values.append(max(one[0] - one[1] for one in said))
    return sum(values) / len(values)


@pytest.mark.parametrize("how", ["apart", "difference"])
def test_zs_equals_brute_force_in_the_direction_it_names(verdicts, how):
    found = summac_zs.SummaCZS(summac_zs.Config(score=how)).compute(answers())
    for row in (0, 1):
        assert found["SummaC-ZS-P"][row] == pytest.approx(brute(verdicts, TEXTS[row], REFERENCES[row], how))
        assert found["SummaC-ZS-R"][row] == pytest.approx(brute(verdicts, REFERENCES[row], TEXTS[row], how))
    assert found["SummaC-ZS-P"][2] == found["SummaC-ZS-R"][2] == -1  # an empty text
    assert np.isnan(found["SummaC-ZS-P"][3]) and np.isnan(found["SummaC-ZS-R"][3])  # no reference


def test_zs_of_no_rows(verdicts):
    assert summac_zs.SummaCZS(summac_zs.Config()).compute(answers([], []))["SummaC-ZS-P"].shape == (0,)


@pytest.fixture
def weights(data):
    pytest.importorskip("torch")
    return data / "expected" / "summac_conv_vitc_sent_perc_e.bin"


def test_the_published_head_of_conv_hardly_reacts_to_uncertain_entailment(weights):
    head = summac_conv.Head.read(weights)
    nothing, half, all_of_it = (np.full((1, 1, 3), value) for value in (0.0, 0.5, 1.0))
    assert head.score(nothing) == pytest.approx(0.200, abs=5e-4)
    assert head.score(half) == pytest.approx(0.22, abs=5e-3)
    assert head.score(all_of_it) > 0.9


def test_convs_head_equals_the_network_written_out(weights):
    import torch

    state = torch.load(weights, weights_only=True)
    draw = np.random.default_rng(0)
    for sentences_, premises in ((1, 3), (4, 7), (10, 1)):
        matrix = draw.random((sentences_, premises, 3))
        histograms = torch.zeros(sentences_, 23)
        for k in range(sentences_):
            for value in matrix[k, :, 0]:
                inside = [
                    b
                    for b in range(23)
                    if summac_conv.EDGES[b] <= value and (value < summac_conv.EDGES[b + 1] or b == 22)
                ]
                histograms[k, inside[0]] += 1
        mean = torch.nn.functional.linear(histograms, state["mlp.weight"], state["mlp.bias"]).mean()
        logits = torch.nn.functional.linear(
            mean.repeat(3), state["layer_final.weight"], state["layer_final.bias"]
        )
        expected = float(torch.softmax(logits, dim=-1)[1])
        assert summac_conv.Head.read(weights).score(matrix) == pytest.approx(expected, abs=1e-6)


def test_conv_warns_of_a_model_it_was_not_trained_on(weights, verdicts):
    with pytest.warns(UserWarning, match="0.20 means nothing"):
        found = summac_conv.SummaCConv(
            summac_conv.Config(model="another/model", weights=str(weights))
        ).compute(answers())
    assert found["SummaC-Conv-P"][2] == 0 and np.isnan(found["SummaC-Conv-P"][3])


def test_conv_with_its_own_model_does_not_warn_and_reads_ten_sentences(weights, verdicts, recwarn):
    metric = summac_conv.SummaCConv(summac_conv.Config(weights=str(weights)))
    metric.compute(answers())
    assert not recwarn
    with pytest.warns(UserWarning, match="reads 10 of 12"):
        metric.compute(answers(["Good. " * 12], ["It breaks."]))


def test_weights_that_are_not_there_or_not_those(tmp_path):
    torch = pytest.importorskip("torch")
    with pytest.raises(UserError, match="no such file"):
        summac_conv.Head.read(tmp_path / "none.bin")
    torch.save({"mlp.weight": torch.zeros(1, 3)}, tmp_path / "other.bin")
    with pytest.raises(UserError, match="not those of SummaC-Conv"):
        summac_conv.Head.read(tmp_path / "other.bin")
