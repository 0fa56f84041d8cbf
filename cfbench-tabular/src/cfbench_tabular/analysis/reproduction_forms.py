"""The table of ``reproduction`` in the forms of CF-tabular, as text and as LaTeX.

Tables 4 and 5 have a part for each type of data, in the order of the paper, and the measures that it prints. In text the
algorithms are the lines, since ten of them do not fit next to each other. The paper draws figures 6 and 7 and prints no
numbers of them; those of the authors' own tables are in their parentheses, and the headings say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.reports.verdict_cells import LEGEND, MARKS, verdict_cell
from cfbench_core.verdicts import Interval
from cfbench_tabular.analysis.headline_claims import HEADLINES
from cfbench_tabular.analysis.printed_numbers import (
    ALGORITHMS,
    BY_GROUP,
    QUALITY,
    RANKED,
    SECONDS,
    SHARES,
    UNPRINTED,
)
from cfbench_tabular.analysis.published_claims import ITEM
from cfbench_tabular.analysis.run_data import GROUPS, TOTAL, groups_of, place, tidied

if TYPE_CHECKING:
    import pandas as pd

PARTS = (*(name for name in GROUPS if name != TOTAL), TOTAL)
"""In the order of tables 4 and 5."""
HEADLINE_HEADS = ["claim", "here (printed)", "decided by", "verdict"]
CLAIM_HEADS = ["data", "place (printed)", "verdict"]


def text_of(table: pd.DataFrame) -> str:
    """Every table and figure that was measured, of each model."""
    blocks: list[str] = []
    for labels, own in groups_of(with_text(table), ("model",)):
        about = place(labels, table)
        blocks += _blocks(own, f" · {about}" if about else "")
    return "\n\n".join([*blocks, LEGEND])


def _blocks(table: pd.DataFrame, where: str) -> Iterator[str]:
    """The blocks of one model."""
    for item, part, rows in parts_of(table):
        text = grid(rows)[1]
        lines = [[str(name), *map(str, row)] for name, row in zip(text.index, text.to_numpy(), strict=True)]
        yield _block(f"{item}{where}, {part}: {compared_with(item)}", ["", *text.columns], lines)
    if heads_and_lines := quality_shown(table):
        yield _block(f"{QUALITY}{where}: ours (printed)", *heads_and_lines)
    if claims := claims_shown(table):
        heads = ["algorithm", "claim: among the best", *CLAIM_HEADS]
        yield _block(f"table 6{where}: places among the ten algorithms", heads, claims)
    if headlines := headlines_shown(table):
        yield _block(f"claims{where}", HEADLINE_HEADS, headlines)


def _block(heading: str, heads: list[str], lines: list[list[str]]) -> str:
    from tabulate import tabulate

    return f"{heading}\n{tabulate(lines, heads, tablefmt='simple')}"


def latex_of(table: pd.DataFrame) -> str:
    """Each table with the algorithms in columns, and the measures by type of data in rows, as in the paper."""
    from cfbench_core.reports.latex import escape

    found: list[str] = []
    for labels, own in groups_of(with_text(tidied(table)).dropna(subset=["ours"]), ("model",)):
        about = place(labels, table)
        found += _latex_tables(own, f", {about}" if about else "")
    head = f"% \\usepackage{{booktabs}} \\usepackage{{graphicx}}\n% {escape(LEGEND)}\n\n"
    return head + "\n".join(found)


def _latex_tables(table: pd.DataFrame, about: str) -> Iterator[str]:
    """The tables of one model."""
    from cfbench_core.reports.latex import tabular

    for labels, rows in groups_of(_numbers(table), ("item",)):
        names = [name for name in ALGORITHMS if name in set(rows["explainer"])]
        ordered = rows.sort_values("group", key=lambda one: one.map(PARTS.index), kind="stable")
        lines = []
        for group, own in groups_of(ordered, ("group", "measure")):
            cells = {row["explainer"]: row for row in own.to_dict("records")}
            shown = [both(cells.get(name)) for name in names]
            lines.append([str(group["group"]), str(group["measure"]), *shown])
        caption = f"CF-tabular, {labels['item']}{about}: {compared_with(str(labels['item']))}."
        yield tabular(["data", "measure", *names], lines, [False, False, *([True] * len(names))], caption)
    if claims := claims_shown(table):
        caption = f"CF-tabular, table 6{about}: places among the ten algorithms."
        heads = ["algorithm", "among the best", *CLAIM_HEADS]
        yield tabular(heads, claims, [False, False, False, True, False], caption)
    if headlines := headlines_shown(table):
        yield tabular(HEADLINE_HEADS, headlines, [False, True, False, False], f"CF-tabular, claims{about}.")
    if heads_and_lines := quality_shown(table):
        caption = f"CF-tabular, {QUALITY}{about}: ours (printed)."
        yield tabular(*heads_and_lines, [False, True, True], caption)


def compared_with(item: str) -> str:
    """What a cell has, for a heading."""
    return "ours (authors' number, none is printed)" if item in SHARES else "ours (printed)"


def with_text(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty strings where a CSV file has missing text."""
    texts = {name: table[name].astype(object).fillna("") for name in ("group", "explainer", "dataset")}
    return table.assign(**texts)


def of_total(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers of all data sets together, without those of measures that the paper does not print."""
    rows = _numbers(with_text(table))
    return rows[rows["group"] == TOTAL]


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tables 4 and 5 and of the figures, without those of measures that the paper does not print."""
    claimed = table["item"].isin([QUALITY, ITEM, HEADLINES])
    return table[~claimed & ~table["measure"].isin(UNPRINTED)]


def parts_of(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Item, type of data and measured rows of what is one block: a part of table 4 or 5, or a figure."""
    for labels, rows in groups_of(_numbers(with_text(table)).dropna(subset=["ours"]), ("item",)):
        item = str(labels["item"])
        if item not in RANKED:
            yield item, "by type of data", rows
            continue
        for part in PARTS:
            if len(own := rows[rows["group"] == part]):
                yield item, "all data sets" if part == TOTAL else f"{part} data", own


def quality_shown(table: pd.DataFrame) -> tuple[list[str], list[list[str]]] | None:
    """Heads and lines of the data sets of table A1 that were measured; None if none was."""
    quality = table[(table["item"] == QUALITY) & table["ours"].notna()]
    if quality.empty:
        return None
    text = grid(quality, rows_by="dataset")[1]
    lines = [[str(name), *map(str, row)] for name, row in zip(text.index, text.to_numpy(), strict=True)]
    return ["data set", *map(str, text.columns)], lines


def claims_shown(table: pd.DataFrame) -> list[list[str]]:
    """The claims of table 6 with a place here: algorithm, measure, group, place (printed), and verdict."""
    rows = table[table["item"] == ITEM].dropna(subset=["ours"])
    return [
        [
            row["explainer"],
            row["measure"],
            row["group"],
            f"{row['ours']:g}" + ("" if np.isnan(row["printed"]) else f" ({row['printed']:g})"),
            row["verdict"],
        ]
        for row in rows.to_dict("records")
    ]


def headlines_shown(table: pd.DataFrame) -> list[list[str]]:
    """The other claims that were measured: sentence, statistic (printed), what decides, and verdict."""
    rows = table[table["item"] == HEADLINES].dropna(subset=["ours"])
    return [
        [row["sentence"], f"{row['ours']:.3g} ({row['printed']:.3g})", row["rule"], row["verdict"]]
        for row in rows.to_dict("records")
    ]


def grid(rows: pd.DataFrame, rows_by: str = "explainer") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Our numbers, explainers by measures (of figures: by type of data), and the text with the numbers of the paper."""
    shown = rows.assign(text=[both(row) for row in rows.to_dict("records")])
    columns = "group" if rows["item"].iloc[0] in (*BY_GROUP, *SHARES) else "measure"
    order = list(dict.fromkeys(rows[columns]))
    values = shown.pivot(index=rows_by, columns=columns, values="ours")[order]
    return values, shown.pivot(index=rows_by, columns=columns, values="text")[order].fillna("")


def both(row: Mapping[Any, Any] | None) -> str:
    """ "3.2 (4.1, -0.9) ✗"; an empty text where we have no number. Neither ranks nor shares have an interval."""
    if row is None or np.isnan(row["ours"]):
        return ""
    theirs = row["authors"] if np.isnan(row["printed"]) else row["printed"]
    if row["item"] == SECONDS:
        return f"{row['ours']:.2g} ({theirs:.2f}) {MARKS[row['verdict']]}"
    digits = 1 if row["item"] in RANKED else 2
    return verdict_cell(Interval(row["ours"]), theirs, row["verdict"], f"{{:.{digits}f}}".format)
