"""The answer of an analysis in one format: on a terminal, in Markdown, CSV and JSON, and as a page of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cfbench_core.csv_cells import protected_frame
from cfbench_core.reports import latex
from cfbench_core.reports.frames import MISSING, Cells, cells

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from cfbench_core.analyses import Answer
    from cfbench_core.run_directory import Run

FORMATS = ("table", "csv", "markdown", "html", "latex", "json")
READABLE = 16
"""Letters in a column of words that are worth more than another column of numbers."""
_GAP = 2
_NOTHING = "The table is empty: there is nothing to compare in these runs."


def render(answer: Answer, runs: Sequence[Run], format: str) -> str:
    """An answer as text; ``format`` is one of FORMATS. Numbers are rounded except in CSV and JSON."""
    assert answer.table is not None
    if format == "csv":
        written: str = protected_frame(answer.table).to_csv(index=False, lineterminator="\n")
        return written
    if format == "markdown":
        return _markdown(answer, answer.table)
    if format == "html":
        return _page(answer, runs)
    if format == "latex":
        return answer.latex or _latex(answer, answer.table)
    if format == "json":
        return _json(answer, answer.table)
    import io

    from rich.console import Console

    out = io.StringIO()
    show(answer, Console(file=out, width=120, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _latex(answer: Answer, table: pd.DataFrame) -> str:
    """The table, with the words and notes as its caption."""
    shown = cells(table)
    caption = " ".join(filter(None, (answer.question, answer.words, shown.in_every_row, *answer.notes)))
    return latex.tabular(shown.heads, shown.rows, shown.numbers, caption)


def show(answer: Answer, console: Console) -> None:
    """Question, words and table on a terminal, or in the table's place the text that the analysis has for it; notes."""
    from rich.text import Text

    _show(answer, console)
    for note in answer.notes:
        console.print(Text(note, style="dim"))


def _show(answer: Answer, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    assert answer.table is not None
    console.print(Text(answer.question, style="bold"))
    if answer.words:
        console.print(Text(answer.words))
    if answer.text:
        console.print(
            Text(f"\n{answer.text}"), soft_wrap=True
        )  # folded, its columns would no longer be aligned
        return
    shown = cells(answer.table)
    if not shown.rows:
        console.print(Text(_NOTHING, style="dim"))
        return
    shown, spared = _fitting(shown, console.width)
    painted = Table(box=None, padding=(0, 0, 0, _GAP), pad_edge=False, header_style="dim")
    for head, number in zip(shown.heads, shown.numbers, strict=True):
        painted.add_column(head, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in shown.rows:
        painted.add_row(*(Text(value, style="dim" if value == MISSING else "") for value in row))
    console.print()
    console.print(painted)
    if spared:
        console.print(Text(f"(too narrow here for: {', '.join(spared)}; --format csv has all)", style="dim"))
    if shown.in_every_row:
        console.print(Text(shown.in_every_row, style="dim"))


def _fitting(shown: Cells, width: int) -> tuple[Cells, list[str]]:
    """What fits, and the names of what is left out: columns that follow from others, then the last numbers, as many
    as it takes for words to stay readable. The first number stays."""
    spared: list[int] = []
    for place in shown.follows():
        if _width(shown.without(spared)) <= width:
            break
        spared.append(place)
    numbers = [place for place, number in enumerate(shown.numbers) if number]
    while len(numbers) > 1 and _width(shown.without(spared), READABLE) > width:
        spared.append(numbers.pop())
    return shown.without(spared), [shown.heads[place] for place in sorted(spared)]


def _width(shown: Cells, words: int | None = None) -> int:
    """Letters in a line; columns of words take no more than ``words`` of them."""
    total = -_GAP
    for number, *column in zip(shown.numbers, shown.heads, *shown.rows, strict=True):
        longest = max(map(len, column))
        total += _GAP + (longest if number or words is None else min(longest, words))
    return total


def _markdown(answer: Answer, table: pd.DataFrame) -> str:
    from tabulate import tabulate

    from cfbench_core.reports.markdown import escape

    shown = cells(table)
    rows = [[escape(value) for value in row] for row in shown.rows]
    align = tuple("right" if number else "left" for number in shown.numbers)
    heads = [escape(head) for head in shown.heads]
    body = tabulate(rows, heads, tablefmt="pipe", colalign=align, disable_numparse=True) if rows else _NOTHING
    notes = "\n".join(f"- {escape(note)}" for note in answer.notes)
    parts = [f"### {escape(answer.question)}", escape(answer.words), body, escape(shown.in_every_row), notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def _page(answer: Answer, runs: Sequence[Run]) -> str:
    from cfbench_core.reports.html import page_environment

    directories = [run.directory for run in runs]
    template = page_environment().get_template("analysis.html.j2")
    return template.render(answer=answer, suite=runs[0].suite, directories=directories)


def _json(answer: Answer, table: pd.DataFrame) -> str:
    rows = [{name: _plain(value) for name, value in row.items()} for row in table.to_dict("records")]
    whole = {"analysis": answer.name, "question": answer.question, "words": answer.words, "rows": rows}
    whole |= {"notes": list(answer.notes)} if answer.notes else {}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """As JSON has it; what is missing, and infinity, becomes null."""
    import numpy as np
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(inner) for inner in value]
    if value is pd.NA or value is pd.NaT or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
