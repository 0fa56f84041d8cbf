"""The stage that pre-trains an explainer reports whether there was something to learn."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cfbench_core.lifecycle import stages


@pytest.mark.parametrize(("state", "learned"), [({"weight": np.ones(2)}, True), ({}, False)])
def test_an_explainer_that_learned_nothing_reports_it(
    state: dict[str, np.ndarray], learned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "model_of", lambda context: (None, None))
    monkeypatch.setattr(stages, "create", lambda parameters: None)
    context: Any = SimpleNamespace(
        parameters={"explainer": {}},
        step=lambda name: lambda *arguments: state,
        task=SimpleNamespace(label="mine"),
        output=tmp_path,
    )
    assert stages.prepare_explainer(context).get("learned", True) is learned
