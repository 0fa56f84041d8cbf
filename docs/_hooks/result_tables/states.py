"""Which stored results are still those of today's components, from docs/results/index.json."""

from __future__ import annotations

import json
from typing import Any

from result_tables.stored import RESULTS

STATES = {
    "outdated": "a component that the rows name has another version today",
    "unknown": "the version of a component at the commit of the result is not known",
    "current": "all components that the rows name have today's version",
    "no components": "the rows name none, or others published the numbers",
}


def states_of_results() -> str:
    """A table of the results that are outdated or of which nothing is known, and the names of the others."""
    results = _results()
    lines = ["| result | measured at | state |", "|---|---|---|"]
    for state in ("outdated", "unknown"):
        lines += [
            f"| {one['name']} | {_short(one['commit'])} | {_reason(one)} |"
            for one in results
            if one["state"] == state
        ]
    for state in ("current", "no components"):
        names = ", ".join(one["name"] for one in results if one["state"] == state)
        lines += ["", f"**{state.capitalize()}** ({STATES[state]}): {names}."]
    return "\n".join(lines)


def state_of(name: str) -> str:
    """The state of one stored result: "current", or "outdated: grease 1 → 2"."""
    (result,) = (one for one in _results() if one["name"] == name)
    return _reason(result) if result["state"] in ("outdated", "unknown") else str(result["state"])


def count_states() -> str:
    """ "38 current, 10 outdated": of all stored results."""
    found = [one["state"] for one in _results()]
    return ", ".join(f"{found.count(state)} {state}" for state in STATES if state in found)


def count_results() -> str:
    return str(len(_results()))


def _results() -> list[dict[str, Any]]:
    index = json.loads((RESULTS / "index.json").read_text(encoding="utf-8"))
    return list(index["results"])


def _short(commit: str) -> str:
    """A commit by seven digits; the rows have their own where there is none."""
    return commit[:7] if len(commit) == 40 else commit or "see the rows"


def _reason(result: dict[str, Any]) -> str:
    """ "outdated: alibic 1 → 4", or "unknown: of 8 of 12 components"."""
    if result["state"] == "outdated":
        changed = [
            f"{one['component'].split('/')[2]} {one['then']} → {one['now'] or 'removed'}"
            for one in result["outdated"]
        ]
        return f"outdated: {', '.join(changed)}"
    versions = list(result["components"].values())
    return f"unknown for {versions.count('')} of {len(versions)} components"
