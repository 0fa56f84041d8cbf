"""Every recommender of this distribution passes the conformance kit, with its default options."""

from __future__ import annotations

import pytest

from cfbench_core.testing import check_component
from cfbench_recsys.plugin import cfbench_recommenders

RECOMMENDERS = [spec.id for spec in cfbench_recommenders()]


@pytest.mark.parametrize("component", RECOMMENDERS)
def test_it_fulfils_the_contract_of_the_suite(component: str) -> None:
    report = check_component(component)
    assert report.passed, str(report)
