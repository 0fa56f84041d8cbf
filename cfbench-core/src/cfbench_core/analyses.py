"""Analyses: questions that are asked of finished runs, across cells. Components of kind "analysis".

A metric looks at one explanation; an analysis looks at tables of a run, or of several runs of one suite:
how results change along the list, with the scope, with the quality of the model. Each is in the HTML report
where it applies, and ``cfbench analyse NAME RUN...`` prints its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run


@dataclass(frozen=True)
class Figure:
    """A plot as inline SVG, made by ``reports/charts``: colours and fonts are the page's.

    Attributes:
        title: what is drawn, in a few words.
        svg: the drawing.
        note: how to read it; may be empty.
        wide: whether it takes the full width of the page.
    """

    title: str
    svg: str
    note: str = ""
    wide: bool = False


class Analysis(Protocol):
    """Made from its configuration, like every component. Importing it imports neither torch nor pandas."""

    def why_not(self, runs: Sequence[Run]) -> str:
        """Why these runs cannot be asked, in a few words; empty when they can. Looks at plans only: cheap."""

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """The answer, tidy: a row for each statement, numbers unrounded. Printed, and written as CSV."""

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        """The answer drawn; from the table alone, so that a kept CSV can be drawn again."""

    def words(self, table: pd.DataFrame) -> str:
        """The answer in one or two sentences, with the numbers that carry it; "" if it has none."""
