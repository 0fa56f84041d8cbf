"""Precision, recall and F1 of all statements of a generator together."""

import math

import pandas as pd
import pytest

from cfbench_text.analysis.corpus import of_statements
from cfbench_text.analysis.topics import counts, shares


def measured(*rows):
    found = of_statements([pd.DataFrame(rows, columns=["judge", "side", "verdict"])])
    return [found[f"corpus {name} (j)"] for name in ("P", "R", "F1")]


@pytest.mark.parametrize("written", [[], [("j", "text", "undecided")]], ids=["no statements", "undecided"])
def test_a_side_without_verdicts_has_no_precision_and_no_f1(written):
    precision, recall, f1 = measured(
        *written, ("j", "reference", "entailed"), ("j", "reference", "unsupported")
    )
    assert math.isnan(precision) and recall == 0.5 and math.isnan(f1)


def test_nothing_entailed_is_f1_zero():
    assert measured(("j", "text", "unsupported"), ("j", "reference", "contradicted")) == [0, 0, 0]


@pytest.mark.parametrize("text", ["entailed", "unsupported", "undecided", None])
@pytest.mark.parametrize("reference", ["entailed", "unsupported", "undecided", None])
def test_f1_is_that_of_topics(text, reference):
    given = [(side, verdict) for side, verdict in (("text", text), ("reference", reference)) if verdict]
    if not {text, reference} & {"entailed", "unsupported"}:
        return  # without verdicts there are no rows
    counted = counts(
        pd.DataFrame([("u", *one) for one in given], columns=["user", "side", "verdict"]), ["side", "user"]
    )
    found = shares(counted)
    expected = [found["precision"], found["recall"], found["F1"]]
    assert measured(*(("j", *one) for one in given)) == pytest.approx(expected, nan_ok=True)


def test_counts_of_all_texts_and_undecided_verdicts():
    sides = [("text", "entailed"), ("text", "contradicted"), ("text", "undecided"), ("reference", "entailed")]
    assert measured(*(("j", *one) for one in sides)) == pytest.approx([1 / 2, 1, 2 / 3])
