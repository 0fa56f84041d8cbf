r"""Tables in LaTeX, for the packages booktabs and graphicx: best \textbf, next \underline, outcomes across
the line."""

from __future__ import annotations

from collections.abc import Sequence

from cfbench_core.plain_text import visible
from cfbench_core.reports.table_data import LEGEND, Entry, Row, Table

LAST_LATIN = 0x17F
"""The last character that pdfLaTeX sets without further packages."""
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
    "[": "{[}",  # after a line's end a bracket would begin its optional argument; so would a star
    "]": "{]}",
    "*": "{*}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "·": r"$\cdot$",
    "✓": r"$\surd$",
    "✗": r"$\times$",
    "∅": r"$\emptyset$",
}


def render(tables: Sequence[Table]) -> str:
    written = "\n".join(_table(table) for table in tables)
    head = f"% \\usepackage{{booktabs}} \\usepackage{{graphicx}}\n% {LEGEND}\n"
    if any(ord(character) > LAST_LATIN for character in written):
        head += "% Compile it with LuaLaTeX or XeLaTeX, and a font that has the letters of these names.\n"
    return f"{head}\n{written}"


def _table(table: Table) -> str:
    columns = "l" + ("r" * len(table.shown) or "l")
    heads = " & ".join([escape(table.row_label), *(escape(table.headers[p].label) for p in table.shown)])
    lines = []
    for number, row in enumerate(table.lines):
        if number and bool(row.role) != bool(table.lines[number - 1].role):
            lines.append(r"\midrule")
        lines.append(_line(row, table.shown) + r" \\")
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{escape('. '.join([table.caption, *_notes(table)]))}.}}",
            r"\vspace{4pt}",
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


def _notes(table: Table) -> list[str]:
    """Without the outcomes that stand in the table itself."""
    return [note for note in table.notes if note not in {f"{row.name}: {row.outcome}" for row in table.lines}]


def _line(row: Row, shown: Sequence[int]) -> str:
    if row.outcome:
        columns = max(len(shown), 1)
        return rf"{escape(row.label)} & \multicolumn{{{columns}}}{{l}}{{\emph{{{escape(row.outcome)}}}}}"
    return " & ".join([escape(row.label), *(_entry(row.entries[place]) for place in shown)])


def _entry(entry: Entry) -> str:
    text = escape(entry.text)
    if entry.emphasis == "best":
        text = rf"\textbf{{{text}}}"
    elif entry.emphasis == "second":
        text = rf"\underline{{{text}}}"
    coverage = escape(entry.number.coverage) if entry.number.n else ""
    return rf"{text} {{\footnotesize ({coverage})}}" if coverage else text


def tabular(
    heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool], caption: str
) -> str:
    """A table of text as LaTeX source (booktabs, graphicx); columns of ``numbers`` are aligned to the right."""
    lines = [" & ".join(map(escape, row)) + r" \\" for row in rows]
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{escape(caption)}}}",
            r"\vspace{4pt}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numbers)}}}",
            r"\toprule",
            " & ".join(map(escape, heads)) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def escape(text: str) -> str:
    """Text as LaTeX source."""
    words = visible(" ".join(text.split()))
    return "".join(_ESCAPES.get(character, character) for character in words)
