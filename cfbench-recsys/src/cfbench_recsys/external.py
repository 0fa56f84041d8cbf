"""A table of external explanations: which explainers and formats it holds, read before anything is computed."""

from __future__ import annotations

from cfbench_core import external_tables


class ExternalTable(external_tables.ExternalTable):
    known = ("dataset", "model", "explainer", "level", "format", "scope", "edit", "k")
    needed = ("unit", "edge_user", "edge_item", "op")
