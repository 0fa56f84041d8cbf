"""Reads the tables of ``cfbench_recsys.published``."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("page", "printed", "deviation", "threshold")


def read_published(name: str) -> pd.DataFrame:
    """A table of the package, with empty text where it has none."""
    import pandas as pd

    with (resources.files("cfbench_recsys.published") / name).open(encoding="utf-8") as opened:
        table = pd.read_csv(opened, dtype=str, keep_default_na=False)
    known = [column for column in NUMBERS if column in table.columns]
    return table.assign(**{column: pd.to_numeric(table[column]) for column in known})
