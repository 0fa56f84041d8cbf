"""The conformance kit over the components that query a pretrained model, with tiny models in its place."""

import pytest

from cfbench_core.registry import installed
from cfbench_core.specs import resolve
from cfbench_core.testing import NotApplicable, Subject, checks_for, verify
from cfbench_text.models import tiny
from cfbench_text.models.questions import AnswerSource, QuestionSource

pytest.importorskip("transformers", reason="needs cfbench-text[models]")

SPECS = {c.spec.id: c.spec for c in installed().components(suite="text") if c.spec.details.get("pretrained")}
LABELS = ["contradiction", "neutral", "entailment"]
OPTIONS = {
    "text/extractor/llm": ("causal", {"tokens": 4}),
    "text/judge/factcg": ("two_outputs", {}),
    "text/judge/llm": ("causal", {}),
    "text/judge/minicheck": ("two_outputs", {}),
    "text/judge/nli": ("classifier", {}),
    "text/judge/similarity": ("encoder", {}),
    "text/judge/trained": ("encoder", {}),
    "text/metric/lettucedetect": ("token_classifier", {}),
    "text/metric/bertscore": ("encoder", {"layer": 2}),
    "text/metric/sts": ("encoder", {}),
    "text/metric/summac-zs": ("classifier", {}),
    "text/metric/summac-conv": ("classifier", {}),
    "text/metric/bartscore": ("encoder_decoder", {}),
    "text/metric/bleurt": ("one_output", {}),
    "text/metric/alignscore": ("encoder", {}),
    "text/metric/seval": ("causal", {"tokens": 4}),
    "text/metric/questeval": ("t5", {}),
    "text/generator/pepler": (
        "causal",
        {"epochs": 3, "length": 20, "learning_rate": 0.01, "device": "cpu"},
    ),
    "text/generator/xrec": (
        "causal",
        {"batch": 8, "length": 20, "learning_rate": 0.01, "graph_epochs": 10, "device": "cpu"},
    ),
}
OF_REAL_MODELS = {"the-reference-is-no-worse-than-another-text"}
"""Checks that only models with trained weights can pass."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {
        "causal": lambda folder: tiny.causal(folder, context=8192),
        "classifier": lambda folder: tiny.classifier(folder, LABELS),
        "one_output": lambda folder: tiny.classifier(folder, ["LABEL_0"]),
        "two_outputs": lambda folder: tiny.classifier(folder, ["LABEL_0", "LABEL_1"]),
        "encoder": tiny.encoder,
        "encoder_decoder": tiny.encoder_decoder,
        "t5": tiny.t5,
        "token_classifier": tiny.token_classifier,
    }
    return {name: str(make(tmp_path_factory.mktemp(name))) for name, make in made.items()}


def aligned(encoder, path):
    """AlignScore's heads on an encoder, in the names of the published checkpoint."""
    import torch
    from transformers import AutoModel

    state = {
        f"base_model.{name}": one for name, one in AutoModel.from_pretrained(encoder).state_dict().items()
    }
    for name, outputs in (("bin_layer", 2), ("tri_layer", 3), ("reg_layer", 1)):
        state |= {f"{name}.weight": torch.ones(outputs, 16) / 16, f"{name}.bias": torch.arange(outputs) / 2}
    torch.save({"state_dict": state}, path)
    return path


def test_every_such_component_is_here():
    assert set(SPECS) == set(OPTIONS)


@pytest.mark.filterwarnings(
    "ignore:SummaC-Conv",
    "ignore:.* are cut:UserWarning",
    "ignore:SEval",
    "ignore:.* no end within",
    "ignore:judge trained",
)
@pytest.mark.parametrize(
    ("component", "check"),
    [(name, check) for name in OPTIONS for check in checks_for(name) if check.name not in OF_REAL_MODELS],
    ids=str,
)
def test_conformance(component, check, folders, request, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "answers-of-tiny-models"))
    model, more = OPTIONS[component]
    if component == "text/metric/summac-conv":
        data = request.getfixturevalue("data")
        more = {"weights": str(data / "expected" / "summac_conv_vitc_sent_perc_e.bin")}
    if component == "text/metric/alignscore":
        more = {"checkpoint": str(aligned(folders[model], tmp_path_factory.getbasetemp() / "aligned.ckpt"))}
    if component == "text/judge/factcg":
        prompt = tmp_path_factory.getbasetemp() / "prompt.txt"
        prompt.write_text("text {text_a} statement {text_b}")
        more = {"prompt": str(prompt)}
    options = {"model": folders[model], **more}
    if component == "text/metric/questeval":
        options = {
            "generator": QuestionSource(model=folders[model], tokens=4),
            "answerer": AnswerSource(model=folders[model], tokens=4, unanswerable="bad"),
        }
    subject = Subject(SPECS[component], resolve(SPECS[component].config)(**options))
    try:
        verify(check, subject)
    except NotApplicable as why:
        pytest.skip(str(why))
