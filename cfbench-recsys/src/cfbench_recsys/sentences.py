"""One explanation of a run as a sentence that a person can check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfbench_recsys.metrics.place_after import COLUMN as PLACE_AFTER

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run


@dataclass(frozen=True)
class Told:
    """An explicit answer at item level."""

    model: str
    explainer: str
    user: str
    item: str
    place: int
    place_after: int
    removed: tuple[str, ...]

    def __str__(self) -> str:
        items = _listed(self.removed)
        these = "it" if len(self.removed) == 1 else f"these {len(self.removed)}"
        return (
            f"{self.model} recommended {self.item} to {self.user} (place {self.place}) because of {items}; "
            f"without {these} it would drop to place {self.place_after} ({self.explainer})."
        )


def best_explanation(run: Run) -> str:
    """The clearest success at item level: a first place lost to few removals, falling far. "" if there is none."""
    told = list(_told(run))
    if not told:
        return ""
    best = min(
        told, key=lambda t: (abs(len(t.removed) - 2), t.place, -t.place_after, t.user, t.item, t.explainer)
    )
    return str(best)


def _told(run: Run) -> list[Told]:
    scores = run.scores
    found = scores[(scores["metric"] == PLACE_AFTER.name) & (scores["status"] == "ok")]
    if found.empty or "item" not in found:
        return []
    found = found[
        (found["value"] > found["k"])
        & (found["rank"] == found.groupby(["cell", "user"])["rank"].transform("min"))
    ]
    explanations = run.explanations
    explanations = explanations[explanations["format"] == "explicit"]
    edits = dict(iter(explanations.groupby(["cell", "unit"], observed=True)))
    return [
        _one(row, edits[row["cell"], row["unit"]])
        for row in found.to_dict("records")
        if (row["cell"], row["unit"]) in edits and _own_removals(edits[row["cell"], row["unit"]])
    ]


def _own_removals(edits: pd.DataFrame) -> bool:
    own: bool = ((edits["op"] == "remove") & (edits["edge_user"] == edits["user"])).all()
    return own


def _one(row: dict[str, object], edits: pd.DataFrame) -> Told:
    return Told(
        str(row["model"]),
        str(row["explainer"]),
        str(row["user"]),
        str(row["item"]),
        int(row["rank"]),  # type: ignore[call-overload]
        int(row["value"]),  # type: ignore[call-overload]
        tuple(edits["edge_item"]),
    )


def _listed(items: tuple[str, ...]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
