"""The check that no method beats a certified row, on runs written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_recsys.testing.certificates import check_certificates


def answers(make_cell: Any, name: str, displaced: list[float], edits: list[float], **given: Any) -> Any:
    metrics = {"PN-S@2": displaced, "#Perturb": edits}
    return make_cell(name, metrics, level="list", format="explicit", **given)


@pytest.mark.parametrize(
    ("displaced", "edits", "beaten"),
    [
        ([0.5, 0.0], [2, 0], False),  # the same answer
        ([0.5, 0.0], [1, 0], True),  # as much with fewer edits
        ([1.0, 0.0], [2, 0], True),  # more within the limit
        ([1.0, 0.0], [3, 0], False),  # more, but with more edits than the certificate reaches
        ([0.0, 0.5], [0, 9], True),  # an answer where it is proven that there is none
        ([0.0, 0.0], [1, 1], False),  # fewer edits, but no success
    ],
)
def test_a_row_is_beaten_within_its_certificate_only(
    write: Any, make_cell: Any, displaced: list[float], edits: list[float], beaten: bool
) -> None:
    """Of the first unit all sets of two were tried, half of the list leaves by two; the second cannot be displaced."""
    details = {"none_up_to": [2, 5], "proven": [0, 1]}
    run = write(
        answers(make_cell, "proof", [0.5, 0.0], [2, 0], role="certified", details=details),
        answers(make_cell, "other", displaced, edits),
    )
    found = check_certificates(run)
    assert bool(found.beaten) == beaten
    assert found.compared == sum(share > 0 for share in displaced) and found.proven == 1


def test_metrics_of_importances_with_several_columns_do_not_disturb_it(write: Any, make_cell: Any) -> None:
    pos_at = {"POS@5,1": [1.0, 0.0], "POS@10,1": [1.0, 1.0]}
    details = {"none_up_to": [2, 5], "proven": [0, 1]}
    run = write(
        answers(make_cell, "proof", [0.5, 0.0], [2, 0], role="certified", details=details),
        answers(make_cell, "other", [0.5, 0.0], [1, 0]),
        make_cell("other", pos_at, level="list", format="implicit"),
    )
    assert len(check_certificates(run).beaten) == 1
