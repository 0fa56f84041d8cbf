"""Options that depend on the dataset and the recommender: ``preset: auto`` and ``options_for``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cfbench_core import run
from cfbench_core.api import prepare
from cfbench_core.config import resolved_document
from cfbench_core.errors import UserError
from cfbench_core.presets import presets_of
from cfbench_core.registry import installed
from cfbench_core.tuning.search import open_search

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(SAMPLES)


def study(**changes: Any) -> dict[str, Any]:
    return {
        "suite": "recsys",
        "data": ["debian-python", {"name": "synthetic", "users": 60, "items": 30}],
        "recommenders": [{"name": "ease", "preset": "auto"}, "popularity"],
        "explainers": [{"import": "my_lab:ByIndex", "label": "mine"}],
        "protocol": {"k": [3], "users": 5, "level": "item", "format": "implicit"},
        "metrics": ["pos-p"],
        "executor": "inline",
        **changes,
    }


def mine(**given: Any) -> list[dict[str, Any]]:
    return [{"import": "my_lab:ByIndex", "label": "mine", **given}]


def options(prepared: Any, role: str, parameter: str) -> dict[tuple[str, str], Any]:
    """By data and model: the options in the parameters of a stage."""
    return {
        (cell.labels["dataset"], cell.labels["model"]): cell.stages[role].parameters[parameter]["options"]
        for cell in prepared.plan.cells
    }


def test_auto_takes_the_preset_of_each_dataset_and_the_defaults_elsewhere() -> None:
    prepared = prepare(study())
    preset = presets_of(installed().find("recsys", "recommender", "ease").spec)["debian-python"].options
    found = options(prepared, "model", "model")
    default = {"l2": None, **found["synthetic", "ease"]}
    assert found["debian-python", "ease"] == {**default, **preset} != default
    plain = options(prepare(study(recommenders=["ease", "popularity"])), "model", "model")
    assert found["synthetic", "ease"] == plain["synthetic", "ease"]
    assert [cell.labels for cell in prepared.plan.cells] == [
        cell.labels for cell in prepare(study(recommenders=["ease", "popularity"])).plan.cells
    ]


def test_options_next_to_auto_take_precedence() -> None:
    found = options(
        prepare(study(recommenders=[{"name": "ease", "preset": "auto", "l2": 7.0}])), "model", "model"
    )
    assert {found[key]["l2"] for key in found} == {7.0}


def test_an_explainer_has_options_for_a_recommender_on_a_dataset() -> None:
    explainers = mine(damping=2.0, options_for={"debian-python-ease": {"damping": 5.0}})
    found = options(prepare(study(explainers=explainers)), "explanations", "explainer")
    assert {key: own["damping"] for key, own in found.items()} == {
        ("debian-python", "ease"): 5.0,
        ("debian-python", "popularity"): 2.0,
        ("synthetic", "ease"): 2.0,
        ("synthetic", "popularity"): 2.0,
    }


def test_a_configuration_is_written_with_the_options_of_its_combinations_and_read_back() -> None:
    config = prepare(study(explainers=mine(options_for={"synthetic-ease": {"damping": 5.0}}))).config
    written = resolved_document(config)
    (ease, _), (explainer,) = written["recommenders"], written["explainers"]
    assert "preset" not in ease and list(ease["options_for"]) == ["debian-python"]
    assert explainer["options_for"] == {"synthetic-ease": {"damping": 5.0}}
    for defaults in (True, False):
        again = yaml.safe_load(yaml.safe_dump(resolved_document(config, defaults)))
        assert prepare(again).config == config


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"explainers": mine(options_for={"debian-python-easy": {"damping": 1.0}})},
            "explainers[0].options_for: no combination 'debian-python-easy' in this configuration."
            " Did you mean 'debian-python-ease'?",
        ),
        (
            {"explainers": mine(options_for={"debian-python-ease": {"dampening": 1.0}})},
            "explainers[0].options_for.debian-python-ease.dampening: unknown key. Did you mean 'damping'?",
        ),
        ({"explainers": mine(options_for=[1])}, "options_for: must be a mapping of combinations"),
        (
            {"explainers": mine(options_for={"debian-python-ease": 1})},
            "must be a mapping of options, got '1'",
        ),
        (
            {"explainers": mine(preset="auto", options_for={"debian-python-ease": {}})},
            "cannot stand next to 'preset: auto'",
        ),
        (
            {"recommenders": [{"name": "ease", "options_for": {"synthetic": {"preset": "debian-python"}}}]},
            "recommenders[0].options_for.synthetic.preset: is no option; only options depend on the combination",
        ),
        (
            {"explainers": mine(options_for={"debian-python-ease": {"label": "other"}})},
            "explainers[0].options_for.debian-python-ease.label: is no option",
        ),
        ({"data": {"name": "synthetic", "preset": "auto"}}, "a dataset has no options by data and model"),
        ({"metrics": [{"name": "pos-p", "preset": "auto"}]}, "a metric has no options by data and model"),
    ],
)
def test_what_is_wrong_is_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        prepare(study(**changes))
    (line,) = caught.value.lines
    assert said in line


def test_a_search_begins_with_one_set_of_options() -> None:
    with pytest.raises(
        UserError, match=r"ease has options by data and model \('preset: auto' or 'options_for'\)"
    ):
        open_search(study(data="debian-python"), component="ease")


def test_a_run_computes_what_the_named_presets_would(tmp_path: Path) -> None:
    """One configuration for two recommenders on one dataset gives the numbers of its presets by name."""
    auto = run(study(data="debian-python"), out=tmp_path / "auto")
    named = [{"name": "ease", "preset": "debian-python"}, "popularity"]
    by_name = run(study(data="debian-python", recommenders=named), out=tmp_path / "named")
    assert auto.exit_code == 0
    assert auto.scores["value"].tolist() == by_name.scores["value"].tolist()
    assert {cell.status for cell in by_name.cells()} == {"cached"}, "the options are the same"
    written = yaml.safe_load((tmp_path / "auto" / "config.yaml").read_text())
    assert list(written["recommenders"][0]["options_for"]) == ["debian-python"]
