"""What ``cfbench new-plugin --kind explainer`` writes for this suite works as written.

The studies of the other kinds need an installed explainer: cfbench-explainers-native tests them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.testing import verify_rendered_plugin


@pytest.mark.slow
def test_a_new_explainer_passes_its_tests_the_checks_and_plans_its_study(tmp_path: Path) -> None:
    verify_rendered_plugin("explainer", "recsys", tmp_path, run=False)
