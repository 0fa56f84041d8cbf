"""What tables call a component: its name, with its variant where it has one, or the configuration's own label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cfbench_core.config.component import ConfiguredComponent, default_label
from cfbench_core.specs import ComponentSpec

SPEC = ComponentSpec(id="toy/explainer/tree", summary="Trees", target="nowhere:Tree", config="nowhere:Config")


@dataclass(frozen=True, kw_only=True)
class Varied:
    variant: Literal["cfbench", "paper"] = "cfbench"


@dataclass(frozen=True, kw_only=True)
class Plain:
    depth: int = 3


def configured(options: object, label: str | None = None) -> ConfiguredComponent:
    return ConfiguredComponent("explainer", label or default_label(SPEC, options), SPEC, options, "toy 1.0")


def test_a_component_without_variants_is_called_by_its_name() -> None:
    assert configured(Plain()).label == "tree"


def test_the_variant_is_part_of_the_label() -> None:
    assert configured(Varied()).label == "tree-cfbench"
    assert configured(Varied(variant="paper")).label == "tree-paper"


def test_a_changed_variant_changes_the_label_unless_the_configuration_gave_one() -> None:
    assert configured(Varied()).with_options({"variant": "paper"}).label == "tree-paper"
    assert configured(Varied(), "mine").with_options({"variant": "paper"}).label == "mine"


def test_only_a_label_of_the_configuration_is_written_out() -> None:
    assert configured(Varied()).document() == {"name": "tree", "variant": "cfbench"}
    assert configured(Varied(), "mine").document() == {"name": "tree", "label": "mine", "variant": "cfbench"}
