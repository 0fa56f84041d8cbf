r"""Tables in LaTeX, for the packages booktabs and graphicx: best \textbf, next \underline, outcomes across
the line."""

from __future__ import annotations

from collections.abc import Sequence

from cfbench_core.reports.tables import LEGEND, Entry, Row, Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "·": r"$\cdot$",
}


def render(tables: Sequence[Table]) -> str:
    head = f"% \\usepackage{{booktabs}} \\usepackage{{graphicx}}\n% {LEGEND}\n"
    return "\n".join([head, *(_table(table) for table in tables)])


def _table(table: Table) -> str:
    columns = "l" + ("r" * len(table.headers) or "l")
    heads = " & ".join([escape(table.row_label), *(escape(header.label) for header in table.headers)])
    lines = []
    for place, row in enumerate(table.rows):
        if place and bool(row.role) != bool(table.rows[place - 1].role):
            lines.append(r"\midrule")
        lines.append(_line(row, len(table.headers)) + r" \\")
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{escape('. '.join([table.caption, *_incomplete(table)]))}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            heads + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def _incomplete(table: Table) -> list[str]:
    """Notes on lines that have numbers and yet lack some; other outcomes stand in the table itself."""
    return [f"{row.name} is incomplete: {row.reason}" for row in table.rows if row.status == "partial"]


def _line(row: Row, columns: int) -> str:
    if row.outcome:
        return (
            rf"{escape(row.label)} & \multicolumn{{{max(columns, 1)}}}{{l}}{{\emph{{{escape(row.outcome)}}}}}"
        )
    return " & ".join([escape(row.label), *(_entry(entry) for entry in row.entries)])


def _entry(entry: Entry) -> str:
    text = escape(entry.text)
    if entry.emphasis == "best":
        text = rf"\textbf{{{text}}}"
    elif entry.emphasis == "second":
        text = rf"\underline{{{text}}}"
    coverage = escape(entry.number.coverage) if entry.number.n else ""
    return rf"{text} {{\footnotesize ({coverage})}}" if coverage else text


def escape(text: str) -> str:
    """Text as LaTeX source."""
    return "".join(_ESCAPES.get(character, character) for character in " ".join(text.split()))
