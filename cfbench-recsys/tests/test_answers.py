"""Explicit answers: smallest prefix, threshold, verification, pruning."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.answers import prune, smallest_prefix, threshold, verify
from cfbench_recsys.edits import Edits


def as_sets(edits: Edits) -> list[set[int]]:
    return [set(edits.edge_items[edits.rows == b].tolist()) for b in range(len(edits))]


def test_threshold_removes_what_is_more_important_than_a_half(awkward) -> None:
    case = awkward("list")
    case.histories = [{0, 1, 2}]
    importances = case.importance_array([{0: 0.5, 1: 0.7, 2: 0.1}])
    assert as_sets(threshold(case.targets(), importances)) == [{1}]
    assert as_sets(threshold(case.targets(), importances, above=0.05)) == [{0, 1, 2}]


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_the_smallest_prefix_is_that_of_trying_all(draw_implicit, level: str, data: st.DataObject) -> None:
    case, importances = draw_implicit(data, level)
    found = smallest_prefix(
        case.model(), case.targets(), case.importance_array(importances), case.interactions()
    )
    for answer, (user, items), of_unit in zip(as_sets(found), case.units(), importances, strict=True):
        order = case.order(user, of_unit)
        displaced = [
            case.displaced(user, items, case.histories[user] - set(order[:c])) for c in range(len(order) + 1)
        ]
        expected = order[: displaced.index(max(displaced))]  # nothing, where nothing can be displaced
        assert answer == set(expected)


def test_a_prefix_is_found_beyond_the_first_rounds_although_success_is_not_monotone(awkward) -> None:
    """60 interactions; the item falls when 41 are gone, comes back when 42 are, falls again with the last."""
    case = awkward("item")
    items = 63
    case.histories, case.k = [set(range(60))], 1
    case.weights = [[0] * items for _ in range(items)]
    case.bias = [0] * items
    case.bias[61] = 1  # the rival; the target is 62
    for interaction, support in ((40, 2), (41, -2), (59, 2)):
        case.weights[interaction][62] = support
    case.bias[62] = 0
    assert case.units() == [(0, [62])]
    importances = case.importance_array([{item: -float(item) for item in range(60)}])
    fallen = [case.displaced(0, [62], set(range(c, 60))) for c in range(61)]
    assert fallen.index(1) == 41
    assert fallen[42] == 0
    assert fallen[60] == 1
    found = smallest_prefix(case.model(), case.targets(), importances, case.interactions())
    assert as_sets(found) == [set(range(41))]


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_verification_retains_only_successful_answers(draw_explicit, level: str, data: st.DataObject) -> None:
    case, edits = draw_explicit(data, level)
    verified = verify(case.model(), case.targets(), case.edits(edits), case.interactions())
    for answer, (user, items), edit in zip(as_sets(verified), case.units(), edits, strict=True):
        succeeds = case.displaced(user, items, case.after(user, edit)) > 0
        assert answer == (set(edit) if succeeds else set())


@pytest.mark.parametrize("level", ["item", "list"])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_pruned_answer_displaces_as_much_and_nothing_more_can_be_taken_back(
    draw_explicit, level: str, data: st.DataObject
) -> None:
    case, edits = draw_explicit(data, level)
    pruned = prune(case.model(), case.targets(), case.edits(edits), case.interactions())
    for answer, (user, items), edit in zip(as_sets(pruned), case.units(), edits, strict=True):
        left = {item: op for item, op in edit.items() if item in answer}
        assert answer == set(left)
        before = case.displaced(user, items, case.after(user, edit))
        after = case.displaced(user, items, case.after(user, left))
        assert after >= before
        if before == 0:
            assert left == edit
        for item in answer if before else ():
            smaller = {other: op for other, op in left.items() if other != item}
            assert case.displaced(user, items, case.after(user, smaller)) < after


def test_pruning_never_gives_up_what_taking_an_edit_back_has_won(awkward) -> None:
    """Without 0, 1 and 2 only item 3 leaves the list; with 1 back, item 4 too, until 2 is back as well."""
    case = awkward("list")
    case.histories, case.k = [{0, 1, 2}], 2
    case.bias = [0, 0, 0, 9, 10, 10, 10]
    case.weights = [[0] * 7 for _ in range(7)]
    case.weights[0][3] = 2
    for interaction, support in ((0, 1), (1, -1), (2, 1)):
        case.weights[interaction][4] = support
    assert case.units() == [(0, [3, 4])]
    pruned = prune(case.model(), case.targets(), case.edits([{0: -1, 1: -1, 2: -1}]), case.interactions())
    assert as_sets(pruned) == [{0, 2}]
