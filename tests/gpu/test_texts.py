"""Language models compute on a GPU what they compute on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers", reason="needs cfbench-text[models]")

from cfbench_text.models import tiny
from cfbench_text.models.pairs import Pairs, PairSource

LABELS = ["entailment", "neutral", "contradiction"]
PAIRS = [(f"the room {'was clean ' * n}", "the staff was friendly") for n in range(1, 8)]


def test_probabilities_are_those_of_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = str(tiny.classifier(tmp_path / "model", LABELS))
    found = []
    for device in ("cpu", "cuda"):
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / f"cache-{device}"))
        found.append(Pairs(PairSource(model=model, batch=4, device=device)).probabilities(PAIRS))
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)
