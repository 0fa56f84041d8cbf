"""Reads the tables of ``cfbench_recsys.published``."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from cfbench_core.verdicts import rounding

if TYPE_CHECKING:
    import pandas as pd

CLAIMS_DATA = "claims-data"
"""The item of the rows behind claims that no table or figure of the paper shows."""
NUMBERS = ("page", "printed", "deviation", "threshold")


def read_published(name: str) -> pd.DataFrame:
    """A table of the package, with empty text where it has none.

    Printed numbers are text in the file, since their decimals say how they were rounded (column ``rounded_by``).
    """
    import pandas as pd

    with (resources.files("cfbench_recsys.published") / name).open(encoding="utf-8") as opened:
        table = pd.read_csv(opened, dtype=str, keep_default_na=False)
    if "printed" in table.columns:
        table = table.assign(rounded_by=table["printed"].map(rounding))
    known = [column for column in NUMBERS if column in table.columns]
    return table.assign(**{column: pd.to_numeric(table[column]) for column in known})
