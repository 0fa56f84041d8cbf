"""An option may name another component: an explainer that starts from the answers of another one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, Any

from cfbench_core.config import ConfiguredComponent, OfKind, create
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import references


@dataclass(frozen=True, kw_only=True)
class TreeConfig:
    depth: int = 3


class Tree:
    def __init__(self, config: TreeConfig) -> None:
        self.config = config


@dataclass(frozen=True, kw_only=True)
class RobustConfig:
    base: Annotated[ConfiguredComponent | None, OfKind("explainer")] = None
    levels: tuple[float, ...] = (0.5, 0.9)


class Robust:
    def __init__(self, config: RobustConfig) -> None:
        self.config = config


def spec(name: str, kind: str) -> ComponentSpec:
    return ComponentSpec(
        id=f"toy/explainer/{name}",
        summary=name,
        target=f"{__name__}:{kind}",
        config=f"{__name__}:{kind}Config",
    )


def configured(name: str, kind: str, options: Any) -> ConfiguredComponent:
    return ConfiguredComponent("explainer", name, spec(name, kind), options, "toy 1.0")


TREE = configured("tree", "Tree", TreeConfig(depth=5))
ROBUST = configured("robust", "Robust", RobustConfig(base=TREE))


def test_a_worker_creates_both_from_json() -> None:
    parameters = json.loads(json.dumps(ROBUST.parameters()))
    made = create(parameters)
    assert made.config.levels == (0.5, 0.9)
    assert create(made.config.base).config == TreeConfig(depth=5)
    assert create(TREE).config == TreeConfig(depth=5)


def test_the_code_of_both_counts() -> None:
    assert {f"{__name__}:Tree", f"{__name__}:TreeConfig", f"{__name__}:Robust"} <= set(
        references(ROBUST.parameters())
    )


def test_both_are_written_out_in_the_configuration() -> None:
    assert ROBUST.document() == {
        "name": "robust",
        "base": {"name": "tree", "depth": 5},
        "levels": (0.5, 0.9),
    }
    assert ROBUST.document(defaults=False) == {"name": "robust", "base": {"name": "tree", "depth": 5}}
    plain = configured("robust", "Robust", RobustConfig(base=configured("tree", "Tree", TreeConfig())))
    assert plain.document(defaults=False) == {"name": "robust", "base": "tree"}


def test_changing_an_option_leaves_the_other_component() -> None:
    assert ROBUST.with_options({"levels": (0.1,)}).options == RobustConfig(base=TREE, levels=(0.1,))


def test_options_for_a_combination_apply_to_the_other_component_too() -> None:
    varied = replace(TREE, options_for=(("iris-mlp", TreeConfig(depth=9)),))
    outer = replace(ROBUST, options=RobustConfig(base=varied))
    assert outer.used_for("iris", "mlp").options.base.options == TreeConfig(depth=9)
    assert outer.used_for("wine", "mlp").options.base.options == TreeConfig(depth=5)
    assert ROBUST.used_for("iris", "mlp") is ROBUST
