"""Which explainer is best, in a few sentences: decided by the primary metric of each table, and by nothing else.

The other metrics of a table are correlated with its primary one, so they are no further votes; the report shows how far they
agree with it. "No evidence" stands for a 95% interval of a paired difference that contains zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfbench_core.reports.table_data import DOUBTFUL
from cfbench_core.wording import count_of, join_words

if TYPE_CHECKING:
    from cfbench_core.reports.table_data import Lead, Table


@dataclass
class Standing:
    """In how many tables one took part, is the sole best, or is statistically tied for best, by the primary metrics."""

    name: str
    measured: int = 0
    sole: int = 0
    tied: int = 0

    @property
    def best(self) -> int:
        return self.sole + self.tied


def primary_leads(tables: Sequence[Table]) -> list[Lead]:
    """Who leads each table by its primary metric; tables that nobody can lead are left out."""
    return [lead for table in tables if (lead := table.lead) is not None]


def standings_of(leads: Sequence[Lead]) -> list[Standing]:
    """Competitors, over the tables with a significant difference; those most often best first."""
    found: dict[str, Standing] = {}
    for lead in leads:
        for name in lead.competitors:
            standing = found.setdefault(name, Standing(name))
            if lead.distinguishes:
                standing.measured += 1
                standing.sole += lead.names == (name,)
                standing.tied += name in lead.names and len(lead.names) > 1
    return sorted(found.values(), key=lambda s: (-s.best, -s.sole, s.name))


def answer_of(leads: Sequence[Lead]) -> str:
    """The answer in a few sentences, one or more for each primary metric; empty where nobody can lead."""
    by_metric: dict[str, list[Lead]] = {}
    for lead in leads:
        by_metric.setdefault(lead.header.column.name, []).append(lead)
    return " ".join(sentence for found in by_metric.values() for sentence in _sentences(found))


def _sentences(leads: Sequence[Lead]) -> Iterator[str]:
    """Of one metric."""
    metric = leads[0].header.column.name
    if len(leads) == 1:
        yield from _of_one(metric, leads[0])
    else:
        yield from _of_several(metric, leads)
    if leads[0].header.column.doubtful:
        yield f"{metric} ({DOUBTFUL}) rests on what is not shown to be reliable; see the notes below the tables."


def _of_one(metric: str, lead: Lead) -> Iterator[str]:
    names = join_words(lead.names)
    if not lead.distinguishes and len(lead.names) > 1:
        yield f"By {metric}, there is no evidence of a difference between {names} (best mean {lead.text})."
    elif len(lead.names) > 1:
        yield f"By {metric}, {names} are statistically tied for best (best mean {lead.text})."
    elif lead.over_next is not None:
        yield (
            f"By {metric}, {names} is best: {lead.text}, better than the next, {lead.over_next.over}, by"
            f" {lead.over_next.text}."
        )
    else:
        yield f"By {metric}, {names} has {lead.text}; nothing else competes."
    yield from _of_baselines([lead])


def _of_several(metric: str, leads: Sequence[Lead]) -> Iterator[str]:
    telling = [lead for lead in leads if lead.distinguishes]
    if telling:
        standings = standings_of(telling)
        first = [s for s in standings if s.best == standings[0].best]
        be = "is" if len(first) == 1 else "are each"
        yield (
            f"By {metric}, {join_words([s.name for s in first])} {be} best, or statistically tied for best, in"
            f" {first[0].best} of {count_of(len(telling), 'table')}{_alone(first)}."
        )
        for standing in standings:
            if standing not in first and standing.measured == standing.best > 0:
                took = f"{standing.name} took part in only {standing.measured} of them"
                where = "there" if standing.measured == 1 else "in each"
                yield f"{took} and is best, or tied for best, {where}."
    if all(
        lead.names == leads[0].names and len(lead.names) == 1 and lead.over_next is None for lead in leads
    ):
        yield f"By {metric}, nothing else competes with {leads[0].names[0]}."
    elif idle := len(leads) - len(telling):
        where = (
            f"in {count_of(idle, 'further table')}"
            if telling
            else f"by {metric} in any of {len(leads)} tables"
        )
        yield f"There is no evidence of a difference between competitors {where}."
    yield from _of_baselines(leads)


def _alone(first: Sequence[Standing]) -> str:
    """ ", alone in 2": of the only leader."""
    return f", alone in {first[0].sole}" if len(first) == 1 and first[0].sole else ""


def _of_baselines(leads: Sequence[Lead]) -> Iterator[str]:
    over = leads[0].over_baseline
    if len(leads) == 1 and over is not None and over.high < 0:
        yield f"The best baseline, {over.over}, is better still, by {over.reversed.text}."
        return
    chance = [lead for lead in leads if lead.baselines_not_beaten]
    if chance:
        baselines = sorted({name for lead in chance for name in lead.baselines_not_beaten})
        where = f"In {len(chance)} of {len(leads)} tables, there" if len(leads) > 1 else "There"
        yield f"{where} is no evidence that the best is better than the baseline {join_words(baselines, 'or')}."
    elif len(leads) == 1 and over is not None:
        yield f"The best is better than the best baseline, {over.over}, by {over.text}."
