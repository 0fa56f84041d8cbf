"""Bare names that a user gives to the studies of a paper take the options of the study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cfbench_core.config import Document
from cfbench_core.errors import UserError
from cfbench_core.study_changes import with_study_options
from cfbench_core.yaml_nodes import plain

STUDY = """
data: [{name: csv, file: a.csv}]
models: [mf, vae]
explainers:
  - {name: lime, variant: paper}
  - lime
  - {name: mace, seconds: 1.0e-05, code: '010'}
  - nice
executor: {name: dask, nodes: 2}
"""
LIME = [{"name": "lime", "variant": "paper"}, "lime"]
MACE = {"name": "mace", "seconds": 1e-05, "code": "010"}


def changed(tmp_path: Path, *changes: str, own: tuple[str, ...] = ()) -> Any:
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    document = Document.read(file)
    document.set(with_study_options("tables", file, own, changes))
    return plain(document.root)


@pytest.mark.parametrize(
    ("change", "explainers"),
    [
        ("explainers=[mace]", [MACE]),
        ("explainers=mace", [MACE]),
        ("explainers=[nice, lime]", ["nice", *LIME]),
        ("explainers=[{name: lime, variant: paper}, lime, nice]", [*LIME, "nice"]),
        ("explainers=[lime, {name: lime, variant: paper}]", LIME[::-1]),
        ("explainers=[{name: mace}, nice]", [{"name": "mace"}, "nice"]),
        ("explainers=[{name: other, seconds: 2}]", [{"name": "other", "seconds": 2}]),
        ("explainers=['import:mine:Explainer']", ["import:mine:Explainer"]),
        ("explainers.3=mace", [*LIME, MACE, MACE]),
        ("explainers.2.seconds=3", [*LIME, {**MACE, "seconds": 3}, "nice"]),
        ("seed=3", [*LIME, MACE, "nice"]),
    ],
)
def test_a_bare_name_takes_the_options_of_the_study(tmp_path: Path, change: str, explainers: Any) -> None:
    assert changed(tmp_path, change)["explainers"] == explainers


def test_the_options_are_those_at_the_scale(tmp_path: Path) -> None:
    found = changed(tmp_path, "explainers=[mace]", own=("explainers.2.seconds=7",))
    assert found["explainers"] == [{**MACE, "seconds": 7}]


def test_a_name_that_the_study_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        changed(tmp_path, "explainers=[nice, limes]")
    assert refused.value.lines == (
        "--set explainers: the study tables has no 'limes'. Did you mean 'lime'?  (lime, mace, nice; any other as a "
        "mapping: {name: limes})",
    )


def test_lists_of_names_alone_data_and_single_components_may_be_any_others(tmp_path: Path) -> None:
    found = changed(tmp_path, "models=[lightgcn]", "data=[iris]", "executor=inline")
    assert (found["models"], found["data"], found["executor"]) == (["lightgcn"], ["iris"], "inline")
