"""What a search finds to search in explainers that exist in two variants."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_core.errors import UserError
from cfbench_core.tuning.search import open_search


def study(explainer: dict[str, Any]) -> dict[str, Any]:
    return {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": ["mf"],
        "explainers": [explainer],
        "protocol": {"k": 3, "users": 30},
    }


@pytest.mark.parametrize("name", ["accent", "lime-rs", "shap", "lxr", "grease"])
def test_a_method_as_published_has_nothing_to_search(name: str) -> None:
    message = f"^{name}-paper is a method as published, so there is nothing to search$"
    with pytest.raises(UserError, match=message):
        open_search(study({"name": name, "variant": "paper"}), component=f"{name}-paper")


@pytest.mark.parametrize(
    ("name", "options", "searched"),
    [
        ("lime-rs", {}, ["kernel_width", "ridge"]),
        ("lime-rs", {"sampling": "draws"}, ["ridge"]),
        ("accent", {}, ["rivals"]),
        ("accent", {"effect": "influence"}, ["rivals", "damping", "negatives"]),
    ],
    ids=str,
)
def test_an_option_that_the_configuration_refuses_is_not_searched(
    name: str, options: dict[str, Any], searched: list[str]
) -> None:
    search = open_search(study({"name": name, **options}), component=f"{name}-cfbench")
    assert [dimension.name for dimension in search.space] == searched
