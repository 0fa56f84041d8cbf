"""The files of the page: its own, and the report's style sheet, whose colours and charts it uses."""

from __future__ import annotations

from importlib import resources

SCRIPTS = ("app.js", "blocks.js", "constraints.js", "pages.js")
STYLES = ("report.css", "view.css")


def static_file(name: str) -> bytes:
    """A file of the page."""
    if name == "report.css":
        style = resources.files("cfbench_core.reports").joinpath("templates", "style.css").read_text("utf-8")
        return style.replace("<style>", "").replace("</style>", "").encode()
    return resources.files("cfbench_core.view").joinpath("static", name).read_bytes()
