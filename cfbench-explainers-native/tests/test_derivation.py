"""Whether edits are derived from importances is what the protocol says, or the explainer's own option."""

from __future__ import annotations

from cfbench_core.api import plan


def test_without_derivation_only_explainers_that_name_edits_themselves_have_explicit_answers() -> None:
    explainers = ["lime-rs", "random", "accent", "exhaustive", {"name": "lxr", "derive": "threshold"}]
    protocol = {"k": [3], "level": "item", "users": 20, "postprocess": {"derive": "none"}}
    study = {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": ["mf"],
        "explainers": explainers,
        "protocol": protocol,
    }
    cells = plan(study).cells
    explicit = {
        cell.labels["explainer"]: cell.skipped for cell in cells if cell.labels["format"] == "explicit"
    }
    reason = "its edits would be derived from importances: derive is none"
    assert explicit == {
        "lime-rs-cfbench": reason,
        "random": reason,
        "accent-cfbench": "",
        "exhaustive": "",
        "lxr-cfbench": "",  # its own option says otherwise
    }
    implicit = {
        cell.labels["explainer"] for cell in cells if cell.labels["format"] == "implicit" and not cell.skipped
    }
    assert implicit == {"lime-rs-cfbench", "random", "accent-cfbench", "lxr-cfbench"}
