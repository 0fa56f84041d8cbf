"""How often two explainers give the same answers."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from cfbench_recsys.analysis.agreement import Agreement

agreement = Agreement()
EXPLICIT = {"format": "explicit", "level": "list", "model": "lightgcn", "scope": "full"}


def explicit(make_cell: Any, name: str, answers: list[Any], **given: Any) -> dict[str, Any]:
    """A cell with these answers, a list of edits for each user."""
    worked = [float(bool(edits)) for edits in answers]
    return make_cell(name, {"PN-S@2": worked}, answers=answers, **{**EXPLICIT, **given})  # type: ignore[no-any-return]


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """Of three units answered by both, one answer is the same, one shares 1 of 3 edits, one shares none: (1 + 1/3) / 3."""
    run = write(
        explicit(make_cell, "a", [["i1", "i2"], ["i1", "i2"], ["i3"], ["i4"]]),
        explicit(make_cell, "b", [["i2", "i1"], ["i2", "i3"], ["i4"], []]),
    )
    assert agreement.incompatibility([run]) == ""
    table = agreement.table([run])
    assert table[["metric", "explainer", "other", "mean", "n"]].values.tolist() == [
        ["identical answers", "a", "b", pytest.approx(1 / 3), 3],
        ["overlap", "a", "b", pytest.approx(4 / 9), 3],
    ]


def test_an_edge_of_another_user_or_another_operation_is_another_edit(write: Any, make_cell: Any) -> None:
    run = write(
        explicit(make_cell, "a", [["i1"], ["i1"], ["i1"]]),
        explicit(make_cell, "b", [[("u9", "i1", "remove")], [("u1", "i1", "add")], [("u2", "i1", "remove")]]),
    )
    assert agreement.table([run])["mean"].tolist() == [pytest.approx(1 / 3)] * 2


def test_every_pair_of_a_setting_is_compared_and_no_pair_across_settings(write: Any, make_cell: Any) -> None:
    run = write(
        explicit(make_cell, "a", [["i1"]]),
        explicit(make_cell, "b", [["i1"]], role="baseline"),
        explicit(make_cell, "c", [["i2"]]),
        explicit(make_cell, "a", [["i1"]], scope="user-only"),
        explicit(make_cell, "c", [["i1"]], scope="user-only"),
    )
    table = agreement.table([run])
    pairs = table[table["metric"] == "identical answers"]
    assert pairs[["scope", "explainer", "other", "mean"]].values.tolist() == [
        ["full", "a", "b", 1.0],
        ["full", "a", "c", 0.0],
        ["full", "b", "c", 0.0],
        ["user-only", "a", "c", 1.0],
    ]


def test_overlaps_are_those_of_comparing_the_sets_of_each_unit(write: Any, make_cell: Any) -> None:
    draw = np.random.default_rng(0)
    answers = {
        name: [
            [(f"u{draw.integers(2)}", f"i{item}", str(draw.choice(["remove", "add"]))) for item in own]
            for own in (draw.choice(4, size=draw.integers(0, 4), replace=False) for _ in range(30))
        ]
        for name in "abcd"
    }
    table = agreement.table([write(*(explicit(make_cell, name, own) for name, own in answers.items()))])
    for row in table.to_dict("records"):
        pairs = zip(answers[row["explainer"]], answers[row["other"]], strict=True)
        both = [(set(one), set(other)) for one, other in pairs if one and other]
        overlaps = [len(one & other) / len(one | other) for one, other in both]
        expected = overlaps if row["metric"] == "overlap" else [overlap == 1 for overlap in overlaps]
        assert (row["mean"], row["n"]) == (pytest.approx(np.mean(expected)), len(both))
    assert len(table) == 12


def test_a_pair_without_a_unit_in_common_has_no_number(write: Any, make_cell: Any) -> None:
    run = write(explicit(make_cell, "a", [["i1"], []]), explicit(make_cell, "b", [[], ["i1"]]))
    table = agreement.table([run])
    assert np.isnan(table["mean"]).all() and table["n"].tolist() == [0, 0]
    assert agreement.words(table) == ""


def test_the_summary_names_the_pair_that_agrees_most(write: Any, make_cell: Any) -> None:
    run = write(
        explicit(make_cell, "a", [["i1"]] * 4),
        explicit(make_cell, "b", [["i1"]] * 3 + [["i2"]]),
        explicit(make_cell, "c", [["i3"]] * 4),
    )
    words = agreement.words(agreement.table([run]))
    assert words.startswith(
        "Of 3 pairs of explainers, 1 give identical answers for more than half of the units"
    )
    assert "a and b" in words and "0.75 (" in words and words.endswith("of 4 units.")


def test_the_figure_is_a_symmetric_matrix(write: Any, make_cell: Any) -> None:
    run = write(explicit(make_cell, "a", [["i1"], ["i2"]]), explicit(make_cell, "b", [["i1"], ["i1"]]))
    (figure,) = agreement.figures(agreement.table([run]))
    texts = ["".join(node.itertext()) for node in ElementTree.fromstring(figure.svg).iter()]
    assert texts.count("0.5") >= 2


def test_importances_and_single_explainers_have_no_agreement(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"POS-P@2": [1, 1]}),
        make_cell("b", {"POS-P@2": [1, 1]}),
        explicit(make_cell, "a", [["i1"]]),
    )
    assert agreement.incompatibility([run]) == "needs explicit answers of two explainers"
