"""How near answers come to the smallest one that is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.statistics import bootstrap_interval
from cfbench_recsys.analysis.optimality_gap import OptimalityGap, proven_smallest, smallest_known

smallest = OptimalityGap()
NAN = float("nan")


def answers(
    make_cell: Any, name: str, displaced: list[float], edits: list[float | None], **given: Any
) -> Any:
    metrics = {"PN-S@2": displaced, "#Perturb given success@2": edits, **given.pop("more", {})}
    return make_cell(name, metrics, format="explicit", **given)


def numbers(table: Any, metric: str) -> dict[str, float]:
    return table[table["metric"] == metric].set_index("explainer")["mean"].to_dict()


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """Of four items the reference finds 1, 1, 2, 2 edits; a needs 1, 3, 2 and fails once; b finds one of three edits."""
    run = write(
        answers(make_cell, "greedy", [1, 1, 1, 1], [1, 1, 2, 2], role="reference"),
        answers(make_cell, "a", [1, 1, 1, 0], [1, 3, 2, None]),
        answers(make_cell, "b", [0, 0, 0, 1], [None, None, None, 3]),
    )
    assert smallest.incompatibility([run]) == ""
    table = smallest.table([run])
    assert numbers(table, "gap") == pytest.approx({"greedy": 0, "a": 2 / 3, "b": 1})
    assert numbers(table, "reaches the smallest") == pytest.approx({"greedy": 1, "a": 2 / 3, "b": 0})
    assert numbers(table, "success") == {"greedy": 1, "a": 0.75, "b": 0.25}
    gap = table[(table["metric"] == "gap") & (table["explainer"] == "a")].iloc[0]
    ends = bootstrap_interval([0, 2, 0, NAN], clusters=["u0", "u0", "u1", "u1"])
    assert [gap["ci_low"], gap["ci_high"]] == pytest.approx([float(end) for end in ends]) and gap["n"] == 3
    words = smallest.words(table)
    assert (
        "is a: 0.667 (0 to 1) edits too many, none in 67% of them; it succeeds for 75% of the units" in words
    )
    assert "Farthest: b, 1" in words


def test_a_competitor_may_know_a_smaller_answer_than_the_bounds(write: Any, make_cell: Any) -> None:
    run = write(
        answers(make_cell, "greedy", [1, 1], [3, 2], role="reference"),
        answers(make_cell, "a", [1, 1], [2, 2]),
    )
    assert numbers(smallest.table([run]), "gap") == {"greedy": 0.5, "a": 0.0}


def test_of_a_list_only_answers_that_displace_as_much_count(write: Any, make_cell: Any) -> None:
    """a displaces all of the list with 6 edits: that b displaces half of it with 2 is no reproach."""
    run = write(
        answers(make_cell, "a", [1.0, 1.0], [6, 6], level="list"),
        answers(make_cell, "b", [0.5, 1.0], [2, 4], level="list"),
    )
    assert numbers(smallest.table([run]), "gap") == {"a": 1.0, "b": 0.0}


def test_a_search_with_a_certificate_proves_what_others_found(write: Any, make_cell: Any) -> None:
    """It found 2 and excluded 1; it found none and excluded 3; it found 4 but excluded 2 only; it reported nothing."""
    search = {"details": {"none_up_to": [1.0, 3.0, 2.0, NAN]}, "role": "reference"}
    run = write(
        answers(make_cell, "search", [1, 0, 1, 1], [2, None, 4, 1], **search),
        answers(make_cell, "a", [1, 1, 1, 1], [2, 4, 4, 1]),
        answers(make_cell, "b", [1, 1, 1, 0], [3, 5, 3, None]),
    )
    found = numbers(smallest.table([run]), "proven smallest")
    assert found == pytest.approx({"search": 1 / 3, "a": 2 / 4, "b": 1 / 3})


def test_without_a_certificate_there_is_no_proof(write: Any, make_cell: Any) -> None:
    run = write(answers(make_cell, "a", [1, 1], [1, 1]), answers(make_cell, "b", [1, 1], [1, 2]))
    assert "proven smallest" not in set(smallest.table([run])["metric"])


def test_on_lists_a_proof_is_about_how_much_is_displaced() -> None:
    """The prover displaces half of the list with 2, and excludes that 3 displace more, or 1 as much."""
    size = np.array([[2.0, 2.0, 4.0, 3.0, 1.0]])
    displaced = np.array([[0.5, 0.5, 1.0, 0.5, 0.25]])
    none_up_to = np.array([[3.0, NAN, NAN, NAN, NAN]])
    assert proven_smallest(size, displaced, none_up_to).tolist() == [[True, True, True, False, False]]


@pytest.mark.parametrize("without", [(), ("edit",)])
def test_removals_are_not_measured_by_additions(write: Any, make_cell: Any, without: tuple[str, ...]) -> None:
    """In a run that says what may be edited the two are of different settings, else the answers show it."""
    painter = answers(make_cell, "painter", [1, 1], [1, 5], more={"#Additions": [1, 2]}, edit="remove-or-add")
    cutter, pruner = (
        answers(make_cell, "cutter", [1, 1], [3, 3]),
        answers(make_cell, "pruner", [1, 1], [2, 4]),
    )
    gaps = numbers(smallest.table([write(painter, cutter, pruner, without=without)]), "gap")
    assert (gaps["cutter"], gaps["pruner"]) == (0.5, 0.5)
    assert gaps.get("painter") == (1.0 if without else None)  # 5 edits where cutter needs 3; or alone


@given(st.data())
def test_the_smallest_known_is_what_a_search_by_hand_finds(data: st.DataObject) -> None:
    units, methods = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    sizes = st.one_of(st.just(NAN), st.sampled_from([1.0, 2.0, 3.0]))
    rows = st.lists(st.lists(sizes, min_size=methods, max_size=methods), min_size=units, max_size=units)
    size = np.array(data.draw(rows))
    shares = st.lists(st.sampled_from([0.2, 0.6, 1.0]), min_size=methods, max_size=methods)
    much = np.array(data.draw(st.lists(shares, min_size=units, max_size=units)))
    removes = np.array(data.draw(st.lists(st.booleans(), min_size=methods, max_size=methods)))
    found = smallest_known(size, much, removes)
    for unit in range(units):
        for own in range(methods):
            candidates = [
                size[unit, other]
                for other in range(methods)
                if not np.isnan(size[unit, other])
                and much[unit, other] >= much[unit, own]
                and not (removes[own] and not removes[other])
            ]
            if np.isnan(size[unit, own]):
                assert np.isnan(found[unit, own])
            else:
                assert found[unit, own] == min(candidates)


def test_a_single_explainer_is_not_compared(write: Any, make_cell: Any) -> None:
    run = write(answers(make_cell, "a", [1, 1], [1, 2]))
    assert "two explainers" in smallest.incompatibility([run])
    assert "pn-s" in smallest.incompatibility([write(make_cell("a", {"PN-S@2": [1, 1]}), name="other")])


def test_the_figure_shows_successes_against_gaps(write: Any, make_cell: Any) -> None:
    run = write(answers(make_cell, "a", [1, 1], [1, 2]), answers(make_cell, "b", [1, 0], [2, None]))
    (figure,) = smallest.figures(smallest.table([run]))
    assert ">a<" in figure.svg and ">b<" in figure.svg and "share of units" in figure.svg
