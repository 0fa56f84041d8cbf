"""The verdict on each statement: by hand, then against the metrics that use the same verdicts."""

import numpy as np
import pytest

from cfbench_core import api
from cfbench_core.analyses import find, run_analysis
from cfbench_core.registry import installed
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.statement_table import statement_rows
from cfbench_text.triplets import Triplet

SAID = (Triplet("bass is deep", "sound", "positive"), Triplet("it is cheap", "price", "positive"))
TRUE = (Triplet("deep bass", "sound", "positive"), Triplet("it costs too much", "price", "negative"))


def rows(verdicts, said=SAID, true=TRUE):
    answers = ObservedTexts(
        ["text"], ["reference"], [said], [true], load_domain("toy-reviews"), verdicts=verdicts
    )
    return statement_rows(["u"], answers, {"j": verdicts})


def matrix(*of_statements):
    """(entailment, contradiction, neutral) for each statement and each of the other side."""
    return np.array(of_statements, dtype=np.float64).reshape(len(of_statements), -1, 3)


def reported(table):
    shown = table[["side", "statement", "verdict", "other"]].astype(object)
    return list(shown.where(shown.notna(), None).itertuples(index=False, name=None))


def test_the_other_statement_is_the_one_that_the_verdict_rests_on():
    found = rows(
        Verdicts(
            of_predicted=[matrix([0.9, 0.0, 0.1, 0.0, 0.0, 1.0], [0.0, 0.1, 0.9, 0.0, 0.8, 0.2])],
            of_evidence=[matrix([0.9, 0.0, 0.1, 0.0, 0.0, 1.0], [0.2, 0.1, 0.7, 0.3, 0.1, 0.6])],
        )
    )
    assert reported(found) == [
        ("text", "bass is deep", "entailed", "deep bass"),
        ("text", "it is cheap", "contradicted", "it costs too much"),
        ("reference", "deep bass", "entailed", "bass is deep"),
        ("reference", "it costs too much", "unsupported", None),  # 0.3 is not enough, and 0.2 is not either
    ]


def test_the_one_that_entails_it_is_not_one_that_denies_it_though_its_number_is_higher():
    denied, entailed = [0.45, 0.55, 0.0], [0.4, 0.3, 0.3]
    found = rows(Verdicts([matrix([*denied, *entailed])], [matrix([0, 0, 1], [0, 0, 1])]), said=SAID[:1])
    assert reported(found)[0] == ("text", "bass is deep", "entailed", "it costs too much")


def test_nothing_on_the_other_side_supports_nothing():
    found = rows(Verdicts([np.zeros((2, 0, 3))], [np.zeros((0, 2, 3))]), true=())
    assert reported(found) == [("text", t.statement, "unsupported", None) for t in SAID]


def test_a_judge_of_documents_gives_support_without_a_decisive_statement():
    found = rows(Verdicts(supported=[np.array([0.51, 0.5])], covered=[np.array([1.0, 0.0])]))
    assert reported(found) == [
        ("text", "bass is deep", "entailed", None),
        ("text", "it is cheap", "unsupported", None),
        ("reference", "deep bass", "entailed", None),
        ("reference", "it costs too much", "unsupported", None),
    ]


JUDGE = '''
class SameTopic:
    """Gives support and nothing else, as a language model that is queried about a whole review."""

    def __init__(self, config): ...

    def prepare(self, statements): ...

    def support(self, pairs):
        return [float(any(t.topic == s.topic for t in document.triplets)) for document, s in pairs]

    def signature(self):
        return {"judge": "same topic"}
'''


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    (folder / "judge_of_documents.py").write_text(JUDGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        patch.syspath_prepend(folder)
        yield api.run(
            {
                "suite": "text",
                "executor": "inline",
                "data": [{"name": "toy-reviews", "users": 8, "items": 10}],
                "extractor": "rules",
                "generators": ["item-review", "shuffled-reference"],
                "judges": [{"import": "judge_of_documents:SameTopic", "label": "topic"}],
            },
            out=folder / "run",
        )


def test_the_statements_of_a_run_agree_with_st2exp(run):
    statements = run.table("statements.parquet")
    share = statements[statements["side"] == "text"].groupby(["model", "unit"])["verdict"]
    share = share.agg(lambda verdicts: (verdicts == "entailed").mean())
    scores = run.scores[run.scores["metric"] == "St2Exp-P (topic)"].dropna(subset="value")
    values = scores.set_index(["model", "unit"])["value"]
    assert len(values) and values.to_dict() == pytest.approx(share.to_dict())


@pytest.mark.parametrize("name", ["topics", "examples", "gap", "corpus"])
def test_all_analyses_support_a_judge_of_documents(run, name):
    found = run_analysis(find(name, [run], installed()), [run], installed())
    assert len(found.table)


def test_topics_and_examples_of_such_a_judge(run):
    topics = run_analysis(find("topics", [run], installed()), [run], installed()).table
    assert set(topics["judge"]) == {"topic"} and topics["contradicted"].isna().all()
    assert topics["precision"].between(0, 1).all() and topics["in_texts"].sum() > 0
    examples = run_analysis(find("examples", [run], installed()), [run], installed())
    supported = examples.table[(examples.table["side"] == "text") & (examples.table["verdict"] == "entailed")]
    assert supported["closest"].notna().all()  # the one on its topic: such a judge names none
    assert "supported:" in examples.text
