"""How the labels of cells read in tables and figures."""

from __future__ import annotations

from collections.abc import Mapping

from cfbench_core.plan import LabelFormat

LABEL_FORMATS: Mapping[str, LabelFormat] = {
    "level": "{} level",
    "k": "top {}",
    "edit": {"remove": "", "remove-or-add": "removals or additions"},
    "scope": "{} scope",
}
"""Removals are the usual edit and are not mentioned."""
