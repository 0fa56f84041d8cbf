"""What ``cfbench new-plugin`` writes for this suite works as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfbench_core.testing import verify_rendered_plugin


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["generator", "metric", "analysis"])
def test_a_new_plugin_passes_its_tests_the_checks_and_plans_its_study(kind: str, tmp_path: Path) -> None:
    verify_rendered_plugin(kind, "text", tmp_path, run=False)
