"""The formula of a component, from docs/formulas.toml, as MathML: browsers draw it without a script and without fonts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from html import escape
from itertools import cycle
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from cfbench_core.registry import Registry

FILE = Path(__file__).parents[2] / "formulas.toml"
INLINE = re.compile(r"\$(.+?)\$")
CODE = re.compile(r"`(.+?)`")


@cache
def formulas() -> Mapping[str, Mapping[str, Any]]:
    """By component id: ``lines``, LaTeX, and ``where``, Markdown with $...$."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def problems(registry: Registry) -> list[str]:
    """Formulas of components that do not exist, and metrics without a formula."""
    known = {component.spec.id for component in registry.components()}
    unknown = [
        f"docs/formulas.toml: there is no component {name}" for name in formulas() if name not in known
    ]
    metrics = (component.spec.id for component in registry.components("metric"))
    return unknown + [
        f"docs/formulas.toml: no formula of {name}" for name in metrics if name not in formulas()
    ]


def formula(component: str) -> str:
    """The displayed lines of a component, and what their symbols mean, as HTML; empty if it has none.

    >>> formula("text/metric/sts").startswith('<div class="formula"><math')
    True
    >>> formula("recsys/metric/unknown")
    ''
    """
    entry = formulas().get(component)
    if not entry:
        return ""
    lines = "".join(convert(line, display="block") for line in entry["lines"])
    return f'<div class="formula">{lines}<p>{_symbols(entry.get("where", ""))}</p></div>'


def _symbols(text: str) -> str:
    """Text with $LaTeX$ and `code` as HTML: Markdown takes <math> for a block, which it would set apart."""
    parts = INLINE.split(text)
    return "".join(
        convert(part) if odd else CODE.sub(r"<code>\1</code>", escape(part))
        for odd, part in zip(cycle((False, True)), parts, strict=False)
    )
