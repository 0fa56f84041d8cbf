"""``protocol.learn: written``: generators learn to write the reviews themselves, as in table VII of Statement factuality."""

import pytest

from cfbench_core import api
from cfbench_core.analyses import find, run_analysis
from cfbench_core.registry import installed
from cfbench_text.models.tiny import encoder

STUDY = {
    "suite": "text",
    "executor": "inline",
    "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
    "extractor": "rules",
    "judges": ["overlap"],
}
GENERATORS = [
    "item-review",
    {"name": "att2seq", "epochs": 1, "length": 20},
    "reference",
]


def run_with(tmp_path, monkeypatch, name, **settings):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return api.run({**STUDY, "generators": GENERATORS, **settings}, out=tmp_path / name)


def texts(run, model):
    table = run.explanations
    return table[table["model"] == model].set_index("unit")["text"].to_dict()


@pytest.mark.slow
def test_texts_are_reviews_and_references_stay_as_configured(tmp_path, monkeypatch):
    paragraphs = run_with(tmp_path, monkeypatch, "paragraphs")
    reviews = run_with(tmp_path, monkeypatch, "reviews", protocol={"learn": "written"})
    assert texts(paragraphs, "reference") == texts(reviews, "reference"), "learning changes no reference"
    begun = [text for text in texts(reviews, "item-review").values() if text.startswith("The user ")]
    assert not begun and any(texts(reviews, "item-review").values())
    assert all(text.startswith("The user ") for text in texts(paragraphs, "item-review").values() if text)


@pytest.mark.slow
def test_learned_reviews_against_reviews_are_table_7(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    sts = {"name": "sts", "model": str(encoder(tmp_path / "model"))}
    written = {"learn": "written", "reference": "written"}
    run = run_with(tmp_path, monkeypatch, "reviews", protocol=written, metrics=[sts, "bleu", "st2exp"])
    found = run_analysis(find("reproduction", [run], installed()), [run], installed(), {}).table
    rows = found[~found["table"].isin(["II", "claims"])]
    assert rows["table"].tolist() == ["VII"] and rows["metric"].tolist() == ["STS"]
    assert (rows["printed_low"].item(), rows["printed_high"].item()) == (0.2977, 0.4040)
    of_model = run.scores.query("model == 'att2seq' and metric == 'STS'")["value"]
    assert rows["ours"].item() == pytest.approx(of_model.mean())


def test_another_word_is_refused(tmp_path, monkeypatch):
    with pytest.raises(Exception, match=r"protocol\.learn"):
        run_with(tmp_path, monkeypatch, "wrong", protocol={"learn": "titles"})
