"""Reports of a run: tables on a terminal, in Markdown, CSV and LaTeX, and an HTML page that works offline."""

from cfbench_core.reports.render import FORMATS, print_tables, render, write_html

__all__ = ["FORMATS", "print_tables", "render", "write_html"]
