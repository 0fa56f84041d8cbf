"""The presets of explainers: options that there are, and how each was found."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfbench_core.api import prepare
from cfbench_core.config import create, resolved_document
from cfbench_core.errors import UserError
from cfbench_core.presets import Preset, presets_of
from cfbench_explainers_native.plugin import cfbench_explainers

DATA = Path(os.environ.get("CFBENCH_DATA_DIR") or Path(__file__).parents[3] / "shared" / "data")
ML_1M = DATA / "recsys" / "ml-1m.parquet"

SHIPPED = [(spec, preset) for spec in cfbench_explainers() for preset in presets_of(spec).values()]


def test_presets_are_shipped() -> None:
    assert {spec.name for spec, _ in SHIPPED} >= {"accent", "lime-rs", "lxr", "shap"}


@pytest.mark.parametrize(("spec", "preset"), SHIPPED, ids=[f"{spec.name}-{p.name}" for spec, p in SHIPPED])
def test_a_preset_has_options_of_its_explainer_and_a_source(spec: Any, preset: Preset) -> None:
    create({"target": spec.target, "config": spec.config, "options": preset.options})
    search = preset.search
    if "source" in search:  # published
        assert search["source"]
        return
    assert search["command"].startswith("cfbench tune ") and f"explainer/{spec.name}" in search["command"]
    better = search["as_configured"] - search["value"]
    # POS-P, of importances, is better when it is lower; PN-S, of edits, when it is higher.
    assert better >= 0 if search["metric"].startswith("POS-P") else better <= 0
    assert set(search["space"]) <= set(preset.options)


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ("lime-rs", "lime-rs-cfbench"),
        ("{name: lime-rs, preset: paper}", "lime-rs-paper"),
        ("{name: lime-rs, preset: paper, variant: cfbench}", "lime-rs-cfbench"),
        ("{name: lime-rs, preset: cfexprec, samples: 7}", "lime-rs-cfbench"),
        ("{name: lime-rs, preset: lxr}", "lime-rs-lxr"),
        ("{name: lime-rs, preset: cfexprec}", "lime-rs-cfexprec"),
        ("{name: shap, preset: cfexprec}", "shap-cfexprec"),
        ("{name: lxr, preset: paper-ml-1m-mf}", "lxr-paper"),
        ("{name: grease, preset: paper, paper: {steps: 100}}", "grease-paper"),
    ],
)
def test_a_row_with_a_published_preset_says_which(given: str, label: str) -> None:
    study = {"suite": "recsys", "data": "debian-python", "recommenders": "mf"}
    study["explainers"] = yaml.safe_load(given)
    assert prepare(study).config.explainers[0].label == label


@pytest.mark.parametrize("name", ["grease", "lime-rs", "lxr", "shap"])
def test_describe_shows_the_options_of_a_preset_so_that_they_can_be_pasted(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from cfbench_core.cli import main

    main(["describe", name])
    shown = capsys.readouterr().out
    presets = [preset for spec, preset in SHIPPED if spec.name == name]
    assert presets
    for preset in presets:
        (line,) = re.findall(rf"^  preset: {re.escape(preset.name)}   # (.*)$", shown, re.MULTILINE)
        assert yaml.safe_load(f"{{{line}}}") == dict(preset.options)


VAE = {
    "lambda_pos": 3.19,
    "lambda_neg": 1.42,
    "alpha": 1.0,
    "hidden": 128,
    "learning_rate": 0.005,
    "batch": 128,
}
"""Of the preset ``paper-ml-1m-vae`` of LXR, besides the 40 epochs."""


@pytest.mark.parametrize(
    ("given", "by_combination", "epochs"),
    [
        ({"preset": "paper-ml-1m-vae"}, False, 40),
        ({"preset": "paper-ml-1m-vae", "paper": {"epochs": 5}}, False, 5),
        (
            {
                "preset": "paper-ml-1m-vae",
                "paper": {"epochs": 7},
                "options_for": {"debian-python-vae": {"paper": {"epochs": 5}}},
            },
            True,
            5,
        ),
    ],
)
def test_a_nested_option_next_to_a_preset_leaves_the_others_as_the_preset_has_them(
    given: dict[str, Any], by_combination: bool, epochs: int
) -> None:
    study = {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": ["vae"],
        "explainers": [{"name": "lxr", **given}],
        "protocol": {"k": 3, "users": 5},
    }
    config = prepare(study).config
    (explainer,) = config.explainers
    options = dict(explainer.options_for)["debian-python-vae"] if by_combination else explainer.options
    assert vars(options.paper) == {**VAE, "epochs": epochs}
    for defaults in (True, False):  # what a run writes says the same
        again = prepare(yaml.safe_load(yaml.safe_dump(resolved_document(config, defaults)))).config
        assert again.explainers == config.explainers


@pytest.mark.parametrize(
    ("data", "recommenders"),
    [
        ("debian-python", "mf"),
        (["debian-python", {"name": "synthetic", "users": 40}], ["mf", {"name": "popularity"}]),
        pytest.param(
            "ml-1m",
            ["mf", {"import": "cfbench_recsys.recommenders.ease:EASE", "label": "own"}],
            marks=pytest.mark.skipif(not ML_1M.is_file(), reason="no ml-1m.parquet in the data folder"),
        ),
    ],
)
def test_options_next_to_auto_need_not_suit_presets_of_other_data(
    data: Any, recommenders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LXR's presets are of its variant paper, in which ``hidden`` has another place; none is for these data."""
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(DATA))
    study = {
        "suite": "recsys",
        "data": data,
        "recommenders": recommenders,
        "explainers": [{"name": "lxr", "preset": "auto", "hidden": 32}],
        "protocol": {"k": 3, "users": 2, "format": "implicit"},
    }
    (lxr,) = prepare(study).config.explainers
    assert lxr.options.hidden == 32 and lxr.options.variant == "cfbench" and lxr.options_for == ()


def synthetic_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets of LXR for data that are always there: those of ml-1m under the name of debian-python."""
    known = presets_of(next(spec for spec in cfbench_explainers() if spec.name == "lxr"))
    renamed = {name.replace("ml-1m", "debian-python"): preset for name, preset in known.items()}
    of_cfbench = Preset("debian-python-mf", {"hidden": 48})
    monkeypatch.setattr(
        "cfbench_core.config.options_by_setting.presets_of",
        lambda spec: {**renamed, "debian-python-mf": of_cfbench} if spec.name == "lxr" else {},
    )


LXR_STUDY: dict[str, Any] = {
    "suite": "recsys",
    "data": "debian-python",
    "recommenders": ["mf", "vae", "ease"],
    "protocol": {"k": 3, "users": 5},
}


def test_auto_next_to_a_variant_takes_the_presets_of_this_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    synthetic_presets(monkeypatch)
    explainers = [
        {"name": "lxr", "preset": "auto", "variant": "paper"},
        {"name": "lxr", "preset": "auto"},
    ]
    prepared = prepare({**LXR_STUDY, "explainers": explainers})
    paper, cfbench = prepared.config.explainers
    assert (paper.label, cfbench.label) == ("lxr-paper", "lxr-cfbench")
    of = dict(paper.options_for)
    assert {name: one.paper.hidden for name, one in of.items()} == {
        "debian-python-mf": 64,
        "debian-python-vae": 128,
    }
    assert {one.variant for one in of.values()} == {"paper"}
    assert {name: one.hidden for name, one in cfbench.options_for} == {"debian-python-mf": 48}
    assert prepared.notes == (
        "lxr-paper: preset: auto takes the preset for debian-python-mf, debian-python-vae and finds none for "
        "debian-python-ease",
        "lxr-cfbench: preset: auto takes the preset for debian-python-mf and finds none for debian-python-vae, "
        "debian-python-ease",
    )


def test_the_plan_reports_that_auto_found_no_preset(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from cfbench_core.cli import main

    path = tmp_path / "study.yaml"
    explainers = [{"name": "lxr", "preset": "auto"}, "random"]
    path.write_text(yaml.safe_dump({**LXR_STUDY, "recommenders": "mf", "explainers": explainers}))
    main(["plan", str(path)])
    notes = [line for line in capsys.readouterr().err.splitlines() if "preset" in line]
    assert notes == ["note: lxr-cfbench: preset: auto finds none for debian-python-mf"]


@pytest.mark.parametrize(
    ("given", "sets", "said"),
    [
        (
            {"preset": "paper-ml-1m-mf"},
            ["explainers.0.variant=cfbench"],
            "--set explainers.0.variant=cfbench: explainers[0]: paper: these are options of variant: paper",
        ),
        (
            {},
            ["explainers.0.variant=paper", "explainers.0.hidden=32"],
            "--set explainers.0.hidden=32: explainers[0]: hidden: is an option of variant: cfbench",
        ),
    ],
)
def test_a_mix_of_variants_is_reported_with_the_set_that_made_it(
    tmp_path: Path, given: dict[str, Any], sets: list[str], said: str
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump({**LXR_STUDY, "explainers": [{"name": "lxr", **given}]}))
    with pytest.raises(UserError) as error:
        prepare(path, set=sets)
    assert str(error.value).startswith(said)


def test_no_row_called_cfbench_holds_explanations_of_the_variant_paper() -> None:
    def study(**given: Any) -> dict[str, Any]:
        other = {"debian-python-vae": {"variant": "paper"}}
        explainer = {"name": "lxr", **given, "options_for": other}
        return {
            "suite": "recsys", "data": "debian-python", "recommenders": ["vae", "mf"], "explainers": [explainer],
            "protocol": {"k": 3, "users": 5},
        }  # fmt: skip

    with pytest.raises(
        UserError, match="for debian-python-vae it is lxr-paper, not lxr-cfbench: list it apart"
    ):
        prepare(study())
    (lxr,) = prepare(study(label="lxr, the best of each")).config.explainers
    assert lxr.label == "lxr, the best of each"
