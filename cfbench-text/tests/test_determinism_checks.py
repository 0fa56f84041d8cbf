"""The conformance checks that find extractors and judges which draw random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cfbench_core.specs import ComponentSpec
from cfbench_core.testing import Misbehaviour, Subject
from cfbench_text.extractors.base import Extraction
from cfbench_text.extractors.rules import Rules
from cfbench_text.testing import extracts_the_same_again, judges_the_same_again
from cfbench_text.triplets import Triplet

COUNT = itertools.count()


class Moody:
    """Extracts another statement at each call."""

    def __init__(self, config: None) -> None: ...

    def extract(self, texts: Sequence[str], domain: Any) -> list[Extraction]:
        statement = Triplet(f"statement {next(COUNT)}", "", "positive")
        return [Extraction((statement,)) for _ in texts]


class Wavering:
    """Gives another verdict at each call."""

    def __init__(self, config: None) -> None: ...

    def prepare(self, statements: Any) -> None: ...

    def support(self, pairs: Sequence[Any]) -> Any:
        return np.full(len(pairs), next(COUNT) / 1000)


def subject(kind: str, implementation: type, **more: Any) -> Subject:
    target = f"{implementation.__module__}:{implementation.__name__}"
    return Subject(ComponentSpec(id=f"text/{kind}/one", summary="One", target=target, **more))


def test_an_extractor_that_differs_from_call_to_call_is_found() -> None:
    with pytest.raises(Misbehaviour, match="a second time"):
        extracts_the_same_again(subject("extractor", Moody))


def test_the_extractor_by_rules_is_deterministic() -> None:
    extracts_the_same_again(subject("extractor", Rules, config="cfbench_text.extractors.rules:Config"))


def test_a_judge_that_differs_from_call_to_call_is_found() -> None:
    with pytest.raises(Misbehaviour, match="a second time"):
        judges_the_same_again(subject("judge", Wavering, provides={"verdict": {"support"}}))
