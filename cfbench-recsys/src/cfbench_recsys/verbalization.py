"""One explanation of a run as a sentence that a person can check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfbench_recsys.metrics.rank_after import COLUMN as RANK_AFTER
from cfbench_recsys.naming import Naming, naming_of

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

_COLUMNS = (
    "cell", "dataset", "model", "explainer", "metric", "status", "value", "k", "unit", "user", "item", "rank",
)  # fmt: skip
_NUMBERS = ("", "it", "these two", "these three", "these four", "these five")


@dataclass(frozen=True)
class RemovalExplanation:
    """An explicit answer at item level: removals from the user's own history that push the item out of the list."""

    cell: str
    model: str
    explainer: str
    user: str
    item: str
    place: int
    rank_after: int
    removed: tuple[str, ...]

    def words(self, naming: Naming) -> str:
        removed = [naming.item(item) for item in self.removed]
        count = len(removed)
        these = _NUMBERS[count] if count < len(_NUMBERS) else f"these {count}"
        listed = removed[0] if count == 1 else f"{', '.join(removed[:-1])} and {removed[-1]}"
        return (
            f"{naming.item(self.item)} was recommended to {naming.user(self.user)} (place {self.place}) because "
            f"{naming.because} {listed}; without {these} it would fall to place {self.rank_after} "
            f"({self.model}, explained by {self.explainer})."
        )


def best_explanation(run: Run) -> str:
    """A success of the explainer that succeeds most, on the best model; "" if there is none.

    Of its answers: two removals if possible, the first place, and of these one that falls a middling way, for the
    farthest fall is the least typical.
    """
    after = _places_after(run)
    found = next(
        (found for cell in _cells(run, after) if (found := _removal_explanations(run, cell, after))), []
    )
    if not found:
        return ""
    simplest = min((abs(len(one.removed) - 2), one.place) for one in found)
    simplest_ones = [one for one in found if (abs(len(one.removed) - 2), one.place) == simplest]
    simplest_ones.sort(key=lambda one: (one.rank_after, one.user, one.item))
    chosen = simplest_ones[len(simplest_ones) // 2]
    return chosen.words(naming_of(run, chosen.cell))


def units_in_words(run: Run) -> dict[str, int]:
    """In how many cells a unit has an answer that becomes a sentence; units without one are left out."""
    after = _places_after(run)
    if after.empty:
        return {}
    won = after[after["value"] > after["k"]]
    pairs = set(zip(won["cell"].astype(str), won["unit"].astype(str), strict=True))
    columns = ["cell", "unit", "user", "edge_user", "op"]
    answered: set[tuple[str, str]] = set()
    for part in run.batches("explanations.parquet", columns, sorted({cell for cell, _ in pairs})):
        answered.update(zip(part["cell"].astype(str), part["unit"].astype(str), strict=True))
        other = part[(part["op"] != "remove") | (part["edge_user"].astype(str) != part["user"].astype(str))]
        pairs.difference_update(zip(other["cell"].astype(str), other["unit"].astype(str), strict=True))
    return Counter(unit for _, unit in pairs & answered)


def why_not_in_words(run: Run, units: Collection[str]) -> str:
    """Why there is no sentence of these units; "" where the reason is that no answer is a counterfactual."""
    if all(column.name != RANK_AFTER.name for column in run.columns):
        return (
            "No sentence: it says in which place of the list an item lands, which this run did not measure; "
            "add the metric rank-after, and level: [item] and format: [explicit] where the protocol lacks them."
        )
    after = _places_after(run)
    own = after[after["unit"].isin(list(units))] if len(after) else after
    if own.empty:
        return (
            "No sentence: only an explanation of one item (level: item) by edits (format: explicit) is put into words; "
            f"choose such a unit: cfbench explain {run.directory} --list"
        )
    if (own["value"] > own["k"]).any():
        return "No sentence: the valid counterfactuals do more than remove the user's own interactions."
    return ""


def _places_after(run: Run) -> pd.DataFrame:
    """The scores that are places after an edit. Only they are held in memory, of all scores of the run."""
    import pandas as pd

    parts = [
        part[part["status"] == "ok"]
        for part in run.batches("scores.parquet", _COLUMNS, metrics=[RANK_AFTER.name])
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _cells(run: Run, after: pd.DataFrame) -> list[str]:
    """Those with places after an edit: controls last, then by the model's quality, then by how often and with how few
    edits the answers work."""
    if after.empty or "item" not in after:
        return []
    success = (after["value"] > after["k"]).groupby(after["cell"]).mean()
    edits: Counter[str] = Counter()
    for part in run.batches("explanations.parquet", ["cell"], [*success.index]):
        edits.update({str(cell): int(count) for cell, count in part["cell"].value_counts().items()})
    quality = _quality(run)
    roles = {cell.id: cell.role for cell in run.cells()}
    labels = after.drop_duplicates("cell").set_index("cell")[["dataset", "model"]]

    def order(cell: str) -> tuple[bool, float, float, int, str]:
        where = tuple(labels.loc[cell])
        return bool(roles.get(cell)), -quality.get(where, 0.0), -success[cell], edits[cell], cell

    return sorted(success.index, key=order)


def _quality(run: Run) -> dict[tuple[str, ...], float]:
    """The first metric of each model on each data set."""
    first = run.quality.drop_duplicates(["dataset", "model"])
    return {(row["dataset"], row["model"]): float(row["value"]) for row in first.to_dict("records")}


def _removal_explanations(run: Run, cell: str, after: pd.DataFrame) -> list[RemovalExplanation]:
    """The answers of a cell that work: for each user that of the first place, or of the first that has one."""
    found = after[(after["cell"] == cell) & (after["value"] > after["k"])]
    found = found[found["rank"] == found.groupby("user")["rank"].transform("min")]
    answers = run.explanations_of(cell)
    return list(_answers(found, {str(unit): rows for unit, rows in answers.groupby("unit", observed=True)}))


def _answers(found: pd.DataFrame, edits: dict[str, pd.DataFrame]) -> Iterator[RemovalExplanation]:
    for row in found.to_dict("records"):
        answer = edits.get(row["unit"])
        if answer is None or not ((answer["op"] == "remove") & (answer["edge_user"] == answer["user"])).all():
            continue
        yield RemovalExplanation(
            str(row["cell"]),
            str(row["model"]),
            str(row["explainer"]),
            str(row["user"]),
            str(row["item"]),
            int(row["rank"]),
            int(row["value"]),
            tuple(answer["edge_item"]),
        )
