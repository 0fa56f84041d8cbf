"""Who is explained, and which items: the users drawn, and the list of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError
from cfbench_core.ids import join_ids
from cfbench_core.stages import TaskContext
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import Edits, IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.steps.data import SplitData
from cfbench_recsys.targets import Targets


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
    level, k, profiles = context.parameters["level"], context.parameters["k"], data.split.profiles
    history = Targets.of(profiles, users, np.zeros((len(users), 1), dtype=np.int64), k, level, "user-vector")
    lists = np.empty((len(users), k), dtype=np.int64)
    for rows, scores in score_blocks(model, Edits.nothing(users), profiles):
        if np.isnan(scores).any():
            user = data.interactions.user_ids[users[rows][np.isnan(scores).any(axis=1)][0]]
            raise UserError(f"{context.task.label}: the recommender gives user {user!r} scores that are NaN")
        lists[rows] = top_k(scores, history.history[rows], history.padding[rows], k)
    short = np.count_nonzero((lists < 0).any(axis=1))
    summary: dict[str, Any] = {}
    if short:
        then = "no list to explain" if level == "list" else "what is left cannot leave the list"
        summary["note"] = f"{short} of {len(users)} users have fewer than {k} items left to recommend: {then}"
    return _units_table(data.interactions, users, lists, level), summary


def users_to_explain(context: TaskContext, data: SplitData) -> IntArray:
    """The users to explain, as indices: those of a file, or a draw, the same for every model."""
    if "users_file" not in context.parameters:
        pool = data.split.explainable
        drawn = context.streams.generator("users").permutation(len(pool))[: context.parameters["users"]]
        return np.sort(pool[drawn])
    path = context.parameters["users_file"]
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)  # a user may be called "NA"
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as a table: {str(error).splitlines()[0]}") from None
    if "user" not in table:
        raise UserError(f"{path}: needs a column 'user', has {', '.join(table.columns)}")
    listed = table["user"].drop_duplicates()
    found = pd.Index(data.interactions.user_ids).get_indexer(pd.Index(listed))
    if (found < 0).any():
        raise UserError(f"{path}: {listed[found < 0].iloc[0]!r} is not a user of {data.interactions.name}")
    known = np.diff(data.split.profiles.indptr)[found] > 0
    if not known.all():
        raise UserError(
            f"{path}: the split leaves {listed[~known].iloc[0]!r} no interaction to recommend from"
        )
    return found.astype(np.int64)


def _units_table(interactions: Interactions, users: IntArray, lists: IntArray, level: str) -> pd.DataFrame:
    """Users with too few candidates for a list of k have the items they have; at list level they are left out."""
    user_ids = interactions.user_ids[users]
    complete = (lists >= 0).all(axis=1)
    if level == "list":
        retained = np.flatnonzero(complete)
        return pd.DataFrame(
            {
                "unit": [join_ids(user) for user in user_ids[retained]],
                "group": np.arange(len(retained)),
                "user": user_ids[retained],
                "item": pd.Series([None] * len(retained), dtype="string"),
                "rank": pd.Series([None] * len(retained), dtype="Int64"),
                "user_index": users[retained],
                "items_index": list(lists[retained]),
            }
        )
    rows, places = np.nonzero(lists >= 0)
    items = lists[rows, places]
    item_ids = interactions.item_ids[items]
    return pd.DataFrame(
        {
            "unit": [join_ids(user, item) for user, item in zip(user_ids[rows], item_ids, strict=True)],
            "group": np.unique(rows, return_inverse=True)[1],  # who has no candidate is no group
            "user": user_ids[rows],
            "item": pd.Series(item_ids, dtype="string"),
            "rank": pd.Series(places + 1, dtype="Int64"),
            "user_index": users[rows],
            "items_index": list(items[:, None]),
        }
    )
