"""Scopes in a configuration and as labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cfbench_core.api import prepare
from cfbench_core.errors import UserError
from cfbench_recsys.scope_labels import parse_scope, scope_kind, scope_labels


def test_labels_hold_the_levels_of_k_hop() -> None:
    assert scope_labels(["user-only", "k-hop", {"k-hop": 2}]) == ("user-only", "k-hop-3", "k-hop-2")
    assert parse_scope("k-hop-12") == ("k-hop", 12)
    assert [scope_kind(label) for label in ("k-hop-2", "full")] == ["k-hop", "full"]


@pytest.mark.parametrize("entry", [{"k-hop": 0}, {"k-hop": True}, {"hops": 2}, {"k-hop": 2, "full": 1}, {}])
def test_another_mapping_is_an_error_that_shows_what_would_be_right(entry: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"scope\[1\]: must be user-only.*\{k-hop: 3\}"):
        scope_labels(["full", entry])


def test_one_scope_in_two_spellings_is_given_twice() -> None:
    with pytest.raises(UserError, match=r"scope\[1\]: k-hop-3 is given twice"):
        scope_labels(["k-hop", {"k-hop": 3}])


STUDY = {"suite": "recsys", "data": "debian-python", "recommenders": ["ease"], "explainers": ["random"]}


def test_a_misspelled_scope_gives_the_nearest() -> None:
    with pytest.raises(UserError, match=r"got 'khop'\. Did you mean 'k-hop'\?$"):
        prepare({**STUDY, "protocol": {"scope": ["khop"]}})


def test_a_wrong_scope_is_reported_with_the_set_or_the_line_that_gave_it(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump({**STUDY, "protocol": {"k": 3, "scope": ["full", {"k-hop": 2}]}}))
    for given in ("protocol.scope=[full,full]", "protocol.scope.1=full"):
        with pytest.raises(UserError) as error:
            prepare(path, set=[given])
        start = given if given.endswith("=full") else "protocol.scope=..."
        lines = str(error.value).splitlines()  # one may be that no explainer is installed here
        assert any(
            line.startswith(f"--set {start}: protocol: scope[1]: full is given twice") for line in lines
        )
    path.write_text(path.read_text().replace("k-hop: 2", "k-hop: 0"))
    with pytest.raises(UserError) as error:
        prepare(path)
    line = path.read_text().splitlines().index("  - k-hop: 0") + 1
    wrong = f"{path}:{line}: protocol: scope[1]: must be user-only"
    assert any(text.startswith(wrong) for text in str(error.value).splitlines())


@pytest.mark.parametrize("axis", ["k", "level", "format", "scope", "max_edits", "edits"])
def test_an_axis_of_the_protocol_without_values_is_refused(axis: str) -> None:
    """Without values the tables of explicit answers, or all of them, would be missing without a word."""
    with pytest.raises(UserError, match=f"protocol: {axis}: must have at least one value"):
        prepare({**STUDY, "protocol": {axis: []}})
