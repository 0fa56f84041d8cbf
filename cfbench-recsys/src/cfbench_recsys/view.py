"""The viewer's page of a unit: history, answers of the explainers, and what the recommender says to an edited history."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_core.view.blocks import Block, Editor, Facts, Field, Grid, Note, Proposal, Text

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.view.viewers import Constraints, LiveExplainer, LiveUnit, UnitData

Answer = frozenset[tuple[str, str, str]]
"""The edits of an answer: the user whose history is edited, the item, and the operation."""

SPEC = ComponentSpec(
    id="recsys/viewer/recsys",
    summary="History, recommended list, edits of each explainer, and the list of an edited history",
    target=f"{__name__}:RecsysViewer",
)

SHOWN = 10
"""Items of a list that is queried live, at least."""
MOST_IMPORTANT = 3
"""Interactions that stand for an answer of importances."""
MOST_ADDABLE = 2000
"""Items that the editor offers to add."""


class RecsysViewer:
    """Recommendations: see :class:`cfbench_core.view.viewers.Viewer`."""

    edited = "edge_item"

    def __init__(self, config: None = None) -> None:
        """There is nothing to set."""

    def unit(self, unit: UnitData) -> Sequence[Block]:
        """History, answers side by side, ranks after the edits, agreement between explainers, and an editor."""
        names = _naming(unit.artifact("data"), unit)
        user = _user_of(unit)
        history = _history(unit, user)
        explicit = unit.labels.get("format") == "explicit"
        facts = [
            (names.nouns["user"], names.user(user)),
            ("history", f"{len(history)} {names.nouns['items']}"),
        ]
        item = next((str(rows["item"].iloc[0]) for rows in unit.explanations.values() if _has_item(rows)), "")
        if item:
            rank = next(rows["rank"].iloc[0] for rows in unit.explanations.values() if _has_item(rows))
            facts.insert(1, ("explained", f"{names.item(item)}, recommended at rank {rank}"))
        answers = {unit.name(cell): _top(unit.explanations[cell.id]) for cell in unit.cells}
        blocks: list[Block] = [Facts(facts)]
        blocks += [_edits(unit, names, user)] if explicit else [_importances(unit, names, history)]
        if history:
            blocks.append(_editor(answers, names, user, history, explicit))
        else:
            blocks.append(
                Note("The data of this run is not in the cache any more, so the history cannot be shown.")
            )
        return [*blocks, *_agreement(answers)]

    def respond(self, live: LiveUnit, edit: Mapping[str, bool | float | str]) -> Sequence[Block]:
        """The list before and after the edit, with the ranks of both."""
        import numpy as np

        from cfbench_recsys.edits import ADD, REMOVE, Edits
        from cfbench_recsys.ranking import ranks_of, top_k
        from cfbench_recsys.scoring import score_blocks

        interactions, profiles = live.data.interactions, live.data.split.profiles
        user = int(live.units["user_index"].iloc[0])
        places = {str(id): place for place, id in enumerate(interactions.item_ids)}
        unknown = [name for name in edit if name not in places]
        if unknown:
            raise UserError(f"no item {unknown[0]!r} in {interactions.name}")
        present = set(profiles[user].indices.tolist())
        edges = [
            (places[name], bool(to)) for name, to in edit.items() if (places[name] in present) != bool(to)
        ]
        edited = Edits(
            np.array([user, user]),
            np.ones(len(edges), dtype=np.int64),
            np.full(len(edges), user, dtype=np.int64),
            np.array([place for place, _ in edges], dtype=np.int64),
            np.array([ADD if to else REMOVE for _, to in edges], dtype=np.int8),
        )
        scores = np.concatenate([found for _, found in score_blocks(live.model, edited, profiles)])
        history = np.tile(profiles[user].indices.astype(np.int64), (2, 1))
        padding = np.zeros(history.shape, dtype=bool)
        size = max(SHOWN, int(live.context.parameters["k"]))
        lists = top_k(scores, history, padding, size)
        shown = list(dict.fromkeys(place for place in lists.ravel().tolist() if place >= 0))
        ranks = ranks_of(scores, np.tile(np.array(shown, dtype=np.int64), (2, 1)), history, padding)
        explained = set(np.concatenate([np.atleast_1d(x) for x in live.units["items_index"]]).tolist())
        return [_lists(interactions, shown, ranks, scores, size, explained, bool(edges))]

    def curves(self, live: LiveUnit, unit: UnitData) -> Sequence[Block]:
        """The rank of the explained item while interactions are removed, or inserted, the most important first."""
        from cfbench_recsys.unit_curves import curves

        orders = {
            f"{unit.name(cell)} ({cell.role})" if cell.role else unit.name(cell): (_order(rows), cell.role)
            for cell in unit.cells
            for rows in [unit.explanations[cell.id]]
            if len(rows)
        }
        return curves(live, orders)

    def explain(self, live: LiveExplainer, constraints: Constraints) -> Sequence[Block]:
        """The explainer's edit without the locked interactions, and the list that it leads to."""
        from cfbench_recsys.locked import explain_without

        interactions = live.unit.data.interactions
        places = {str(id): place for place, id in enumerate(interactions.item_ids)}
        unknown = [name for name in constraints.locked if name not in places]
        if unknown:
            raise UserError(f"no item {unknown[0]!r} in {interactions.name}")
        edits = explain_without(live, frozenset(places[name] for name in constraints.locked))
        if not len(edits.rows):
            return [
                Note(f"{live.name} finds no edit that displaces the item and spares what is locked.", "warn")
            ]
        user = int(live.unit.units["user_index"].iloc[0])
        own = [
            (str(interactions.item_ids[item]), op > 0)
            for who, item, op in zip(edits.edge_users, edits.edge_items, edits.ops, strict=True)
            if who == user
        ]
        names = {name: str(interactions.item_names[places[name]]) for name, _ in own}
        text = ", ".join(f"{'+' if added else '−'} {names[name]}" for name, added in own)
        facts = [("explainer", live.name), ("edits", text), ("number", str(len(edits.rows)))]
        if len(own) < len(edits.rows):
            return [Facts(facts, "Answer under the constraints"), Note("It also edits edges of other users.")]
        return [
            Facts(facts, "Answer under the constraints"),
            *self.respond(live.scored, dict(own)),
        ]


def _lists(
    interactions: Any,
    shown: Sequence[int],
    ranks: Any,
    scores: Any,
    size: int,
    explained: set[int],
    edited: bool,
) -> Grid:
    """The items of both lists in the order after the edit."""
    order = sorted(range(len(shown)), key=lambda n: (ranks[1][n], ranks[0][n]))
    rows = []
    for n in order:
        place, before, after = shown[n], int(ranks[0][n]), int(ranks[1][n])
        name = Text(str(interactions.item_names[place]), "mark" if place in explained else "")
        cells = [Text(str(after)), name, Text(f"{scores[1][place]:.4f}")]
        if edited:
            moved = before - after
            sign = f"▲ {moved}" if moved > 0 else f"▼ {-moved}" if moved < 0 else "="
            tone: Any = "good" if moved > 0 else "bad" if moved < 0 else "muted"
            cells += [Text(str(before)), Text(sign, tone), Text(f"{scores[0][place]:.4f}")]
        rows.append(cells)
    if not edited:
        return Grid(
            "Recommended list", ["rank", "item", "score"], rows, (0, 2), "The explained items are marked."
        )
    columns = ["rank after", "item", "score after", "rank before", "moved", "score before"]
    note = (
        f"The first {size} of both lists, in the order after the edit. The explained items are marked; items of the "
        "original history are not ranked."
    )
    return Grid("List after your edit", columns, rows, (0, 2, 3, 4, 5), note)


_known_names: dict[Path, Any] = {}


def _naming(data: Path | None, unit: UnitData) -> Any:
    """Names of users and items; plain identifiers where the data is not in the cache any more."""
    from cfbench_recsys.naming import Naming, naming_of

    if data is None:
        return Naming()
    if data not in _known_names:
        _known_names[data] = naming_of(unit.run, unit.cells[0].id)
    return _known_names[data]


def _has_item(rows: pd.DataFrame) -> bool:
    return len(rows) > 0 and "item" in rows and bool(rows["item"].notna().iloc[0])


def _user_of(unit: UnitData) -> str:
    for rows in unit.explanations.values():
        if len(rows):
            return str(rows["user"].iloc[0])
    scores = unit.run.rows("scores.parquet", cell=[unit.cells[0].id], unit=[unit.unit])
    return str(scores["user"].iloc[0])


def _history(unit: UnitData, user: str) -> list[str]:
    """The items of the user's profile, by id; empty where the data is not in the cache any more."""
    data, split = unit.artifact("data"), unit.artifact("split")
    if data is None or split is None:
        return []
    interactions, profiles = _profiles(data, split)
    (place,) = (interactions.user_ids == user).nonzero()[0][:1]
    return [str(interactions.item_ids[item]) for item in profiles[place].indices]


@functools.lru_cache(maxsize=4)
def _profiles(data: Path, split: Path) -> tuple[Any, Any]:
    from cfbench_recsys.interactions import load_interactions
    from cfbench_recsys.splits import load_split

    return load_interactions(data), load_split(split).profiles


def _own_edits(rows: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    """(user, item, op) of an answer."""
    yield from zip(rows["edge_user"].astype(str), rows["edge_item"].astype(str), rows["op"], strict=True)


def _edits(unit: UnitData, names: Any, user: str) -> Grid:
    """The edits of each explainer with the rank that they lead to."""
    rows: list[list[Text | str]] = []
    after = next((c.name for cell in unit.cells for c in cell.columns if "after" in c.name.lower()), "")
    for cell in unit.cells:
        found = list(_own_edits(unit.explanations[cell.id]))
        text = ", ".join(_edit_words(names, user, *one) for one in found) or "no answer"
        rank = unit.scores[cell.id].get(after)
        success = next(
            (v for n, v in unit.scores[cell.id].items() if n.startswith(("PN-S", "Success"))), None
        )
        outcome = (
            Text("–", "muted")
            if success is None
            else Text("leaves the list", "good")
            if success >= 1
            else Text("stays" if success == 0 else f"{success:.0%} leave", "bad" if success == 0 else "warn")
        )
        rows.append(
            [
                Text(unit.name(cell), title=cell.role),
                Text(text, "" if found else "muted"),
                str(len(found)),
                outcome,
                "" if rank is None else f"{rank:.0f}",
                _milliseconds(unit.seconds.get(cell.id)),
            ]
        )
    columns = [unit.run.layout.row, "edits", "number", "outcome", "rank after", "time (ms)"]
    return Grid(
        "Answers of the explainers", columns, rows, (2, 4, 5), "− removes an interaction, + adds one."
    )


def _edit_words(names: Any, user: str, edge_user: str, item: str, op: str) -> str:
    sign = "−" if op == "remove" else "+"
    whose = "" if edge_user == user else f" ({names.user(edge_user)})"
    return f"{sign} {names.item(item)}{whose}"


def _importances(unit: UnitData, names: Any, history: Sequence[str]) -> Grid:
    """Each interaction's rank by importance, an explainer for each column; the most important first on average."""
    ranked = {}
    for cell in unit.cells:
        rows = unit.explanations[cell.id]
        if len(rows):
            own = rows.sort_values("importance", ascending=False, kind="stable")
            pairs = zip(own["edge_item"].astype(str), own["importance"], strict=True)
            ranked[unit.name(cell)] = {
                item: (n, float(value)) for n, (item, value) in enumerate(pairs, start=1)
            }
    items = list(dict.fromkeys([*history, *(item for found in ranked.values() for item in found)]))

    def mean_rank(item: str) -> float:
        places = [found[item][0] for found in ranked.values() if item in found]
        return sum(places) / len(places) if places else float("inf")

    rows_: list[list[Text | str]] = []
    for item in sorted(items, key=mean_rank):
        cells: list[Text | str] = [Text(names.item(item))]
        for found in ranked.values():
            place, value = found.get(item, (0, 0.0))
            bar = 1 - (place - 1) / max(len(found), 1) if place else None
            cells.append(Text(str(place) if place else "–", bar=bar, title=f"importance {value:.4g}"))
        rows_.append(cells)
    note = "Rank of each interaction by importance (1: the most important); hover for the importance."
    return Grid(
        "Importance of the history", ["interaction", *ranked], rows_, tuple(range(1, len(ranked) + 1)), note
    )


def _agreement(answers: Mapping[str, Answer]) -> Iterator[Grid]:
    """How often an interaction is edited, and how much the answers overlap (Jaccard)."""
    answers = {name: found for name, found in answers.items() if found}
    if len(answers) < 2:
        return
    rows: list[list[Text | str]] = []
    for name, own in answers.items():
        cells: list[Text | str] = [Text(name)]
        for other in answers.values():
            share = len(own & other) / len(own | other)
            cells.append(Text(f"{share:.2f}", bar=share))
        rows.append(cells)
    note = (
        f"Shared edits as a part of all edits of both (Jaccard); of importances, the {MOST_IMPORTANT} largest. "
        f"Edited most often: {', '.join(f'{item} ({n})' for item, n in _counts(answers).most_common(3))}."
    )
    yield Grid("Agreement between explainers", ["", *answers], rows, tuple(range(1, len(answers) + 1)), note)


def _counts(answers: Mapping[str, Answer]) -> Counter[str]:
    """How many answers edit an item; in the order of the answers, which does not depend on the process."""
    return Counter(item for found in answers.values() for _, item, _ in sorted(found))


def _top(rows: pd.DataFrame) -> Answer:
    """An answer as a set of edits: all of them, or those of the largest importances."""
    if len(rows) and rows["importance"].notna().any():
        rows = rows.sort_values("importance", ascending=False, kind="stable").head(MOST_IMPORTANT)
    return frozenset(_own_edits(rows))


def _order(rows: pd.DataFrame) -> list[str]:
    """The items of an answer, the most important first; of edits as they stand."""
    if rows["importance"].notna().any():
        rows = rows.sort_values("importance", ascending=False, kind="stable")
    return [str(item) for item in rows["edge_item"]]


def _editor(
    answers: Mapping[str, Answer], names: Any, user: str, history: Sequence[str], explicit: bool
) -> Editor:
    """A switch for each interaction, and what explainers propose on the user's own history."""
    proposals = []
    for name, answer in answers.items():
        own = [(item, op) for who, item, op in sorted(answer) if who == user]
        if own and len(own) == len(answer):
            what = "" if explicit else f", its {len(own)} most important"
            proposals.append(Proposal(f"{name}{what}", {item: op == "add" for item, op in own}))
    fields = [Field(item, names.item(item), "switch", True) for item in history]
    own_items = set(history)
    others = [(id, name) for id, name in names.names.items() if id not in own_items][:MOST_ADDABLE]
    note = "Switch interactions off, or add others; the model is queried anew at each change."
    return Editor(
        "What if the history were another?", fields, proposals, others, note, explicit, curves=not explicit
    )


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None or seconds != seconds else f"{seconds * 1000:.3g}"
