"""The explanation that a run verbalizes: its choice and its text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from cfbench_core.run_directory import RunCell
from cfbench_recsys.naming import Naming
from cfbench_recsys.verbalization import RemovalExplanation, best_explanation

FILMS = Naming(
    {"50": "Star Wars (1977)", "181": "Return of the Jedi (1983)", "7": "12"},
    {"user": "user", "users": "users", "item": "film", "items": "films"},
    "they liked",
)


def explanation(*removed: str) -> RemovalExplanation:
    return RemovalExplanation("cell", "mf", "lime-rs", "17", "50", 1, 14, removed)


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        (("181",), "they liked Return of the Jedi (1983); without it it would fall to place 14"),
        (("181", "7"), "they liked Return of the Jedi (1983) and film 12; without these two it would fall"),
        (("1", "2", "3"), "they liked film 1, film 2 and film 3; without these three it would fall"),
        (tuple("123456"), "film 5 and film 6; without these 6 it would fall"),
    ],
)
def test_a_sentence_by_hand(removed: tuple[str, ...], said: str) -> None:
    words = explanation(*removed).words(FILMS)
    assert words.startswith("Star Wars (1977) was recommended to user 17 (place 1) because they liked ")
    assert said in words and words.endswith("place 14 (mf, explained by lime-rs).")


def made_up(cells: dict[str, tuple[str, str, str, list[float]]]) -> Any:
    """A run with one explicit answer for each of some users: cell -> model, explainer, role, places after."""
    scores, edits, found = [], [], []
    for cell, (model, explainer, role, places) in cells.items():
        labels = {"dataset": "d", "model": model, "explainer": explainer}
        found.append(RunCell(cell, labels, role, "ok", "", ()))
        for n, place in enumerate(places):
            unit = {"cell": cell, "unit": f"u{n}/x", "user": f"u{n}", "item": "x", **labels}
            scores.append({**unit, "metric": "Rank after", "value": place, "status": "ok", "k": 5, "rank": 1})
            edits += [
                {**unit, "format": "explicit", "op": "remove", "edge_user": f"u{n}", "edge_item": item}
                for item in ("aa", "bb")
            ]
    quality = pd.DataFrame(
        {"dataset": "d", "model": ["weak", "good"], "metric": "HR@10", "value": [0.1, 0.2]}
    )
    explanations = pd.DataFrame(edits)

    def batches(
        name: str, columns: list[str], cells: list[str] | None = None, metrics: list[str] | None = None
    ) -> list[pd.DataFrame]:
        """The rows of a table one by one, as a run reads them in parts."""
        rows = explanations if name == "explanations.parquet" else pd.DataFrame(scores)
        for column, wanted in (("cell", cells), ("metric", metrics)):
            rows = rows if wanted is None else rows[rows[column].isin(wanted)]
        return [rows.iloc[[place]][list(columns)] for place in range(len(rows))]

    return SimpleNamespace(
        batches=batches,
        explanations=explanations,
        explanations_of=lambda cell: explanations[explanations["cell"] == cell],
        quality=quality,
        cells=lambda: found,
        plan={"cells": [{"cell": cell, "stages": {}} for cell in cells]},
    )


def test_the_explainer_that_succeeds_most_on_the_best_model_is_quoted() -> None:
    run = made_up(
        {
            "a": ("weak", "always", "", [9, 9, 9]),
            "b": ("good", "seldom", "", [9, 1, 1]),
            "c": ("good", "often", "", [9, 9, 1]),
            "d": ("good", "cheats", "reference", [9, 9, 9]),
        }
    )
    assert best_explanation(run).endswith("(good, explained by often).")


def test_the_verbalized_fall_is_a_median_one_not_the_farthest() -> None:
    run = made_up({"a": ("good", "one", "", [6, 14, 600])})
    assert "was recommended to item u1" not in best_explanation(run)
    assert "would fall to place 14 " in best_explanation(run)


def test_an_explainer_without_successes_is_not_quoted() -> None:
    assert best_explanation(made_up({"a": ("good", "one", "", [1, 5])})) == ""
    words = best_explanation(made_up({"a": ("good", "none", "", [1, 1]), "b": ("weak", "some", "", [9, 9])}))
    assert words.endswith("(weak, explained by some).")
