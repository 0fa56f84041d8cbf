"""St2Exp, StEnt, StEnt-bin, StCoh, one-to-one matching, hallucination, against what their definitions say."""

import itertools
import math

import numpy as np
import pytest

from cfbench_text.domains import load_domain
from cfbench_text.entailment_batches import verdicts
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.metrics.hallucination import Hallucination
from cfbench_text.metrics.one_to_one import Config as MatchConfig
from cfbench_text.metrics.one_to_one import OneToOne
from cfbench_text.metrics.st2exp import Config as St2ExpConfig
from cfbench_text.metrics.st2exp import St2Exp
from cfbench_text.metrics.stcoh import StCoh
from cfbench_text.metrics.stent import StEnt
from cfbench_text.metrics.stent_bin import StEntBin
from cfbench_text.triplets import Triplet, render

A, B, C = (Triplet(f"the sound is {word}", "sound", "positive") for word in ("clear", "warm", "loud"))


def answers(predicted, evidence, of_predicted, of_evidence, empty="zero"):
    """One row with the entailment given; the rest of the probability is neutral."""

    def three(matrix, shape):
        entailment = np.asarray(matrix, dtype=float).reshape(shape)
        return np.stack([entailment, np.zeros(shape), 1 - entailment], axis=-1)

    n, m = len(predicted), len(evidence)
    said = Verdicts([three(of_predicted, (n, m))], [three(of_evidence, (m, n))])
    domain = load_domain("toy-reviews")
    return ObservedTexts(
        [render(predicted)], [render(evidence)], [predicted], [evidence], domain, empty, said
    )


def test_by_hand():
    """Two statements were written, one is said by the user, who said one more thing twice as surely."""
    row = answers((A, B), (A,), [[1.0], [0.2]], [[1.0, 0.0]])
    assert {name: value[0] for name, value in StEnt().compute(row).items()} == pytest.approx(
        {"StEnt-P": 0.6, "StEnt-R": 1.0, "StEnt-F1": 0.75}
    )
    assert StEntBin().compute(row)["StEnt-bin-P"][0] == 0.5
    found = Hallucination().compute(row)
    assert (found["hallucinated"][0], found["contradicted"][0], found["omitted"][0]) == (0.5, 0.0, 0.0)


def test_a_vague_reference_supports_one_statement_only_where_matching_is_one_to_one():
    row = answers((A, B, C), (A,), [[0.9], [0.8], [0.7]], [[0.9, 0.8, 0.7]])
    assert StEnt().compute(row)["StEnt-P"][0] == pytest.approx(0.8)
    found = OneToOne(MatchConfig()).compute(row)
    assert found["StMatch-P"][0] == pytest.approx(0.3) and found["StMatch-R"][0] == pytest.approx(0.9)


def literal(rows, f):
    """P and R as the paper writes them, for f(premise's row and column) in a matrix (h, p, 3)."""

    def mean(matrices, others):
        return [
            math.nan
            if not len(m)
            else sum(max(f(m[h, p]) for p in range(m.shape[1])) for h in range(len(m))) / len(m)
            if m.shape[1]
            else 0.0
            for m in matrices
        ]

    return mean(rows.verdicts.of_predicted, 0), mean(rows.verdicts.of_evidence, 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("metric", "name", "f"),
    [
        (StEnt(), "StEnt", lambda p: p[0]),
        (StEntBin(), "StEnt-bin", lambda p: float(p[0] == max(p))),
        (StCoh(), "StCoh", lambda p: p[0] - p[1]),
    ],
)
def test_brute_force(drawn, seed, metric, name, f):
    rows = drawn(seed=seed)
    precision, recall = literal(rows, f)
    found = metric.compute(rows)
    np.testing.assert_allclose(found[f"{name}-P"], precision)
    np.testing.assert_allclose(found[f"{name}-R"], recall)


@pytest.mark.parametrize("same", [(), ("topic",), ("sentiment",), ("topic", "sentiment")])
def test_one_to_one_matching_is_the_best_of_all_permutations(drawn, same):
    rows = drawn(rows=30, seed=4)
    found = OneToOne(MatchConfig(same=same)).compute(rows)["StMatch-P"]
    for row, (matrix, mine, others) in enumerate(
        zip(rows.verdicts.of_predicted, rows.predicted, rows.evidence, strict=True)
    ):
        weight = np.array([[matrix[h, p, 0] * all(getattr(one, k) == getattr(other, k) for k in same)
                            for p, other in enumerate(others)] for h, one in enumerate(mine)])  # fmt: skip
        n, m = len(mine), len(others)
        if n == 0:
            assert math.isnan(found[row])
            continue
        size = max(n, m)
        padded = np.zeros((size, size))
        if m:
            padded[:n, :m] = weight
        most = max(
            sum(padded[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(size))
        )
        assert found[row] == pytest.approx(most / n)


def test_support_by_a_document_counts_above_the_threshold_or_as_it_is(drawn):
    rows = drawn(seed=7)
    hard, soft = St2Exp(St2ExpConfig()).compute(rows), St2Exp(St2ExpConfig(threshold=None)).compute(rows)
    for row, (supported, other) in enumerate(zip(rows.verdicts.supported, rows.evidence, strict=True)):
        if len(supported) and other:
            assert hard["St2Exp-P"][row] == np.mean([value > 0.5 for value in supported])
            assert soft["St2Exp-P"][row] == pytest.approx(np.mean(supported))


@pytest.mark.parametrize(
    ("predicted", "evidence", "empty", "expected"),
    [
        ((), (A,), "zero", (math.nan, 0.0, 0.0)),
        ((A,), (), "zero", (0.0, math.nan, 0.0)),
        ((), (), "zero", (math.nan, math.nan, math.nan)),
        ((), (A,), "skip", (math.nan, math.nan, math.nan)),
        ((A,), (), "skip", (math.nan, math.nan, math.nan)),
    ],
)
def test_empty_sides(predicted, evidence, empty, expected):
    found = StEnt().compute(answers(predicted, evidence, [], [], empty))
    np.testing.assert_array_equal([found[f"StEnt-{part}"][0] for part in ("P", "R", "F1")], expected)


def test_rows_without_statements_are_not_dropped_from_recall(drawn):
    """The published code leaves them out of the mean, so that a generator gains by writing nothing."""
    zero, skip = (StEnt().compute(drawn(40, 1, empty))["StEnt-R"] for empty in ("zero", "skip"))
    assert np.isnan(skip).sum() > np.isnan(zero).sum()
    assert np.nanmean(zero) < np.nanmean(skip)


def test_contradicted_is_part_of_hallucinated(drawn):
    rows = drawn(60, 2)
    found = Hallucination().compute(rows)
    known = ~np.isnan(found["hallucinated"])
    assert (found["contradicted"][known] <= found["hallucinated"][known] + 1e-12).all()
    np.testing.assert_allclose(found["hallucinated"], 1 - StEntBin().compute(rows)["StEnt-bin-P"])


class Counting:
    """A judge that records its queries."""

    def __init__(self):
        self.requested = []

    def entailment(self, pairs):
        self.requested += pairs
        return np.tile([1.0, 0.0, 0.0], (len(pairs), 1))

    def support(self, pairs):
        self.requested += pairs
        return np.ones(len(pairs))


def test_each_distinct_query_is_sent_once_for_both_directions():
    judge = Counting()
    rows = [(A, B)] * 50
    said = verdicts(judge, {"entailment"}, rows, rows, [""] * 50, [""] * 50)
    assert sorted(judge.requested, key=str) == sorted(itertools.product((A, B), repeat=2), key=str)
    assert said.of_predicted[49].shape == (2, 2, 3)


def test_the_evaluated_statement_is_the_hypothesis():
    judge = Counting()
    verdicts(judge, {"entailment"}, [(A,)], [(B,)], [""], [""])
    assert judge.requested == [(B, A), (A, B)]  # first of the text's statement, given the reference


def test_documents_are_the_other_side():
    judge = Counting()
    verdicts(judge, {"support"}, [(A,)], [(B,)], ["text"], ["reference"])
    assert [(document.text, statement) for document, statement in judge.requested] == [
        ("reference", A),
        ("text", B),
    ]


@pytest.mark.parametrize("empty", ["zero", "skip"])
@pytest.mark.parametrize("other", [0.0, 1.0])
def test_a_side_whose_verdicts_are_all_undecided_has_no_f1(empty, other):
    """Not 0: it has statements, of which nothing is known."""
    unknown, known = np.array([np.nan, np.nan]), np.array([other])
    for said in (
        Verdicts(supported=[unknown], covered=[known]),
        Verdicts(supported=[known], covered=[unknown]),
    ):
        row = ObservedTexts(["a"], ["b"], [(A, B)], [(A,)], load_domain("toy-reviews"), empty, said)
        found = {name: value[0] for name, value in St2Exp(St2ExpConfig()).compute(row).items()}
        assert math.isnan(found["St2Exp-F1"])
        assert sorted([found["St2Exp-P"], found["St2Exp-R"]], key=math.isnan)[0] == other


def test_a_side_without_statements_counts_as_zero_in_f1():
    said = Verdicts(supported=[np.zeros(0)], covered=[np.zeros(1)])
    row = ObservedTexts([""], ["b"], [()], [(A,)], load_domain("toy-reviews"), "zero", said)
    assert St2Exp(St2ExpConfig()).compute(row)["St2Exp-F1"][0] == 0
