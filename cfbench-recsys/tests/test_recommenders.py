"""Every recommender of this distribution passes the conformance kit, with its default options."""

from __future__ import annotations

import pytest

from cfbench_core.registry import installed
from cfbench_core.reproduction_levels import level_of
from cfbench_core.testing import check_component
from cfbench_recsys.plugin import cfbench_recommenders

RECOMMENDERS = [spec.id for spec in cfbench_recommenders()]


@pytest.mark.parametrize("component", RECOMMENDERS)
def test_it_fulfils_the_contract_of_the_suite(component: str) -> None:
    report = check_component(component)
    assert report.passed, str(report)


def test_every_recommender_of_a_paper_states_how_far_it_is_that_of_the_paper() -> None:
    found = installed().components()
    own = [c.spec for c in found if c.distribution == "cfbench-recsys" and c.spec.kind == "recommender"]
    assert any(spec.papers for spec in own)
    assert [spec.id for spec in own if spec.papers and level_of(spec) is None] == []
