"""Precision, recall and F1 of all statements of a generator together."""

import math

import pandas as pd
import pytest

from cfbench_text.analysis.corpus import of_statements


def measured(*rows):
    found = of_statements([pd.DataFrame(rows, columns=["judge", "side", "verdict"])])
    return [found[f"corpus {name} (j)"] for name in ("P", "R", "F1")]


def test_a_generator_without_statements_has_no_precision():
    precision, recall, f1 = measured(("j", "reference", "unsupported"), ("j", "reference", "unsupported"))
    assert math.isnan(precision) and recall == f1 == 0


def test_counts_of_all_texts_and_undecided_verdicts():
    sides = [("text", "entailed"), ("text", "contradicted"), ("text", "undecided"), ("reference", "entailed")]
    assert measured(*(("j", *one) for one in sides)) == pytest.approx([1 / 2, 1, 2 / 3])
