"""Puts tables of docs/results/ where a page asks for them, on a line ``{{ table("name", where="k == 5") }}``.

A macro is called as a function of result_tables/ would be, with literals alone; each function tells what it shows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from mkdocs.exceptions import PluginError
from reference_pages.formulas import formula
from result_tables import against_published, ours, replications, states

MACROS: dict[str, Callable[..., str]] = {
    "formula": formula,
    "table": ours.table,
    "study": ours.study,
    "pivot": ours.pivot,
    "identical": ours.identical,
    "by_set": ours.by_set,
    "across": ours.across,
    "growth": ours.growth,
    "refined": ours.refined,
    "paper_table": ours.paper_table,
    "quality": ours.quality,
    "against_paper": against_published.against_paper,
    "against_study": against_published.against_study,
    "claims_of_study": against_published.claims_of_study,
    "against_literature": against_published.against_literature,
    "claims_of_paper": replications.claims_of_paper,
    "verdicts_of_paper": replications.verdicts_of_paper,
    "verdicts_on_claims": replications.verdicts_on_claims,
    "numbers_of_paper": replications.numbers_of_paper,
    "counted_claims": replications.counted_claims,
    "states_of_results": states.states_of_results,
    "state_of": states.state_of,
    "count_states": states.count_states,
    "count_results": states.count_results,
}
CALL = re.compile(r"\{\{ (\w+\(.*?\)) \}\}")


def on_page_markdown(markdown: str, **_: object) -> str:
    """mkdocs calls this for each page."""
    return CALL.sub(lambda call: shown(call[1]), markdown)


def shown(source: str) -> str:
    """What one macro puts in its place."""
    macro, positional, named = parsed(source)
    if macro not in MACROS:
        raise PluginError(f"a page asks for {source}; there are the macros {', '.join(MACROS)}")
    return MACROS[macro](*positional, **named)


def parsed(source: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name and the arguments of a call.

    >>> parsed('study("graph", level="item", k=5)')
    ('study', ['graph'], {'level': 'item', 'k': 5})
    """
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name), source
    named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return call.func.id, [ast.literal_eval(argument) for argument in call.args], named
