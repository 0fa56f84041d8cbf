"""Who is explained, and which items: the users drawn, and the list of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.ids import join_ids
from cfbench_core.stages import TaskContext
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.recommended_lists import recommended_lists, too_small
from cfbench_recsys.steps.chunks import write_withheld
from cfbench_recsys.steps.data import SplitData, load_data
from cfbench_recsys.users_file import users_in_file


def choose_units(
    context: TaskContext, data: SplitData, model: ScoringModel
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Draws the users to explain, and lists what is recommended to them: a row for each unit.

    Columns: unit, group (one for each user), user, item (null at list level), rank, and for the stages
    user_index and items_index (the list, as indices).
    """
    return lists_of(context, data, model, users_to_explain(context, data))


def lists_of(
    context: TaskContext, data: SplitData, model: ScoringModel, users: IntArray
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The lists of some users as units, and the stage's summary."""
    level, k = context.parameters["level"], context.parameters["k"]
    profiles, label = data.split.profiles, context.task.label
    lists, lost = recommended_lists(model, data.interactions, profiles, users, k, label)
    short = np.count_nonzero((lists < 0).any(axis=1))
    notes = []
    if short:
        then = "no list to explain" if level == "list" else "what is left cannot leave the list"
        notes.append(f"{short} of {len(users)} users have fewer than {k} items left to recommend: {then}")
    if len(lost):
        notes.append(too_small(len(lost), len(users)))
    summary: dict[str, Any] = {"note": "; ".join(notes)} if notes else {}
    return _units_table(data.interactions, users, lists, level), summary


def withhold_users(context: TaskContext) -> dict[str, Any]:
    """Lists the users to explain, from whom no explainer may learn: the same for every level and k."""
    return write_withheld(context, users_to_explain(context, load_data(context)))


def users_to_explain(context: TaskContext, data: SplitData) -> IntArray:
    """The users to explain, as indices: those of a file, or a draw, the same for every model."""
    if "users_file" not in context.parameters:
        pool = data.split.explainable
        drawn = context.streams.generator("users").permutation(len(pool))[: context.parameters["users"]]
        return np.sort(pool[drawn])
    return users_in_file(Path(context.parameters["users_file"]), data.interactions, data.split)


def _units_table(interactions: Interactions, users: IntArray, lists: IntArray, level: str) -> pd.DataFrame:
    """Users with too few candidates for a list of k have the items they have; at list level they are left out."""
    user_ids = interactions.user_ids[users]
    if level == "list":
        rows = np.flatnonzero((lists >= 0).all(axis=1))
        chosen, no_item = lists[rows], [None] * len(rows)
        names = [join_ids(user) for user in user_ids[rows]]
        shown, ranks = pd.Series(no_item, dtype="string"), pd.Series(no_item, dtype="Int64")
    else:
        rows, places = np.nonzero(lists >= 0)
        chosen = lists[rows, places][:, None]
        ids = interactions.item_ids[chosen[:, 0]]
        names = [join_ids(user, item) for user, item in zip(user_ids[rows], ids, strict=True)]
        shown, ranks = pd.Series(ids, dtype="string"), pd.Series(places + 1, dtype="Int64")
    return pd.DataFrame(
        {
            "unit": names,
            "group": np.unique(rows, return_inverse=True)[1],  # who has no candidate is no group
            "user": user_ids[rows],
            "item": shown,
            "rank": ranks,
            "user_index": users[rows],
            "items_index": list(chosen),
        }
    )
