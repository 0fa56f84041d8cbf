"""What is registered, and that every explainer behaves on every recommender it declares."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cfbench_core.config import fields_of
from cfbench_core.specs import resolve
from cfbench_core.testing import CHECKS as BASE
from cfbench_core.testing import Subject, check_component, verify
from cfbench_explainers_native.accent import Config as AccentConfig
from cfbench_explainers_native.lime_rs import Config as LimeConfig
from cfbench_explainers_native.lxr import Config as LXRConfig
from cfbench_explainers_native.lxr_paper import PaperOptions as PaperLXR
from cfbench_explainers_native.plugin import cfbench_explainers
from cfbench_explainers_native.shap import Config as ShapConfig
from cfbench_recsys.testing import checks

SPECS = {spec.name: spec for spec in cfbench_explainers()}


def test_these_explainers_are_registered_with_their_roles() -> None:
    assert {name: spec.role for name, spec in SPECS.items()} == {
        "random": "baseline",
        "popularity": "baseline",
        "exact-contribution": "reference",
        "leave-one-out": "reference",
        "greedy": "reference",
        "beam": "reference",
        "exhaustive": "certified",
        "smallest": "certified",
        "greedy-edits": "reference",
        "cosine": "",
        "jaccard": "",
        "lime-rs": "",
        "lxr": "",
        "prince": "",
        "grease": "",
        "shap": "",
        "accent": "",
        "spinrec": "",
    }


@pytest.mark.parametrize("check", [*BASE, *checks["explainer"]], ids=str)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_explainer_conforms(spec, check) -> None:
    verify(check, spec)


@pytest.mark.parametrize("options", [{"variant": "paper"}, {"sampling": "draws", "samples": 150}], ids=str)
def test_the_other_ways_of_lime_conform(options) -> None:
    report = check_component(Subject(SPECS["lime-rs"], LimeConfig(**options)), checks=checks["explainer"])
    assert report.passed, str(report)


@pytest.mark.parametrize(
    "options",
    [
        {"exact": "enumeration"},
        {"exact": "never", "samples": 60},
        {"exact": "never", "estimator": "kernel", "samples": 60},
        {"variant": "paper"},
    ],
)
def test_every_way_to_shapley_values_conforms(options) -> None:
    report = check_component(Subject(SPECS["shap"], ShapConfig(**options)), checks=checks["explainer"])
    assert report.passed, str(report)


@pytest.mark.parametrize(
    "options", [{"effect": "input-gradient"}, {"stopping_rule": "overtaken", "rivals": 2}], ids=str
)
def test_every_accent_for_the_recommenders_of_the_kit_conforms(options) -> None:
    report = check_component(Subject(SPECS["accent"], AccentConfig(**options)), checks=checks["explainer"])
    assert report.passed, str(report)


def test_the_published_lxr_conforms() -> None:
    options = LXRConfig(variant="paper", paper=PaperLXR(epochs=2))
    report = check_component(Subject(SPECS["lxr"], options), checks=checks["explainer"])
    assert report.passed, str(report)


def test_every_option_is_described() -> None:
    for spec in SPECS.values():
        assert all(option.help and option.type for option in fields_of(resolve(spec.config)))


def test_listing_imports_neither_torch_nor_pandas() -> None:
    code = (
        "import sys, cfbench_explainers_native.plugin as plugin; plugin.cfbench_explainers();"
        "print([m for m in ('torch', 'pandas', 'numpy', 'scipy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
