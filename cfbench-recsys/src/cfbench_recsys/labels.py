"""How the labels of cells read in tables and figures."""

from __future__ import annotations

from collections.abc import Mapping

from cfbench_core.plan import LabelFormat

ANY_BUDGET, NO_BUDGET = "any", "-"
"""The label ``max_edits`` of answers that may have any number of edits, and of importances, which have none. Other
numbers are text too, because a label has one type in all tables."""

LABEL_FORMATS: Mapping[str, LabelFormat] = {
    "level": "{} level",
    "k": "top {}",
    "edit": {"remove": "", "remove-or-add": "removals or additions"},
    "scope": {"user-vector": "", "*": "{} scope"},
    "max_edits": {
        NO_BUDGET: "",
        ANY_BUDGET: "any number of edits",
        "1": "at most 1 edit",
        "*": "at most {} edits",
    },
}
"""Removals are the usual edit and are not mentioned, nor is the user's profile as the scope of models that have no other;
importances have no number of edits."""
