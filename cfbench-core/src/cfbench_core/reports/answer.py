"""Which explainer leads, over all tables: counted in comparisons, and summarised in a few sentences.

A comparison is one column of one table that has a better direction. Times are none, nor are columns that repeat
another; a comparison without a significant difference counts for nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfbench_core.reports.table_data import DOUBTFUL

if TYPE_CHECKING:
    from cfbench_core.reports.table_data import Lead


@dataclass
class Standing:
    """In how many comparisons one took part, is the sole best, or is statistically tied for best."""

    name: str
    measured: int = 0
    sole: int = 0
    tied: int = 0

    @property
    def best(self) -> int:
        return self.sole + self.tied


def standings_of(leads: Sequence[Lead]) -> list[Standing]:
    """Competitors, over the columns with a significant difference; those most often best first."""
    found: dict[str, Standing] = {}
    for lead in leads:
        for name in lead.competitors:
            standing = found.setdefault(name, Standing(name))
            if lead.distinguishes:
                standing.measured += 1
                standing.sole += lead.names == (name,)
                standing.tied += name in lead.names and len(lead.names) > 1
    return sorted(found.values(), key=lambda s: (-s.best, -s.sole, s.name))


def answer_of(standings: Sequence[Standing], leads: Sequence[Lead]) -> str:
    """The answer in a sentence or a few."""
    if not leads:
        return ""
    return " ".join(_sentences(standings, leads))


def _sentences(standings: Sequence[Standing], leads: Sequence[Lead]) -> Iterator[str]:
    telling = sum(lead.distinguishes for lead in leads)
    if telling:
        yield from _leaders(standings, telling)
        if idle := len(leads) - telling:
            yield f"{_counted(idle, 'further comparison')} showed no significant difference."
    else:
        yield "No comparison shows a significant difference."
    yield from _caution(leads)


def _leaders(standings: Sequence[Standing], telling: int) -> Iterator[str]:
    """Who is most often best, and who is always best where it took part, if that is seldom."""
    first = [s for s in standings if s.best == standings[0].best]
    names = _listed([s.name for s in first])
    verb = "leads: it is" if len(first) == 1 else "lead: each is"
    yield f"{names} {verb} best, or statistically tied for best, in {first[0].best} of {_counted(telling, 'comparison')}."
    for standing in standings:
        if standing not in first and standing.measured == standing.best > 0:
            yield f"{standing.name} took part in only {standing.measured} of them and is best, or tied for best, in each."


def _caution(leads: Sequence[Lead]) -> Iterator[str]:
    doubtful = sum(lead.header.column.doubtful for lead in leads)
    if doubtful:
        yield (
            f"{doubtful} of all {_counted(len(leads), 'comparison')} ({DOUBTFUL}) rest{'s' if doubtful == 1 else ''} on"
            " what is not shown to be reliable; see the notes below the tables."
        )
    chance = [lead for lead in leads if lead.baselines_not_beaten]
    if chance:
        baselines = sorted({name for lead in chance for name in lead.baselines_not_beaten})
        yield (
            f"In {len(chance)} of all {len(leads)}, even the best is not significantly better than a baseline "
            f"({', '.join(baselines)})."
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
