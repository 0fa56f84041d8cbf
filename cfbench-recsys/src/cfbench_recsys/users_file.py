"""Users to explain that are listed in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from cfbench_core.errors import UserError
from cfbench_core.user_files import read_csv_as_text
from cfbench_recsys.edits import IntArray
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.splits import Split


def users_in_file(path: Path, interactions: Interactions, split: Split) -> IntArray:
    """The users in the column ``user`` of a CSV file, as indices.

    Raises:
        UserError: when the file is no such table, or a user is unknown or has no interaction in its profile.
    """
    try:
        table = read_csv_as_text(path)
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as a table: {str(error).splitlines()[0]}") from None
    table.columns = [str(name).strip() for name in table.columns]
    if "user" not in table:
        raise UserError(f"{path}: needs a column 'user', has {', '.join(table.columns)}")
    listed = table["user"].str.strip().drop_duplicates()  # as identifiers of the data are read
    if listed.empty:
        raise UserError(f"{path}: names no user")
    found = pd.Index(interactions.user_ids).get_indexer(pd.Index(listed))
    if (found < 0).any():
        raise UserError(f"{path}: {listed[found < 0].iloc[0]!r} is not a user of {interactions.name}")
    known = np.diff(split.profiles.indptr)[found] > 0
    if not known.all():
        raise UserError(
            f"{path}: the split leaves {listed[~known].iloc[0]!r} no interaction to recommend from"
        )
    return found.astype(np.int64)
