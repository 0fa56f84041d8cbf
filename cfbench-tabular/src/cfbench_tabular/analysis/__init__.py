"""The analyses of the tabular suite, as plain data; each has a file of its own in this folder."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec

PAPER = "de Oliveira & Martens 2021"


def _spec(name: str, summary: str, implementation: str, options: bool = False) -> ComponentSpec:
    """``options``: it has some, the class ``Config`` of the same file."""
    module = f"{__name__}.{name}"
    return ComponentSpec(
        id=f"tabular/analysis/{name}",
        summary=summary,
        target=f"{module}:{implementation}",
        config=f"{module}:Config" if options else None,
        paper=PAPER,
    )


ANALYSES: list[ComponentSpec] = [
    _spec("rankings", "Who is best, and is it more than chance?", "Rankings", options=True),
    _spec("coverage", "For how many rows is there an answer, and a realistic one?", "Coverage"),
    _spec("times", "How long does an answer take, by explainer and data set?", "Times"),
    _spec("stability", "Who gives the same answer again?", "Stability"),
    _spec("advice", "Which explainer suits which data, model and row?", "Advice", options=True),
]
