"""Language models on a device: batches that do not fit are halved, and answers of CPU and GPU are cached apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cfbench_core.devices.batches import DeviceMemoryError
from cfbench_text.models import loading, tiny
from cfbench_text.models.loading import Source, signature
from cfbench_text.models.pairs import Pairs, PairSource

pytest.importorskip("transformers", reason="needs cfbench-text[models]")

LABELS = ["entailment", "neutral", "contradiction"]
PAIRS = [(f"the room {'was clean ' * n}", "the staff was friendly") for n in range(1, 8)]


def limited(pairs: Pairs, most: int) -> list[int]:
    """Gives the model a device with memory for ``most`` texts; the sizes of the batches that it received."""
    model, sizes = pairs._loaded.model, []
    forward = model.forward

    def limited_forward(**given: Any) -> Any:
        sizes.append(len(given["input_ids"]))
        if sizes[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return forward(**given)

    model.forward = limited_forward
    return sizes


@pytest.fixture
def source(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> PairSource:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    loading._load.cache_clear()
    return PairSource(model=str(tiny.classifier(tmp_path / "model", LABELS)), batch=4, device="cpu")


@pytest.mark.slow
def test_answers_do_not_depend_on_what_fits(
    source: PairSource, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    expected = Pairs(source).probabilities(PAIRS)
    for most in (1, 2, 3):
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / f"cache {most}"))
        loading._load.cache_clear()
        pairs = Pairs(source)
        sizes = limited(pairs, most)
        np.testing.assert_allclose(pairs.probabilities(PAIRS), expected, atol=1e-6)
        assert sizes[0] == 4 and sizes.count(4) == 1
        assert sum(size for size in sizes if size <= most) == len(PAIRS)


def test_one_text_that_does_not_fit_is_an_error(source: PairSource) -> None:
    pairs = Pairs(source)
    limited(pairs, 0)
    with pytest.raises(DeviceMemoryError, match="a batch of one"):
        pairs.probabilities(PAIRS)


def test_the_class_of_the_device_is_part_of_what_answers_are_cached_by(
    source: PairSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = {name: signature(Source(model=source.model, device=name)) for name in ("auto", "cpu", "cuda")}  # type: ignore[arg-type]
    assert on["auto"] == on["cpu"]
    assert on["cuda"] == {**on["cpu"], "device": "cuda"}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert signature(Source(model=source.model)) == on["cuda"]
